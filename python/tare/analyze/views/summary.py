"""Views of a run as lines: one quantity of one tool for one subject, with the real tool's figure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from tare.analyze.hosts import TRACE, OtherHost, named_hosts, other_hosts
from tare.analyze.views import VIEWS
from tare.analyze.views.compare import OBSERVED, Comparison, compare
from tare.analyze.views.compute import samples
from tare.analyze.views.formulas import NS
from tare.analyze.views.laid import laid, of_first, taken_back
from tare.analyze.views.model import Kind, Measure, Quantity, View
from tare.analyze.views.why import why
from tare.errors import StoreError
from tare.monitors import OF_SUT
from tare.parquet import read_parquet, readable
from tare.plain_files import must_be_regular
from tare.record.observation import Side
from tare.record.run_record import Phase, RunRecord
from tare.store.read import Store
from tare.store.trace import TRACE_HEAD, Trace, is_trace, read_trace

_MONITORS = "monitors"
_MOST_SAMPLES = 300
"""Samples in one chart; longer runs are sampled less often."""


@dataclass(frozen=True)
class Figures:
    """Figures over the whole trace, in the quantity's unit; `None` if the tool would have printed nothing."""

    samples: int
    value: float | None
    """Mean of a rate or gauge, or growth of a total; a mean time of requests is weighted by the requests."""
    least: float | None
    most: float | None


@dataclass(frozen=True)
class Line:
    """One quantity of one tool for one subject."""

    view: View
    quantity: Quantity
    subject: str
    figures: Figures
    cores: float | None
    """Factor from the tool's unit to percent of one CPU; `None` if the quantity is no CPU time."""
    resolution: float
    real: Comparison | None

    @property
    def core_percent(self) -> float | None:
        """CPU time in percent of one CPU, whatever the tool's own unit."""
        return None if self.figures.value is None or self.cores is None else self.figures.value * self.cores

    @property
    def measure(self) -> Measure:
        """What the quantity measures."""
        return self.quantity.measure


@dataclass(frozen=True, eq=False)
class Views:
    """All views of a trace."""

    interval_s: float
    seconds: float
    """Length of the trace."""
    complete: bool
    lines: tuple[Line, ...]
    why: tuple[str, ...]
    """Reasons why the tools differ, one or two sentences each."""
    samples: pl.DataFrame
    """Samples that each tool would have printed: `compute.SCHEMA`."""
    observed: pl.DataFrame
    """Samples that real tools printed: `compare.OBSERVED`."""
    emulated: tuple[Side, ...] | None = None
    """Sides of the run with an emulated CPU; `None`: unknown, for a trace without a run."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Side or node → its host; empty if one host had all roles."""

    @property
    def compared(self) -> tuple[Line, ...]:
        """Lines with a real tool's figure."""
        return tuple(line for line in self.lines if line.real is not None)

    @property
    def tools(self) -> tuple[View, ...]:
        """Tools that have a line."""
        return tuple(dict.fromkeys(line.view for line in self.lines))


def views_of(trace: Trace, interval_s: float = 1.0, observed: pl.DataFrame | None = None) -> Views:
    """Compute every view of a trace, sampled every `interval_s` seconds. `observed`: samples of real tools.

    The interval is at least the period of the trace.
    """
    interval_s = max(interval_s, trace.period_ns / NS)
    observed = pl.DataFrame(schema=OBSERVED) if observed is None else observed
    taken = samples(trace, interval_s)
    lines = tuple(_lines(trace, taken, interval_s, compare(trace, observed), VIEWS))
    ticks = trace.tables["tick"]["woke_ns"] if "tick" in trace.tables else pl.Series([0])
    seconds = float(ticks[-1] - ticks[0]) / 1e9 if len(ticks) else 0.0
    return Views(interval_s, seconds, trace.complete, lines, why(trace, interval_s), taken, observed)


def _lines(
    trace: Trace, taken: pl.DataFrame, interval_s: float, real: Sequence[Comparison], views: Mapping[str, View]
) -> Iterator[Line]:
    beside = {(one.tool, one.quantity, one.subject): one for one in real}
    for measure in Measure:
        for view in views.values():
            for quantity in (each for each in view.quantities if each.measure is measure):
                own = _with_events(taken.filter(pl.col("tool") == view.tool), quantity)
                for (subject,), rows in own.group_by("subject", maintain_order=True):
                    yield Line(
                        view=view,
                        quantity=quantity,
                        subject=str(subject),
                        figures=_figures(quantity, rows.drop_nulls("value")),
                        cores=None if quantity.cores is None else quantity.cores(trace),
                        resolution=quantity.resolution(trace, interval_s, str(subject)),
                        real=beside.get((view.tool, quantity.name, str(subject))),
                    )


def _with_events(of_tool: pl.DataFrame, quantity: Quantity) -> pl.DataFrame:
    """Samples of a quantity; for a mean over events, with their rate in the column `events`."""
    own = of_tool.filter(pl.col("quantity") == quantity.name)
    if quantity.weighted_by is None:
        return own
    events = of_tool.filter(pl.col("quantity") == quantity.weighted_by)
    return own.join(events.select("subject", "to_ns", events=pl.col("value")), on=["subject", "to_ns"], how="left")


def _figures(quantity: Quantity, known: pl.DataFrame) -> Figures:
    if known.is_empty():
        return Figures(0, None, None, None)
    values, value = known["value"], _figure(quantity.kind, known)
    if quantity.kind is Kind.TOTAL:
        return Figures(len(known), value, None, None)
    return Figures(len(known), value, float(min(values)), float(max(values)))


def _figure(kind: Kind, rows: pl.DataFrame) -> float:
    if kind is Kind.TOTAL:
        ordered = rows.sort("to_ns")["value"]
        return float(ordered[-1] - ordered[0])
    if kind is Kind.GAUGE:
        return float(rows["value"].sum()) / len(rows)
    weights = (rows["to_ns"] - rows["from_ns"]).cast(pl.Float64)
    if "events" in rows.columns and float((weights * rows["events"]).sum()) > 0:
        weights *= rows["events"]
    return float((rows["value"] * weights).sum()) / float(weights.sum())


@dataclass(frozen=True, eq=False)
class RunViews:
    """Views of a run, with the samples of monitors that ran."""

    run_id: str
    arm: str
    views: Views

    @property
    def of_sut(self) -> tuple[str, ...]:
        """Names of the SUT or its nodes in the trace; empty if the SUT had no control group of its own."""
        return tuple(dict.fromkeys(line.subject for line in self.views.lines if re.match(OF_SUT, line.subject)))


def has_trace(store: Store, record: RunRecord) -> bool:
    """Whether the run has a trace; runs in older stores have none."""
    head = f"{TRACE}/{TRACE_HEAD}"
    if record.raw and head not in record.raw:  # with 100,000 runs, each disk access counts
        return False
    return store.holds(record, head)


def views_of_run(store: Store, record: RunRecord, interval_s: float | None = None) -> RunViews:
    """Compute views over the measure phase. `interval_s`: `None` for 1 s, or more if the run is long.

    Raises `StoreError` if the run has no trace, or its files are damaged.
    """
    if not has_trace(store, record):
        hint = "imported runs have none, nor do runs that failed before it or because of it"
        raise StoreError(f"{record.run_id} has no trace to compute views from", hint=hint)
    with readable(f"the trace of {record.run_id}, or what its monitors saw,"):
        return _views_of_run(store, record, interval_s)


def _views_of_run(store: Store, record: RunRecord, interval_s: float | None) -> RunViews:
    raw = store.raw(record, "")
    trace, measured, seen = read_trace(store.raw(record, TRACE)), _measured(record), observed(raw / _MONITORS)
    if measured is not None:
        trace = trace.between(*measured)
    every_s = max(1.0, _seconds(trace) // _MOST_SAMPLES) if interval_s is None else interval_s
    views = views_of(trace, every_s, of_first(seen))
    for host in other_hosts(record):
        if is_trace(raw / host.trace):
            views = _with_host(views, host, _of_host(host, raw, measured, seen, every_s))
    views = replace(views, emulated=record.emulated, observed=seen, hosts=named_hosts(record))
    return RunViews(record.run_id, record.arm, views)


def _of_host(
    host: OtherHost, raw: Path, measured: tuple[int, int] | None, seen: pl.DataFrame, every_s: float
) -> Views:
    """Compute the views of another host from its own trace, on its own clock."""
    trace, ahead_ns = read_trace(raw / host.trace), round(host.ahead_s * NS)
    if measured is not None:
        trace = trace.between(*(moment + ahead_ns for moment in measured))
    return views_of(trace, every_s, taken_back(host, seen))


def _with_host(views: Views, host: OtherHost, there: Views) -> Views:
    """Add the lines of another host after those of the same measure."""
    names = pl.DataFrame({"subject": [line.subject for line in there.lines]}, schema={"subject": pl.String})
    named = laid(host, names.with_columns(from_ns=pl.lit(0), to_ns=pl.lit(0)))["subject"]
    lines = [replace(line, subject=name) for line, name in zip(there.lines, named, strict=True)]
    order = list(Measure)
    return replace(
        views,
        complete=views.complete and there.complete,
        lines=tuple(sorted((*views.lines, *lines), key=lambda line: order.index(line.measure))),
        why=(*views.why, *(f"On {host.name}: {each}" for each in there.why if each not in views.why)),
        samples=pl.concat([views.samples, laid(host, there.samples)]),
    )


def observed(monitors: Path) -> pl.DataFrame:
    """Read the kept samples of all tools (docs/reference/monitors.md): `compare.OBSERVED`."""
    parts = [pl.DataFrame(schema=OBSERVED)]
    for path in sorted(monitors.glob("*.parquet")):
        table = read_samples(path)
        if set(OBSERVED) <= set(table.columns):
            table = table.filter("kept") if "kept" in table.columns else table
            parts.append(table.select(pl.col(name).cast(kind) for name, kind in OBSERVED.items()))
    return pl.concat(parts)


def read_samples(path: Path) -> pl.DataFrame:
    """Read a table of a tool's samples. Raises `StoreError` if it is damaged."""
    must_be_regular(path)
    try:
        return read_parquet(path)
    except (OSError, PolarsError) as error:
        raise StoreError(f"the samples {path} cannot be read: {error}") from error


def telling(
    store: Store, records: Sequence[RunRecord], others: Collection[str]
) -> tuple[RunViews | None, tuple[str, ...]]:
    """Views of one good traced run: preferably with most monitors, not of arms in `others`, and the latest.

    Returns a sentence about each run that was passed over because its files are damaged.
    """
    good = [each for each in records if each.outcome.ok and has_trace(store, each)]
    tools = {id(each): len(each.monitors or {}) for each in good}
    unread: list[str] = []
    for each in sorted(good, key=lambda one: (tools[id(one)], one.arm not in others, one.index), reverse=True):
        try:
            return views_of_run(store, each), tuple(unread)
        except StoreError as error:
            unread.append(not_all_shown(each, error))
    return None, tuple(unread)


def not_all_shown(run: RunRecord, error: StoreError) -> str:
    """Sentence on a run of which a file is damaged."""
    return f"not all of {run.run_id} is shown: {error}"


def _measured(record: RunRecord) -> tuple[int, int] | None:
    for time in record.phases:
        if time.phase is Phase.MEASURE and time.monotonic_s is not None:
            return round(time.monotonic_s * 1e9), round((time.monotonic_s + time.seconds) * 1e9)
    return None


def _seconds(trace: Trace) -> float:
    ticks = trace.table("tick")
    return 0.0 if ticks is None or ticks.is_empty() else float(ticks["woke_ns"][-1] - ticks["woke_ns"][0]) / 1e9
