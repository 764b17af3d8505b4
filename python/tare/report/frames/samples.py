"""Samples of one run: the generator's windows, the trace in each tool's view, and real tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from tare.analyze import guest
from tare.analyze.hosts import TRACE
from tare.analyze.numbers import number_at
from tare.analyze.timelines.marks import windows_of
from tare.analyze.timelines.runs import spans
from tare.analyze.views import VIEWS
from tare.analyze.views.compute import samples as computed
from tare.analyze.views.summary import read_samples
from tare.parquet import readable
from tare.record.run_record import Phase, RunRecord
from tare.store.read import Store
from tare.store.trace import is_trace, read_trace

COLUMNS = {
    "run_id": pl.String, "arm": pl.String, "source": pl.String, "tool": pl.String, "quantity": pl.String,
    "subject": pl.String, "phase": pl.String, "from_s": pl.Float64, "to_s": pl.Float64, "value": pl.Float64,
    "unit": pl.String, "kept": pl.Boolean, "emulated": pl.Boolean,
}  # fmt: skip
"""docs/reference/python.md documents each column."""

_WINDOW_UNITS: Mapping[str, str | None] = {
    "throughput_per_s": "/s", "latency_p95_ms": "ms", "errors_per_s": "/s", "reconnects_per_s": "/s",
    "queries_per_s": "/s", "queue_length": "operations",
}  # fmt: skip
_PART = ("source", "tool", "quantity", "subject", "from_s", "to_s", "value", "kept")
_NS = 1e9


def samples(store: Store, run: RunRecord, every_s: float = 1.0) -> pl.DataFrame:
    """Return all samples of a run in seconds since the measure phase began, or else since its trace began.

    `every_s`: sampling interval of a tool's view. Missing files (no trace, no tool, no windows) give no rows.
    Raises `StoreError` if a file is damaged.
    """
    with readable(f"what was sampled in {run.run_id}"):
        return _samples(store, run, every_s)


def _samples(store: Store, run: RunRecord, every_s: float) -> pl.DataFrame:
    phases = dict(spans(run))
    zero_s = phases[Phase.MEASURE][0] if Phase.MEASURE in phases else None
    parts = [
        _windows(run, zero_s),
        *_observed(store, run, zero_s),
        *_traced(store, run, zero_s, every_s),
        *_inside(store, run, zero_s),
    ]
    table = pl.concat(parts).join(_units(), on=("tool", "quantity"), how="left")
    window = pl.col("quantity").replace_strict(_WINDOW_UNITS, default=None, return_dtype=pl.String)
    return table.select(
        pl.lit(run.run_id).alias("run_id"),
        pl.lit(run.arm).alias("arm"),
        "source",
        "tool",
        "quantity",
        "subject",
        _phase(phases, zero_s).alias("phase"),
        "from_s",
        "to_s",
        "value",
        pl.when(pl.col("source") == "generator").then(window).otherwise(pl.col("unit")).alias("unit"),
        "kept",
        pl.lit(bool(run.emulated)).alias("emulated"),
    )


def _windows(run: RunRecord, zero_s: float | None) -> pl.DataFrame:
    """Windows of the measure phase, as (start, end) seconds on the trace's clock."""
    tool = run.settings.get("workload_name") or (run.imported and run.imported.parser) or "generator"
    rows = [
        ("generator", str(tool), name, "client", each.span.began_s, each.span.ended_s, value, True)
        for each in windows_of(run, zero_s)
        for name in _WINDOW_UNITS
        if (value := number_at(each.window, (name,))) is not None
    ]
    return pl.DataFrame(rows, schema={name: _type(name) for name in _PART}, orient="row")


def _observed(store: Store, run: RunRecord, zero_s: float | None) -> Iterator[pl.DataFrame]:
    """Samples of real tools; none if second 0 is unknown on their clock."""
    for path in sorted(store.raw(run, "monitors").glob("*.parquet")) if zero_s is not None else ():
        table = read_samples(path)
        if {"tool", "quantity", "subject", "from_ns", "to_ns", "value"} <= set(table.columns):
            kept = pl.col("kept") if "kept" in table.columns else pl.lit(value=True)
            yield _on_run_time(table.with_columns(kept.alias("kept")), "tool", zero_s or 0.0)


def _traced(store: Store, run: RunRecord, zero_s: float | None, every_s: float) -> Iterator[pl.DataFrame]:
    """What every tool would have reported from the run's trace, tare-probe's own view first."""
    place = store.raw(run, TRACE)
    if is_trace(place):
        trace = read_trace(place)
        began_s = trace.header["started_monotonic_ns"] / _NS if zero_s is None else zero_s
        yield _on_run_time(
            computed(trace, every_s).with_columns(pl.lit(value=True).alias("kept")), "trace", began_s
        )


def _inside(store: Store, run: RunRecord, zero_s: float | None) -> Iterator[pl.DataFrame]:
    """Counters inside the SUT's virtual machine; a later stage uses the file of the first stage."""
    clock = run.parity.sut and run.parity.sut.guest and run.parity.sut.guest.clock
    if zero_s is None or clock is None:
        return
    known = {(each.run_id, each.attempt): each for each in (store.records() if run.continues else ())}
    first: RunRecord | None = run
    while first is not None and first.continues is not None:
        first = known.get((first.continues, first.attempt))
    file = None if first is None else store.raw(first, guest.FILE)
    if file is not None and file.is_file():
        table = guest.counted(file.read_bytes(), clock).with_columns(pl.lit(value=True).alias("kept"))
        yield _on_run_time(table, "guest", zero_s)


def _on_run_time(table: pl.DataFrame, source: str, zero_s: float) -> pl.DataFrame:
    moments = {name: (pl.col(f"{name[:-2]}_ns") / _NS - zero_s).alias(name) for name in ("from_s", "to_s")}
    table = table.with_columns(pl.lit(source).alias("source"), *moments.values())
    return table.select(pl.col(name).cast(_type(name)) for name in _PART)


def _phase(phases: Mapping[Phase, tuple[float, float]], zero_s: float | None) -> pl.Expr:
    """The phase in which a sample ended; null between phases, and without a measure phase.

    Windows always belong to the measure phase.
    """
    named: pl.Expr = pl.lit(None, dtype=pl.String)
    if zero_s is not None:
        for phase, (began, ended) in phases.items():
            within = pl.col("to_s").is_between(began - zero_s, ended - zero_s)
            named = pl.when(within).then(pl.lit(phase.value)).otherwise(named)
    return pl.when(pl.col("source") == "generator").then(pl.lit(Phase.MEASURE.value)).otherwise(named)


def _units() -> pl.DataFrame:
    rows = [(tool, each.name, each.unit) for tool, view in VIEWS.items() for each in view.quantities]
    rows += [(guest.TOOL, name, unit) for name, unit in guest.UNITS.items()]
    return pl.DataFrame(rows, schema=dict.fromkeys(("tool", "quantity", "unit"), pl.String), orient="row")


def _type(name: str) -> type[pl.DataType]:
    return COLUMNS[name]
