"""Traces and samples of several hosts of a run, converted to one clock and distinguished by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from tare.analyze.hosts import TRACE, OtherHost, other_hosts
from tare.record.raw_files import CLIENT
from tare.record.run_record import RunRecord
from tare.record.trace import FURTHER_TARGETS, Elsewhere, on_sut_clock, read_all
from tare.store.trace import Trace

_OF_SIDES = ("cgroup", "process", "interface")
_SIDE = r"^(sut|client|warm-up)\b"
_OWN_OF_OTHERS = r" of (client|sut-\d+)$"
"""Subjects of another host (docs/reference/monitors.md)."""


def laid(host: OtherHost, samples: pl.DataFrame) -> pl.DataFrame:
    """Convert a host's samples to the run's clock, and add the host's role to its own subjects."""
    return on_sut_clock(samples, host.of, host.ahead_s)


def taken_back(host: OtherHost, everything: pl.DataFrame) -> pl.DataFrame:
    """Select one host's samples from all samples, on the host's own clock and with its own names."""
    side = rf"^({'client|warm-up' if host.of == CLIENT else host.of})\b"
    subject, own = pl.col("subject").str, f" of {host.of}"
    mine = everything.filter(subject.ends_with(own) | subject.contains(side))
    moments = pl.col("from_ns", "to_ns") + round(host.ahead_s * 1e9)
    return mine.with_columns(moments, pl.col("subject").str.strip_suffix(own))


def with_sides_elsewhere(trace: Trace, record: RunRecord, raw: Path) -> Trace:
    """Add sides and nodes of other hosts to the trace of the SUT's host, on its clock.

    Everything else of those hosts is left out. `raw`: directory of the run's raw files.
    """
    tables = dict(trace.tables)
    there = [Elsewhere(raw / host.trace, host.ahead_s, host.of) for host in other_hosts(record)]
    for name in _OF_SIDES if there else ():
        whole = read_all(raw / TRACE, there, name)
        if whole is not None and name in tables:
            own = pl.col("name").cast(pl.String).str.contains(_SIDE)
            here = pl.col("target") < FURTHER_TARGETS
            tables[name] = whole.with_columns(pl.col(pl.Categorical).cast(pl.String)).filter(here | own)
    return replace(trace, tables=tables)


def of_first(samples: pl.DataFrame) -> pl.DataFrame:
    """Select samples that are not another host's own."""
    return samples.filter(~pl.col("subject").str.contains(_OWN_OF_OTHERS))
