"""Counters of a run's trace over a span of the machine's clock."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tare.run.usage.driven import Span

_NS = 1e9
_INSTANT = re.compile(r"(.*_)?(t0|t1|at|due|woke|done)_ns")
"""Columns that tell a moment of the host's clock (docs/reference/trace-format.md)."""
FURTHER_TARGETS = 1 << 32
"""More than a trace can have, so that those of several are told apart: the first target of a further one."""


@dataclass(frozen=True)
class Elsewhere:
    """The trace of another host, whose clock is `ahead_s` ahead of that of the SUT or of its first node.

    `node`: whose host it is, for what else would bear one name on two hosts; "" of the client's.
    """

    trace: Path
    ahead_s: float
    node: str = ""


def read_all(
    trace: Path, nodes: Sequence[Elsewhere], table: str, columns: Sequence[str] | None = None
) -> pl.DataFrame | None:
    """A table of a trace, with those of further nodes' hosts laid on its clock; `None` where it is not there.

    Targets are numbered anew, and of a further node what is the host's own has the node in its name.
    """
    first = trace / f"{table}.parquet"
    if not first.is_file():
        return None
    wanted = None if columns is None else list(columns)
    read = [pl.read_parquet(first, columns=wanted)]
    for number, each in enumerate(nodes, 1):
        path = each.trace / f"{table}.parquet"
        if path.is_file():
            read.append(_laid(pl.read_parquet(path, columns=wanted), each, number, own_names=table == "disk"))
    if len(read) == 1:
        return read[0]
    plain = [one.with_columns(pl.col(pl.Categorical).cast(pl.String)) for one in read]
    return pl.concat(plain, how="diagonal_relaxed")


def _laid(table: pl.DataFrame, elsewhere: Elsewhere, number: int, *, own_names: bool) -> pl.DataFrame:
    moments = [name for name in table.columns if _INSTANT.fullmatch(name)]
    ahead_ns = round(elsewhere.ahead_s * _NS)
    laid = table.with_columns(pl.col(moments) - ahead_ns)
    if "target" in table.columns:
        laid = laid.with_columns(pl.col("target").cast(pl.Int64) + number * FURTHER_TARGETS)
    if own_names:
        laid = laid.with_columns(pl.col("name").cast(pl.String) + f" of {elsewhere.node}")
    return laid


def span_of(usage: Mapping[str, Any] | None) -> Span | None:
    """When measuring lasted, from a record's `usage`; `None` where it did not come to that."""
    began, ended = ((usage or {}).get(key) for key in ("began_monotonic_s", "ended_monotonic_s"))
    return None if began is None or ended is None else Span(began, ended)


def growth(table: pl.DataFrame, at: str, column: str, phase: Span) -> float | None:
    """By how much a counter grew between two moments, summed over targets; between samples it is taken as even.

    A target that came in between began at zero, and one that went counts as far as it was seen. `None` where no
    sample covers the time in between.
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
    """CPU seconds of the processes that bear these names in a trace; `None` where none of them is in it."""
    path = trace / "process.parquet"
    if phase is None or not path.is_file():
        return None
    table = pl.read_parquet(path, columns=["target", "name", "cpu_t0_ns", "cpu_ns"])
    used_ns = growth(table.filter(pl.col("name").is_in(list(names))), "cpu_t0_ns", "cpu_ns", phase)
    return None if used_ns is None else used_ns / _NS
