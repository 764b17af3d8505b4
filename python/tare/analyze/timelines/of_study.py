"""One run of each arm, as it went: the one whose throughput is the arm's median."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tare.analyze.metrics import METRICS, PRIMARY
from tare.analyze.numbers import number_at
from tare.analyze.timelines.marks import Mark, Seen, marks_of
from tare.analyze.timelines.series import Point, series
from tare.run.record import Phase, RunRecord
from tare.store.read import Store
from tare.store.trace import is_trace, read_trace
from tare.study.model import Study

_TRACE = "monitors/probe/trace"
MOST_ARMS = 8
"""In one report, the baseline among them: a page stays below 3 MB."""
_SHOWN = (Phase.WARM_UP, Phase.MEASURE, Phase.COOL_DOWN)


@dataclass(frozen=True)
class Span:
    """A phase, in seconds since measuring began."""

    phase: str
    began: float
    ended: float


@dataclass(frozen=True)
class Timeline:
    """One run over its phases."""

    arm: str
    run_id: str
    points: tuple[Point, ...]
    phases: tuple[Span, ...]
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Timelines:
    """Of the arms that are shown. `left_out`: arms that have traces too, for which there was no room."""

    runs: tuple[Timeline, ...]
    left_out: tuple[str, ...]


def timelines(study: Study, store: Store, records: Sequence[RunRecord]) -> Timelines:
    """Of each arm in the study's order, the baseline first; arms without a good run that has a trace have none.

    Raises `StoreError` where a trace is damaged.
    """
    names = sorted((arm.name for arm in study.arms if not arm.control), key=lambda name: name != study.baseline)
    chosen = {name: run for name in names if (run := representative(_traced(store, records, name))) is not None}
    shown = dict(list(chosen.items())[:MOST_ARMS])
    runs = tuple(_timeline(store, run) for run in shown.values())
    return Timelines(runs, tuple(name for name in chosen if name not in shown))


def representative(runs: Sequence[RunRecord]) -> RunRecord | None:
    """The run whose throughput is the median of these, the lower of two; `None` where there are none."""
    known = [(value, run.index, run) for run in runs if (value := METRICS[PRIMARY].of(run)) is not None]
    return sorted(known, key=lambda each: each[:2])[(len(known) - 1) // 2][2] if known else None


def _traced(store: Store, records: Sequence[RunRecord], arm: str) -> list[RunRecord]:
    good = (record for record in records if record.arm == arm and record.outcome.ok)
    return [record for record in good if is_trace(store.raw(record, _TRACE))]


def _timeline(store: Store, run: RunRecord) -> Timeline:
    trace = read_trace(store.raw(run, _TRACE))
    found = dict(spans(run))
    first_s = trace.header["started_monotonic_ns"] / 1e9
    zero_s = found[Phase.MEASURE][0] if Phase.MEASURE in found else first_s
    phases = tuple(Span(phase.value, began - zero_s, ended - zero_s) for phase, (began, ended) in found.items())
    began, ended = found.get(Phase.MEASURE, (None, None))
    over_s = None if began is None or ended is None else ended - began
    return Timeline(run.arm, run.run_id, series(trace, zero_s), phases, marks_of(Seen(run, trace, zero_s, over_s)))


def spans(run: RunRecord) -> Iterator[tuple[Phase, tuple[float, float]]]:
    """Phases on the trace's clock; the measure phase without what comes before its client and after it."""
    began, ended = (number_at(run.usage, (key,)) for key in ("began_monotonic_s", "ended_monotonic_s"))
    for time in run.phases:
        if time.phase is Phase.MEASURE and began is not None and ended is not None:
            yield time.phase, (began, ended)
        elif time.phase in _SHOWN and time.monotonic_s is not None:
            yield time.phase, (time.monotonic_s, time.monotonic_s + time.seconds)
