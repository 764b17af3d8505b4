"""Counters in a run's trace over a span of the machine's clock."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from tare.parquet import read_parquet
from tare.record.load_time import Span
from tare.record.turns import Measured, Turns

_NS = 1e9
_INSTANT = re.compile(r"(.*_)?(t0|t1|at|due|woke|done)_ns")
"""Columns with moments of the host's clock (docs/reference/trace-format.md)."""
_OF_A_SIDE = r"^(sut|client|warm-up)\b"
"""Subjects that no two hosts of a run share."""
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


@dataclass(frozen=True)
class Traces:
    """The traces of a run: that of the SUT's (or first node's) host, and those of other hosts."""

    trace: Path
    client: Elsewhere | None = None
    """Trace of the client's host if that is not the SUT's."""
    nodes: tuple[Elsewhere, ...] = ()
    """Traces of further nodes that have hosts of their own."""

    def read(self, table: str, columns: Sequence[str] | None = None) -> pl.DataFrame | None:
        """Read a table of the SUT's hosts, as `read_all`."""
        return read_all(self.trace, self.nodes, table, columns)


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


def on_sut_clock(samples: pl.DataFrame, of: str, ahead_s: float) -> pl.DataFrame:
    """Put another host's samples on the clock of the SUT's (or first node's) host, by subtracting `ahead_s`.

    Subjects of the host itself get `of` in their names, since the SUT's host also has a CPU `all` and perhaps a
    disk `sda`.
    """
    if not of:
        return samples
    own = pl.col("subject").str.contains(_OF_A_SIDE)
    named = pl.when(own).then(pl.col("subject")).otherwise(pl.col("subject") + f" of {of}")
    return samples.with_columns(pl.col("from_ns", "to_ns") - round(ahead_s * 1e9), named.alias("subject"))


def growth(table: pl.DataFrame, at: str, column: str, phase: Measured) -> float | None:
    """Return the growth of a counter over the phase, summed over targets; linear between samples.

    Over turns it is what `Turns.growth` estimates; `None` if that is unknown for any target.

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
        if isinstance(phase, Turns):
            if (grown := phase.growth(x.astype(float), y)) is None:
                return None
            total += grown
            continue
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


@dataclass(frozen=True)
class IoSource:
    """Columns of a table in the trace that count the SUT's bytes. `at`: when they were read."""

    name: str
    table: str
    at: str
    read: str
    written: str


SOURCES = (
    IoSource("tp_btf/block_rq_issue", "cgroup", "block_at_ns", "block_read_bytes", "block_written_bytes"),
    IoSource("control group", "cgroup", "io_t0_ns", "read_bytes", "written_bytes"),
    IoSource("BFQ", "cgroup", "bfq_t0_ns", "bfq_read_bytes", "bfq_written_bytes"),
    IoSource("/proc/PID/io", "process", "io_t0_ns", "read_bytes", "written_bytes"),
)
"""In order of trust; the first with values counts. On control groups v1, the second is empty until a throttle rule
exists, and the last counts what a process dirtied, whether or not it has reached a device."""
