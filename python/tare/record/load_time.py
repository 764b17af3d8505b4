"""When a generator drove load, on the machine's clock: a JVM measures seconds after its start, and ends later.

A generator's windows are on its own clock, which starts with it. `locate_load` finds that start and `spans_of`
places the windows; reports, duets and the live page all use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, final

_ZONES_S = 900.0
"""All time zones in use are whole quarters of an hour apart, and no generator takes half as long to start."""
BEGIN_TOLERANCE_S = 0.15
"""Uncertainty of a generator's reported start: the coarsest one, cassandra-stress, prints tenths of a second."""
_SLACK_S = 1.0
"""A generator may have started before the phase, which begins when its process is known."""


@dataclass(frozen=True)
class Span:
    """An interval of CLOCK_MONOTONIC, in seconds."""

    began_s: float
    ended_s: float

    @property
    def seconds(self) -> float:
        """Length of the interval."""
        return self.ended_s - self.began_s

    def shifted(self, ahead_s: float) -> Span:
        """Return the same interval on a clock that is `ahead_s` ahead."""
        return Span(self.began_s + ahead_s, self.ended_s + ahead_s)


@final
@dataclass(frozen=True, slots=True)
class LoadTime:
    """When the generator sent load, on the clock of the trace."""

    began_monotonic_s: float
    """When it began to measure."""
    ended_monotonic_s: float
    """When it had measured for as long as it reported."""
    by: Literal["generator", "end"]
    """`generator`: from its own report (`measurement.started_at`). `end`: the last `duration_s` of the phase, which
    is too late by the time that the generator took to end."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of the moment at which a generator started to drive load, and for how long it did."""

    earliest_s: float
    latest_s: float
    seconds: float

    @classmethod
    def of(cls, load: LoadTime, process_s: float) -> Bounds:
        """Make the bounds. Without a report, from the start of its process (`process_s`) to what its end allows."""
        began, seconds = load.began_monotonic_s, load.ended_monotonic_s - load.began_monotonic_s
        if load.by == "generator":
            return cls(began - BEGIN_TOLERANCE_S, began + BEGIN_TOLERANCE_S, seconds)
        return cls(min(process_s, began), began, seconds)


@dataclass(frozen=True)
class ReportedStart:
    """A generator's own report of its start, on its wall clock in whatever time zone.

    `started_at`: seconds since the epoch, `None` without a report; `ahead_s`: seconds by which the machine's wall
    clock is ahead of CLOCK_MONOTONIC.
    """

    started_at: float | None
    ahead_s: float


NO_REPORT = ReportedStart(None, 0.0)


def locate_load(phase: Span, seconds: float, report: ReportedStart = NO_REPORT) -> LoadTime:
    """Locate the generator's `seconds` of load in a phase; a phase in progress ends with its last output.

    An impossible report is ignored.
    """
    reported = _reported_start(report, phase)
    began = phase.ended_s - seconds if reported is None else reported
    return LoadTime(began, min(began + seconds, phase.ended_s), "end" if reported is None else "generator")


def spans_of(ends_s: Sequence[float], began_s: float) -> tuple[Span, ...]:
    """Place windows: each starts at the end of the one before it, the first when the generator started.

    `ends_s`: seconds since the generator's start; `began_s`: that start, on the clock of the result.
    """
    return tuple(Span(began_s + since, began_s + until) for since, until in pairwise((0.0, *ends_s)))


def _reported_start(report: ReportedStart, phase: Span) -> float | None:
    if report.started_at is None:
        return None
    at = report.started_at - report.ahead_s
    began = at - _ZONES_S * round((at - phase.began_s) / _ZONES_S)
    return began if phase.began_s - _SLACK_S <= began < phase.ended_s else None
