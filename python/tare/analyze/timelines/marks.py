"""Marks for events on a run's timeline, and the position of the generator's windows on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from tare.analyze.numbers import number_at
from tare.monitors import OF_SUT
from tare.record.load_time import Span, spans_of
from tare.record.measurement import Window
from tare.record.run_record import RunRecord
from tare.store.trace import Trace


@dataclass(frozen=True)
class PlacedWindow:
    """A window of the generator, and its time span."""

    span: Span
    window: Window


def windows_of(run: RunRecord, zero_s: float | None) -> tuple[PlacedWindow, ...]:
    """Windows of a run, in seconds since `zero_s` on the trace's clock."""
    windows = () if run.measurement is None else run.measurement.windows
    spans = spans_of([each.end_s for each in windows], windows_began(run, zero_s))
    return tuple(PlacedWindow(span, each) for span, each in zip(spans, windows, strict=True))


def windows_began(run: RunRecord, zero_s: float | None) -> float:
    """Start of the generator's measurement, in seconds since `zero_s` on the trace's clock.

    0 if the record does not have it, as older records do not: windows then count from the start of the phase.
    """
    load = run.usage and run.usage.load
    return 0.0 if load is None or zero_s is None else load.began_s - zero_s


def placed_by(run: RunRecord) -> str | None:
    """Source of the windows' position: `generator` or `end`, see `LoadTime`; `None` if not recorded."""
    return run.usage and run.usage.driven and run.usage.driven.by


@dataclass(frozen=True)
class Mark:
    """A mark. `second`, and `until` for a span: since measuring began. `kind`: a word or two.

    `work`: background work of the server that writes to disk, so it is drawn with the disk's line.
    """

    kind: str
    second: float
    text: str
    until: float | None = None
    work: bool = False


@dataclass(frozen=True)
class TimedRun:
    """A run to read marks from. `zero_s`: start of measuring on the trace's clock; `over_s`: its duration."""

    run: RunRecord
    trace: Trace | None
    zero_s: float
    over_s: float | None

    @property
    def places(self) -> bool:
        """Whether the position of second 0 on the trace's clock is known."""
        return self.over_s is not None or self.trace is not None


Source = Callable[[TimedRun], Iterator[Mark]]
"""Source of marks; yields nothing for a run without its data."""

_EVENT_TEXT = {
    "missed": "tare-probe missed ticks",
    "suspended": "the machine slept",
    "dropped": "tare-probe dropped rows",
}
"""Event of a trace → its meaning: docs/reference/trace-format.md."""
_MIB = float(1 << 20)
_TROUBLES = ("errors", "reconnects")
_ENDED = re.compile(f"{OF_SUT}|^proxy$")
"""Targets whose processes must not end while measuring."""


def marks_of(timed: TimedRun) -> tuple[Mark, ...]:
    """Marks of a run, in the order of time."""
    marks = (mark for source in SOURCES.values() for mark in source(timed))
    return tuple(sorted(marks, key=lambda mark: (mark.second, mark.kind)))


def of_trace(timed: TimedRun) -> Iterator[Mark]:
    """Yield gaps of the recording, and ends of server or docker-proxy while measuring."""
    events = None if timed.trace is None else timed.trace.table("event")
    if events is None:
        return
    for row in events.sort("at_ns").iter_rows(named=True):
        second = round(row["at_ns"] / 1e9 - timed.zero_s, 2)
        if row["what"] in _EVENT_TEXT:
            yield Mark("recording", second, f"{_EVENT_TEXT[row['what']]}: {row['detail']}")
        elif row["what"] == "vanished" and _ENDED.match(row["name"] or "") and _while_measuring(second, timed):
            yield Mark("process", second, f"{row['name']} ended: {row['detail']}")


def _while_measuring(second: float, timed: TimedRun) -> bool:
    """Whether a moment is in the measure phase, less two ticks: a program that is itself the SUT ends with it."""
    slack = 0.0 if timed.trace is None else 2 * timed.trace.period_ns / 1e9
    return timed.over_s is not None and 0 <= second < timed.over_s - slack


def of_windows(timed: TimedRun) -> Iterator[Mark]:
    """Yield errors and reconnects of the generator, one mark for each row of windows that have any."""
    for troubled, group in groupby(
        windows_of(timed.run, timed.zero_s), key=lambda one: bool(_troubles(one.window))
    ):
        row = list(group)
        if troubled:
            worst = {what: max(_troubles(one.window).get(what, 0.0) for one in row) for what in _TROUBLES}
            text = ", ".join(f"up to {rate:g} {what}/s" for what, rate in worst.items() if rate)
            yield Mark("errors", round(row[0].span.began_s, 2), text, until=round(row[-1].span.ended_s, 2))


def _troubles(window: Window) -> Mapping[str, float]:
    """Kind of trouble → rate per second; zero and unknown rates are left out."""
    rates = {what: number_at(window, (f"{what}_per_s",)) for what in _TROUBLES}
    return {what: rate for what, rate in rates.items() if rate}


def of_duet(timed: TimedRun) -> Iterator[Mark]:
    """Yield the time when the two sides of a duet swapped their CPUs."""
    duet = timed.run.duet
    began, ended = duet and duet.swap_began_s, duet and duet.swap_ended_s
    if began is not None and ended is not None and timed.places:
        second, until = (round(at - timed.zero_s, 2) for at in (began, ended))
        yield Mark("duet", second, "the CPU sets were swapped", until=until)


def of_chronicle(timed: TimedRun) -> Iterator[Mark]:
    """Yield background work that the server reported, such as compactions; without a start, it is a moment."""
    told = timed.run.chronicle
    for event in told.events if told is not None and timed.places else ():
        began, ended = event.began_monotonic_s, event.ended_monotonic_s
        if ended is None:
            continue
        amounts = ((event.read_bytes, "read"), (event.written_bytes, "written"))
        moved = [f"{amount / _MIB:.3g} MiB {way}" for amount, way in amounts if amount is not None]
        at = f" at {event.node}" if event.node else ""
        yield Mark(
            event.kind,
            round((ended if began is None else began) - timed.zero_s, 2),
            ": ".join(filter(None, [f"{event.kind} of {event.name}{at}", ", ".join(moved)])),
            until=None if began is None else round(ended - timed.zero_s, 2),
            work=True,
        )


SOURCES: Mapping[str, Source] = {
    "trace": of_trace,
    "windows": of_windows,
    "duet": of_duet,
    "chronicle": of_chronicle,
}
"""Sources of marks."""
