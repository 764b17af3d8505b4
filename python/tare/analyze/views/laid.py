"""Traces and samples of several hosts of a run, laid on one clock and told apart by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from tare.analyze.hosts import TRACE, OtherHost, other_hosts
from tare.run.monitoring.watch import CLIENT, laid_table
from tare.run.record import RunRecord
from tare.run.usage.trace import FURTHER_TARGETS, Elsewhere, read_all
from tare.store.trace import Trace

_OF_SIDES = ("cgroup", "process", "interface")
_SIDE = r"^(sut|client|warm-up)\b"
_OWN_OF_OTHERS = r" of (client|sut-\d+)$"
"""What is another host's own (docs/reference/monitors.md)."""


def laid(host: OtherHost, samples: pl.DataFrame) -> pl.DataFrame:
    """Samples of its clock on that of the run, what is the host's own named by whose it is."""
    return laid_table(samples, host.of, host.ahead_s)


def taken_back(host: OtherHost, everything: pl.DataFrame) -> pl.DataFrame:
    """Of samples of all hosts those of this one, on its own clock under its own names."""
    side = rf"^({'client|warm-up' if host.of == CLIENT else host.of})\b"
    subject, own = pl.col("subject").str, f" of {host.of}"
    mine = everything.filter(subject.ends_with(own) | subject.contains(side))
    moments = pl.col("from_ns", "to_ns") + round(host.ahead_s * 1e9)
    return mine.with_columns(moments, pl.col("subject").str.strip_suffix(own))


def with_sides_elsewhere(trace: Trace, record: RunRecord, raw: Path) -> Trace:
    """The trace of the SUT's host with the sides and nodes that stood on others, laid on its clock.

    What those hosts did beside is left out. `raw`: the run's raw files.
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
    """Of samples of all hosts those that are not another host's own."""
    return samples.filter(~pl.col("subject").str.contains(_OWN_OF_OTHERS))
