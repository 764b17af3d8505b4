"""Monitors that serve what they read: how they are started, and what scrapes them."""

from __future__ import annotations

import contextlib
import os
import shutil
import urllib.request
from collections.abc import Callable

NODE_EXPORTER_PORT = 19100
CADVISOR_PORT = 19101
SCRAPE_TIMEOUT_S = 10.0


def node_exporter() -> list[str] | None:
    """How to start it, where it is installed."""
    program = shutil.which("prometheus-node-exporter")
    return [program, f"--web.listen-address=127.0.0.1:{NODE_EXPORTER_PORT}"] if program else None


def cadvisor(every: str) -> list[str] | None:
    """How to start the cAdvisor that $CADVISOR names, reading as often as it is told and no more seldom."""
    program = os.environ.get("CADVISOR")
    options = [
        "-listen_ip=127.0.0.1",
        f"-port={CADVISOR_PORT}",
        f"-housekeeping_interval={every}",
        "-jitter_factor=0",
        "-allow_dynamic_housekeeping=false",
    ]
    return [program, *options] if program else None


def metrics_of(port: int) -> str:
    """Where a server on this machine shows its metrics."""
    return f"http://127.0.0.1:{port}/metrics"


def scrape(port: int) -> Callable[[], None]:
    """What fetches the metrics once, as Prometheus would; a server that is not up yet is left alone."""

    def fetch() -> None:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(metrics_of(port), timeout=SCRAPE_TIMEOUT_S) as answer,
        ):
            answer.read()

    return fetch
