"""Many runs on the same axes: throughput, latency and what the SUT used, over seconds since measuring began."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from tare.analyze.metrics import METRICS, PRIMARY
from tare.analyze.numbers import number_at
from tare.analyze.timelines.marks import Mark, Seen, marks_of
from tare.analyze.timelines.of_study import Span, representative, spans
from tare.analyze.timelines.placing import Placed, placed_by, windows_of
from tare.analyze.timelines.series import MOST_STEPS, SUT, Point, series
from tare.analyze.views.of_run import TRACE
from tare.errors import StoreError
from tare.run.record import Phase, RunRecord
from tare.store.read import Store
from tare.store.trace import is_trace, read_trace
from tare.study.model import Study
from tare.study.suggest import did_you_mean

THROUGHPUT, LATENCY = "throughput, /s", "p95 latency, ms"
_IN_WINDOWS = {THROUGHPUT: "throughput_per_s", LATENCY: "latency_p95_ms"}
MOST_RUNS = 42
"""In one report, six runs of seven arms: a page stays far below 3 MB."""


@dataclass(frozen=True)
class Laid:
    """One run. `shown`: laid over the others before a reader has chosen.

    `placed_by`: how it is known where the generator's windows lie, of a run that has any; as `placing.placed_by`.
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
class LaidOver:
    """The runs for which there was room, of `known` ones."""

    runs: tuple[Laid, ...]
    known: int


def laid_over(study: Study, store: Store, records: Sequence[RunRecord], chosen: Sequence[str] = ()) -> LaidOver:
    """Good runs with windows or a trace, in the study's order; `chosen` ones whether good or not.

    Shown first are those chosen, else the run of each arm with its median throughput. Raises `StoreError` for a
    chosen run that is not in the store, and where a trace is damaged.
    """
    wanted = [_named(records, name) for name in dict.fromkeys(chosen)]
    good = [record for record in records if record.outcome.ok and _telling(store, record)]
    median = {arm.name: representative([each for each in good if each.arm == arm.name]) for arm in study.arms}
    first = wanted or [each for arm, each in median.items() if each is not None and not _control(study, arm)]
    room = list({each.run_id: each for each in (*first, *good)}.values())
    order = {arm.name: n for n, arm in enumerate(study.arms)}
    kept = sorted(room[: max(MOST_RUNS, len(wanted))], key=lambda each: (order[each.arm], each.block, each.index))
    shown = {each.run_id for each in first}
    return LaidOver(tuple(_laid(store, each, shown=each.run_id in shown) for each in kept), len(room))


def _control(study: Study, name: str) -> bool:
    return any(arm.control for arm in study.arms if arm.name == name)


def _named(records: Sequence[RunRecord], name: str) -> RunRecord:
    """The good attempt of a run, else the last one."""
    found = [record for record in records if record.run_id == name]
    if not found:
        known = sorted({record.run_id for record in records})
        raise StoreError(f"there is no run {name!r} in this store", hint=did_you_mean(name, known, kind="its runs"))
    return next((record for record in found if record.outcome.ok), found[-1])


def _telling(store: Store, record: RunRecord) -> bool:
    return bool((record.measurement or {}).get("windows")) or is_trace(store.raw(record, TRACE))


def _laid(store: Store, run: RunRecord, *, shown: bool) -> Laid:
    path = store.raw(run, TRACE)
    trace = read_trace(path) if is_trace(path) else None
    found = dict(spans(run))
    began, ended = found.get(Phase.MEASURE, (None, None))
    first_s = 0.0 if trace is None else trace.header["started_monotonic_ns"] / 1e9
    zero_s = first_s if began is None else began
    over_s = None if began is None or ended is None else ended - began
    used = () if trace is None else (point for point in series(trace, zero_s) if point.who == SUT)
    return Laid(
        run_id=run.run_id,
        arm=run.arm,
        block=run.block,
        throughput_per_s=METRICS[PRIMARY].of(run),
        points=(*_windows(windows_of(run, zero_s)), *used),
        phases=tuple(Span(phase.value, since - zero_s, until - zero_s) for phase, (since, until) in found.items()),
        marks=marks_of(Seen(run, trace, zero_s, over_s)),
        shown=shown,
        placed_by=placed_by(run),
    )


def _windows(windows: Sequence[Placed]) -> Iterator[Point]:
    """What the generator told of each window, at its middle; several in one where there are very many."""
    each = -(-len(windows) // MOST_STEPS) or 1
    groups = [windows[begin : begin + each] for begin in range(0, len(windows), each)]
    for panel, key in _IN_WINDOWS.items():
        for group in groups:
            known = [value for one in group if (value := number_at(one.told, (key,))) is not None]
            if known:
                middle = (group[0].span.began_s + group[-1].span.ended_s) / 2
                yield Point(panel, SUT, round(middle, 2), round(fmean(known), 4))
