"""Where the monitors' files lie among a run's raw files."""

from __future__ import annotations

import re
from pathlib import Path

from tare.monitors.probe import TRACE

DIRECTORY = "monitors"
"""Below a run's raw files, a directory for each monitor."""
CLIENT = "client"
"""Name of the host that is the client's alone."""
TRACER = "probe"
"""The monitor of every run, from before its warm-up to the end of its cool-down; other monitors watch the measure
phase only."""
CLIENT_TRACER = "client-host"
"""The trace of the client's host if that is not the SUT's; on the client host's own clock."""
_NODE_TRACER = re.compile(r"sut-\d+-host")
"""The trace of the host of a cluster's further node (`sut-2-host`), if it has one; on that host's clock."""
ON_CLIENT = "client-"
"""Prefix of monitors on the client's host: `client-profile`."""


def trace_of(raw: Path) -> Path:
    """Return the path of a run's trace below its raw files."""
    return raw / DIRECTORY / TRACER / TRACE


def client_trace_of(raw: Path) -> Path:
    """Return the path of the trace of the client's host."""
    return raw / DIRECTORY / CLIENT_TRACER / TRACE


def node_tracer(node: str) -> str:
    """Return the name of the trace of a further node's host: `sut-2-host`."""
    return f"{node}-host"


def node_trace_of(raw: Path, node: str) -> Path:
    """Return the path of the trace of a further node's host."""
    return raw / DIRECTORY / node_tracer(node) / TRACE


def on_node(name: str, node: str) -> str:
    """Return the name of a study's monitor on the host of a further node: `sar-sut-2`."""
    return f"{name}-{node}"


def is_tracer(name: str) -> bool:
    """Whether a monitor is the trace of a host, and not one that the study names."""
    return name in (TRACER, CLIENT_TRACER) or _NODE_TRACER.fullmatch(name) is not None
