"""Resource use of SUT, client, engine and host while a run lasts: the lines of the report, with fewer points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from tare.analyze.timelines.series import Point, series
from tare.live.journal import COLUMNS, Journal, NotReadable, Row, newest_rows, waiting
from tare.record.raw_files import trace_of
from tare.store.trace import VERSION, Trace

JOURNAL = "journal.tare"
MOST_TICKS = 240
"""Most samples kept of a run; when there are more, every other one is dropped."""
_SHOWN = frozenset({"tick", "cpu", "memory", "interface", "cgroup", "process"})
_NS = 1e9


@dataclass
class Follower:
    """One run's trace so far. `every`: one frame of this many is kept.

    `zero_s`: start of the trace on CLOCK_MONOTONIC, second 0 of its lines. `ahead_s`: seconds that the wall clock
    was ahead of it in the newest sample.
    """

    raw: Path
    every: int = 2
    frames: int = 0
    samples: list[tuple[Row, ...]] = field(default_factory=list)
    lines: Sequence[Point] = ()
    zero_s: float | None = None
    ahead_s: float | None = None
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        self.journal = Journal(trace_of(self.raw) / JOURNAL)

    def look(self) -> Sequence[Point]:
        """All lines so far; the earlier ones if nothing can be read."""
        try:
            for payload in self.journal.frames():
                if self.frames % self.every == 0:
                    self._keep(payload)
                self.frames += 1
        except NotReadable:  # when the run is over, its journal becomes another file
            return self.lines
        facts = None if self.journal.header is None else self.journal.header.get("tail")
        last = list(waiting(facts, self.journal.upto))[:: self.every]
        tables = _tables(self.journal.targets, [*self.samples, *map(_shown, last)])
        self._take_clocks(tables)
        self.lines = _lines(self.journal, tables, self.zero_s)
        return self.lines

    def _take_clocks(self, tables: Mapping[str, pl.DataFrame]) -> None:
        if self.journal.header is None or "tick" not in tables:
            return
        ticks = tables["tick"].drop_nulls(["woke_ns", "realtime_ns"]).sort("woke_ns")
        if len(ticks) > 1:
            newest = ticks.row(-1, named=True)
            self.zero_s = self.journal.header["started_monotonic_ns"] / _NS
            self.ahead_s = (newest["realtime_ns"] - newest["woke_ns"]) / _NS

    def _keep(self, payload: bytes) -> None:
        self.samples.append(_shown(newest_rows(payload)))
        if len(self.samples) > MOST_TICKS:
            self.samples = self.samples[::2]
            self.every *= 2


def _shown(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row.table in _SHOWN)


def _lines(journal: Journal, tables: Mapping[str, pl.DataFrame], zero_s: float | None) -> Sequence[Point]:
    if journal.header is None or zero_s is None:
        return ()
    trace = Trace(header={**journal.header, "trace_version": VERSION}, quanta={}, complete=False, tables=tables)
    return series(trace, zero_s)


def _tables(names: Mapping[int, str], samples: Sequence[tuple[Row, ...]]) -> dict[str, pl.DataFrame]:
    """Tables as they will be in Parquet, without skipped frames."""
    rows: dict[str, list[tuple[int | str | None, ...]]] = {}
    for sample in samples:
        for row in sample:
            rows.setdefault(row.table, []).append((row.tick, row.target, names.get(row.target, ""), *row.cells))
    return {table: pl.DataFrame(records, schema=_schema(table), orient="row") for table, records in rows.items()}


def _schema(table: str) -> dict[str, type[pl.DataType]]:
    keys: dict[str, type[pl.DataType]] = {"tick": pl.Int64, "target": pl.Int64, "name": pl.String}
    return {**keys, **dict.fromkeys(COLUMNS[table], pl.Int64)}
