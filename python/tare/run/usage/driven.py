"""When a generator drove load, on the machine's clock: a JVM measures seconds after its start, and ends later.

A generator's windows are on its own clock, which starts with it. `driven` finds that start and `spans_of` places
the windows; reports, duets and the live page all use them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

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


def shifted(span: Span, ahead_s: float) -> Span:
    """Return the same interval on a clock that is `ahead_s` ahead."""
    return Span(span.began_s + ahead_s, span.ended_s + ahead_s)


@dataclass(frozen=True)
class Driven:
    """The generator's own measurement. `by`: `generator` if it reported its start, else the phase's `end`.

    Without a report, its seconds are assumed to end with the phase, which places them too late by its shutdown
    time.
    """

    began_monotonic_s: float
    ended_monotonic_s: float
    by: Literal["generator", "end"]


@dataclass(frozen=True)
class Bounds:
    """Bounds of the moment at which a generator started to drive load, and for how long it did."""

    earliest_s: float
    latest_s: float
    seconds: float

    @classmethod
    def of(cls, drove: Driven, process_s: float) -> Bounds:
        """Make the bounds. Without a report, from the start of its process (`process_s`) to what its end allows."""
        began, seconds = drove.began_monotonic_s, drove.ended_monotonic_s - drove.began_monotonic_s
        if drove.by == "generator":
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


def driven(phase: Span, seconds: float, report: ReportedStart = NO_REPORT) -> Driven:
    """Locate the generator's `seconds` of load in a phase; a phase in progress ends with its last output.

    An impossible report is ignored.
    """
    reported = _reported_start(report, phase)
    began = phase.ended_s - seconds if reported is None else reported
    return Driven(began, min(began + seconds, phase.ended_s), "end" if reported is None else "generator")


def driving(usage: Mapping[str, Any] | None) -> Span | None:
    """Return when the generator drove load, from a record's `usage`; `None` if unknown."""
    answer = (usage or {}).get("driven")
    return None if answer is None else Span(answer["began_monotonic_s"], answer["ended_monotonic_s"])


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
