"""The views of a run: its trace over the measure phase, and the samples of the tools that watched it too."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from tare.analyze.views.compare import OBSERVED
from tare.analyze.views.summary import Views, views_of
from tare.errors import StoreError
from tare.monitors import OF_SUT
from tare.run.record import Phase, RunRecord
from tare.store.read import Store
from tare.store.trace import Trace, is_trace, read_trace

_MONITORS = "monitors"
TRACE = f"{_MONITORS}/probe/trace"
"""Where a run's recording lies among its raw files."""
_MOST_SAMPLES = 300
"""In one chart; a longer run is looked at less often."""


@dataclass(frozen=True, eq=False)
class RunViews:
    """What monitors would have said of a run, and what those that ran did say."""

    run_id: str
    arm: str
    views: Views

    @property
    def of_sut(self) -> tuple[str, ...]:
        """What the SUT is called in the trace, or each of its nodes; empty where it had no group of its own."""
        return tuple(dict.fromkeys(line.subject for line in self.views.lines if re.match(OF_SUT, line.subject)))


def has_trace(store: Store, record: RunRecord) -> bool:
    """Whether a trace of it was kept; runs of older stores have none."""
    return is_trace(store.raw(record, TRACE))


def views_of_run(store: Store, record: RunRecord, interval_s: float | None = None) -> RunViews:
    """Views over the measure phase. `interval_s`: `None` for 1 s, more where the run is long.

    Raises `StoreError` where the run has no trace, or files of it are damaged.
    """
    if not has_trace(store, record):
        hint = "none is kept of runs that were imported, or that failed before or because their trace did"
        raise StoreError(f"{record.run_id} has no trace, of which views are made", hint=hint)
    raw = store.raw(record, "")
    trace, measured = read_trace(store.raw(record, TRACE)), _measured(record)
    if measured is not None:
        trace = trace.between(*measured)
    every_s = max(1.0, _seconds(trace) // _MOST_SAMPLES) if interval_s is None else interval_s
    found = views_of(trace, every_s, observed(raw / _MONITORS))
    return RunViews(record.run_id, record.arm, replace(found, emulated=record.emulated))


def observed(monitors: Path) -> pl.DataFrame:
    """Samples that the study keeps, of all tools that left any (docs/reference/monitors.md): `compare.OBSERVED`."""
    parts = [pl.DataFrame(schema=OBSERVED)]
    for path in sorted(monitors.glob("*.parquet")):
        table = read_samples(path)
        if set(OBSERVED) <= set(table.columns):
            table = table.filter("kept") if "kept" in table.columns else table
            parts.append(table.select(pl.col(name).cast(kind) for name, kind in OBSERVED.items()))
    return pl.concat(parts)


def read_samples(path: Path) -> pl.DataFrame:
    """A table of a tool's samples. Raises `StoreError` where it is damaged."""
    try:
        return pl.read_parquet(path)
    except (OSError, PolarsError) as error:
        raise StoreError(f"the samples {path} cannot be read: {error}") from error


def telling(store: Store, records: Sequence[RunRecord], others: Collection[str]) -> RunViews | None:
    """Views of one good run with a trace: one that real tools watched, rather not of arms in `others`, the last."""
    good = [each for each in records if each.outcome.ok and has_trace(store, each)]
    if not good:
        return None
    tools = {id(each): len(each.monitors or {}) for each in good}
    return views_of_run(store, max(good, key=lambda each: (tools[id(each)], each.arm not in others, each.index)))


def _measured(record: RunRecord) -> tuple[int, int] | None:
    for time in record.phases:
        if time.phase is Phase.MEASURE and time.monotonic_s is not None:
            return round(time.monotonic_s * 1e9), round((time.monotonic_s + time.seconds) * 1e9)
    return None


def _seconds(trace: Trace) -> float:
    ticks = trace.table("tick")
    return 0.0 if ticks is None or ticks.is_empty() else float(ticks["woke_ns"][-1] - ticks["woke_ns"][0]) / 1e9
