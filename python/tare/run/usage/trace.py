"""Counters in a run's trace over a span of the machine's clock."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tare.parquet import read_parquet
from tare.run.usage.driven import Span

_NS = 1e9
_INSTANT = re.compile(r"(.*_)?(t0|t1|at|due|woke|done)_ns")
"""Columns with moments of the host's clock (docs/reference/trace-format.md)."""
FURTHER_TARGETS = 1 << 32
"""First target number of a further trace: more than a trace can have, so that several traces do not collide."""


@dataclass(frozen=True)
class Elsewhere:
    """The trace of another host, whose clock is `ahead_s` ahead of that of the SUT's or first node's host.

    `node`: the node that the host belongs to, which keeps names of different hosts apart; "" for the client's host.
    """

    trace: Path
    ahead_s: float
    node: str = ""


def read_all(
    trace: Path, nodes: Sequence[Elsewhere], table: str, columns: Sequence[str] | None = None
) -> pl.DataFrame | None:
    """Read a table of a trace, with those of further nodes' hosts on its clock; `None` if it is missing.

    Targets are renumbered. For a further node, names of the host's own devices get the node appended.
    """
    first = trace / f"{table}.parquet"
    if not first.is_file():
        return None
    wanted = None if columns is None else list(columns)
    read = [read_parquet(first, columns=wanted)]
    for number, each in enumerate(nodes, 1):
        path = each.trace / f"{table}.parquet"
        if path.is_file():
            read.append(_aligned(read_parquet(path, columns=wanted), each, number, own_names=table == "disk"))
    if len(read) == 1:
        return read[0]
    plain = [one.with_columns(pl.col(pl.Categorical).cast(pl.String)) for one in read]
    return pl.concat(plain, how="diagonal_relaxed")


def _aligned(table: pl.DataFrame, elsewhere: Elsewhere, number: int, *, own_names: bool) -> pl.DataFrame:
    moments = [name for name in table.columns if _INSTANT.fullmatch(name)]
    ahead_ns = round(elsewhere.ahead_s * _NS)
    aligned = table.with_columns(pl.col(moments) - ahead_ns)
    if "target" in table.columns:
        aligned = aligned.with_columns(pl.col("target").cast(pl.Int64) + number * FURTHER_TARGETS)
    if own_names:
        aligned = aligned.with_columns(pl.col("name").cast(pl.String) + f" of {elsewhere.node}")
    return aligned


def span_of(usage: Mapping[str, Any] | None) -> Span | None:
    """Return the measure phase of a record's `usage`; `None` if the run did not get that far."""
    began, ended = ((usage or {}).get(key) for key in ("began_monotonic_s", "ended_monotonic_s"))
    return None if began is None or ended is None else Span(began, ended)


def growth(table: pl.DataFrame, at: str, column: str, phase: Span) -> float | None:
    """Return the growth of a counter over the phase, summed over targets; linear between samples.

    A target that appeared meanwhile starts at zero; one that disappeared counts up to its last sample. `None` if
    all samples lie before the phase, or all after it.
    """
    began_ns, ended_ns = phase.began_s * _NS, phase.ended_s * _NS
    known = table.drop_nulls([at, column])
    times = known[at].to_numpy()
    if not len(times) or times.min() > ended_ns or times.max() < began_ns:
        return None
    total = 0.0
    for _, rows in known.sort(at).group_by("target"):
        x, y = rows[at].to_numpy(), rows[column].to_numpy().astype(float)
        before = float(np.interp(began_ns, x, y, left=0.0))
        total += float(np.interp(ended_ns, x, y, left=0.0)) - before
    return total


def cpu_of(trace: Path, names: Collection[str], phase: Span | None) -> float | None:
    """Return the CPU seconds of the processes with these names in a trace; `None` if there are none."""
    path = trace / "process.parquet"
    if phase is None or not path.is_file():
        return None
    table = read_parquet(path, columns=["target", "name", "cpu_t0_ns", "cpu_ns"])
    used_ns = growth(table.filter(pl.col("name").is_in(list(names))), "cpu_t0_ns", "cpu_ns", phase)
    return None if used_ns is None else used_ns / _NS
