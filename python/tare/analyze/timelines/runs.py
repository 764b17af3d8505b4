"""Timelines of single runs, one for each arm, and many runs overlaid on the same axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tare.analyze.hosts import TRACE
from tare.analyze.metrics import METRICS, PRIMARY
from tare.analyze.numbers import number_at
from tare.analyze.timelines.marks import Mark, PlacedWindow, TimedRun, marks_of, placed_by, windows_of
from tare.analyze.timelines.series import MOST_STEPS, SUT, Point, series
from tare.analyze.views.laid import with_sides_elsewhere
from tare.analyze.views.summary import has_trace, not_all_shown
from tare.errors import StoreError
from tare.parquet import readable
from tare.record.run_record import Phase, RunRecord
from tare.store.read import Store
from tare.store.trace import Trace, is_trace, read_trace
from tare.study.model import Study
from tare.study.suggest import did_you_mean

MOST_ARMS = 8
"""Arms in one report, including the baseline, so that a page stays below 3 MB."""
THROUGHPUT, LATENCY = "throughput, /s", "p95 latency, ms"
_IN_WINDOWS = {THROUGHPUT: "throughput_per_s", LATENCY: "latency_p95_ms"}
MOST_RUNS = 42
"""Runs in one report, for example six of seven arms, so that a page stays far below 3 MB."""
_SHOWN = (Phase.WARM_UP, Phase.MEASURE, Phase.COOL_DOWN)


@dataclass(frozen=True)
class Span:
    """A phase, in seconds since measuring began."""

    phase: str
    began: float
    ended: float


@dataclass(frozen=True)
class Timeline:
    """Timeline of one run over its phases."""

    arm: str
    run_id: str
    points: tuple[Point, ...]
    phases: tuple[Span, ...]
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Timelines:
    """Timelines of the shown arms. `left_out`: arms with traces that did not fit.

    `unread`: a sentence for each run whose trace is damaged; another run of its arm is shown.
    """

    runs: tuple[Timeline, ...]
    left_out: tuple[str, ...]
    unread: tuple[str, ...] = ()


def timelines(study: Study, store: Store, records: Sequence[RunRecord]) -> Timelines:
    """Make one timeline for each arm with a traced good run, in the study's order, the baseline first."""
    names = sorted((arm.name for arm in study.arms if not arm.control), key=lambda name: name != study.baseline)
    traced = _traced(store, records)
    known = [name for name in names if representative(traced.get(name, ())) is not None]
    runs, left_out, unread = list[Timeline](), list[str](), list[str]()
    for name in known:
        if len(runs) == MOST_ARMS:
            left_out.append(name)
        elif (one := _median_timeline(store, traced[name], unread)) is not None:
            runs.append(one)
    return Timelines(tuple(runs), tuple(left_out), tuple(unread))


def _median_timeline(store: Store, runs: Sequence[RunRecord], unread: list[str]) -> Timeline | None:
    """Timeline of the run with the median throughput of those whose traces can be read; others go to `unread`."""
    left = _by_throughput(runs)
    while left:
        run = left.pop((len(left) - 1) // 2)
        try:
            with readable(str(store.raw(run, TRACE))):
                return _timeline(store, run)
        except StoreError as error:
            unread.append(not_all_shown(run, error))
    return None


def representative(runs: Sequence[RunRecord]) -> RunRecord | None:
    """Run with the median throughput, the lower of two middle ones; `None` without runs."""
    ordered = _by_throughput(runs)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def _by_throughput(runs: Sequence[RunRecord]) -> list[RunRecord]:
    known = [(value, run.index, run) for run in runs if (value := METRICS[PRIMARY].of(run)) is not None]
    return [run for _, _, run in sorted(known, key=lambda each: each[:2])]


def _traced(store: Store, records: Sequence[RunRecord]) -> Mapping[str, Sequence[RunRecord]]:
    """Arm → good runs with a trace."""
    traced: dict[str, list[RunRecord]] = {}
    for record in records:
        if record.outcome.ok and has_trace(store, record):
            traced.setdefault(record.arm, []).append(record)
    return traced


def _timeline(store: Store, run: RunRecord) -> Timeline:
    trace = _trace(store, run)
    span_by_name = dict(spans(run))
    first_s = trace.header["started_monotonic_ns"] / 1e9
    zero_s = span_by_name[Phase.MEASURE][0] if Phase.MEASURE in span_by_name else first_s
    phases = tuple(
        Span(phase.value, began - zero_s, ended - zero_s) for phase, (began, ended) in span_by_name.items()
    )
    began, ended = span_by_name.get(Phase.MEASURE, (None, None))
    over_s = None if began is None or ended is None else ended - began
    return Timeline(
        run.arm, run.run_id, series(trace, zero_s), phases, marks_of(TimedRun(run, trace, zero_s, over_s))
    )


def _trace(store: Store, run: RunRecord) -> Trace:
    return with_sides_elsewhere(read_trace(store.raw(run, TRACE)), run, store.raw(run, ""))


def spans(run: RunRecord) -> Iterator[tuple[Phase, tuple[float, float]]]:
    """Yield phases with their spans on the trace's clock; the measure phase only while its client runs."""
    phase = run.usage and run.usage.phase
    for time in run.phases:
        if time.phase is Phase.MEASURE and phase is not None:
            yield time.phase, (phase.began_s, phase.ended_s)
        elif time.phase in _SHOWN and time.monotonic_s is not None:
            yield time.phase, (time.monotonic_s, time.monotonic_s + time.seconds)


@dataclass(frozen=True)
class OverlaidRun:
    """One run of an overlay. `shown`: visible before the reader chooses runs.

    `placed_by`: source of the position of the generator's windows, see `marks.placed_by`.
    """

    run_id: str
    arm: str
    block: int
    throughput_per_s: float | None
    points: tuple[Point, ...]
    phases: tuple[Span, ...]
    marks: tuple[Mark, ...]
    shown: bool
    placed_by: str | None = None


@dataclass(frozen=True)
class RunOverlay:
    """Runs that fit into an overlay, out of `known` ones.

    `unread`: a sentence for each run with a damaged trace, which is shown without it.
    """

    runs: tuple[OverlaidRun, ...]
    known: int
    unread: tuple[str, ...] = ()


def overlay(study: Study, store: Store, records: Sequence[RunRecord], chosen: Sequence[str] = ()) -> RunOverlay:
    """Overlay good runs with windows or a trace, in the study's order, and `chosen` runs, good or not.

    Visible at first: the chosen runs, else the run with the median throughput of each arm. Raises `StoreError` for
    a chosen run that is not in the store. A run with a damaged trace is shown without it.
    """
    wanted = [_named(records, name) for name in dict.fromkeys(chosen)]
    good = [record for record in records if record.outcome.ok and _has_series(store, record)]
    by_arm: dict[str, list[RunRecord]] = {}
    for record in good:
        by_arm.setdefault(record.arm, []).append(record)
    median = {arm.name: representative(by_arm.get(arm.name, ())) for arm in study.arms}
    first = wanted or [each for arm, each in median.items() if each is not None and not _is_control(study, arm)]
    distinct = list({each.run_id: each for each in (*first, *good)}.values())
    order = {arm.name: n for n, arm in enumerate(study.arms)}
    kept = sorted(
        distinct[: max(MOST_RUNS, len(wanted))], key=lambda each: (order[each.arm], each.block, each.index)
    )
    shown, runs, unread = {each.run_id for each in first}, [], []
    for each in kept:
        try:
            with readable(str(store.raw(each, TRACE))):
                trace = _trace(store, each) if is_trace(store.raw(each, TRACE)) else None
                runs.append(_overlaid_run(each, trace, shown=each.run_id in shown))
        except StoreError as error:
            unread.append(not_all_shown(each, error))
            runs.append(_overlaid_run(each, None, shown=each.run_id in shown))
    return RunOverlay(tuple(runs), len(distinct), tuple(unread))


def _is_control(study: Study, name: str) -> bool:
    return any(arm.control for arm in study.arms if arm.name == name)


def _named(records: Sequence[RunRecord], name: str) -> RunRecord:
    """Good attempt of a run, else its last attempt; raises `StoreError` if there is none."""
    matching = [record for record in records if record.run_id == name]
    if not matching:
        known = sorted({record.run_id for record in records})
        raise StoreError(f"there is no run {name!r} in this store", hint=did_you_mean(name, known, kind="its runs"))
    return next((record for record in matching if record.outcome.ok), matching[-1])


def _has_series(store: Store, record: RunRecord) -> bool:
    return bool(record.measurement and record.measurement.windows) or has_trace(store, record)


def _overlaid_run(run: RunRecord, trace: Trace | None, *, shown: bool) -> OverlaidRun:
    phases = dict(spans(run))
    began, ended = phases.get(Phase.MEASURE, (None, None))
    first_s = 0.0 if trace is None else trace.header["started_monotonic_ns"] / 1e9
    zero_s = first_s if began is None else began
    over_s = None if began is None or ended is None else ended - began
    used = () if trace is None else (point for point in series(trace, zero_s) if point.who == SUT)
    return OverlaidRun(
        run_id=run.run_id,
        arm=run.arm,
        block=run.block,
        throughput_per_s=METRICS[PRIMARY].of(run),
        points=(*_windows(windows_of(run, zero_s)), *used),
        phases=tuple(Span(phase.value, since - zero_s, until - zero_s) for phase, (since, until) in phases.items()),
        marks=marks_of(TimedRun(run, trace, zero_s, over_s)),
        shown=shown,
        placed_by=placed_by(run),
    )


def _windows(windows: Sequence[PlacedWindow]) -> Iterator[Point]:
    """Yield the generator's figures at the middle of each window; very many windows are averaged in groups."""
    each = -(-len(windows) // MOST_STEPS) or 1
    groups = [windows[begin : begin + each] for begin in range(0, len(windows), each)]
    for panel, key in _IN_WINDOWS.items():
        for group in groups:
            known = [value for one in group if (value := number_at(one.window, (key,))) is not None]
            if known:
                middle = (group[0].span.began_s + group[-1].span.ended_s) / 2
                yield Point(panel, SUT, round(middle, 2), round(fmean(known), 4))
