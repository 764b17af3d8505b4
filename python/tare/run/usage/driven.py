"""When a generator drove, on the machine's clock: a JVM measures seconds after its start, and ends later too.

Its windows are on its own clock, which begins when it does. `driven` finds that moment and `spans_of` lays the
windows there; reports, duets and the live page all place them so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

_ZONES_S = 900.0
"""All time zones in use are whole quarters of an hour apart, and no generator takes half as long to begin."""
BEGIN_TOLERANCE_S = 0.15
"""By how much a word of when it began may be off: the coarsest generator, cassandra-stress, prints tenths."""
_SLACK_S = 1.0
"""A generator may have begun before the phase, which is taken from when its process is known."""


@dataclass(frozen=True)
class Span:
    """A stretch of CLOCK_MONOTONIC, seconds."""

    began_s: float
    ended_s: float


def shifted(span: Span, ahead_s: float) -> Span:
    """The same stretch by a clock that is so far ahead."""
    return Span(span.began_s + ahead_s, span.ended_s + ahead_s)


@dataclass(frozen=True)
class Driven:
    """The generator's own measurement. `by`: `generator`, which said when it began, or the phase's `end`.

    Of one that does not tell, its seconds are taken for those right before the phase ended; they then lie late by
    what it took to end.
    """

    began_monotonic_s: float
    ended_monotonic_s: float
    by: Literal["generator", "end"]


@dataclass(frozen=True)
class Bounds:
    """Between which moments of the machine's clock a generator began to drive, and for how long it did."""

    earliest_s: float
    latest_s: float
    seconds: float

    @classmethod
    def of(cls, drove: Driven, process_s: float) -> Bounds:
        """Of one that does not tell, not before its process began (`process_s`), nor later than its end allows."""
        began, seconds = drove.began_monotonic_s, drove.ended_monotonic_s - drove.began_monotonic_s
        if drove.by == "generator":
            return cls(began - BEGIN_TOLERANCE_S, began + BEGIN_TOLERANCE_S, seconds)
        return cls(min(process_s, began), began, seconds)


@dataclass(frozen=True)
class Word:
    """A generator's own word of when it began, by its wall clock, whatever its time zone.

    `started_at`: seconds since the epoch, `None` where it says nothing; `ahead_s`: what the machine's wall clock is
    ahead of CLOCK_MONOTONIC.
    """

    started_at: float | None
    ahead_s: float


SILENT = Word(None, 0.0)


def driven(phase: Span, seconds: float, word: Word = SILENT) -> Driven:
    """When the generator drove for `seconds`, within a phase that may still be under way: then up to its last word.

    A word that cannot be true is not taken.
    """
    reported = _reported_start(word, phase)
    began = phase.ended_s - seconds if reported is None else reported
    return Driven(began, min(began + seconds, phase.ended_s), "end" if reported is None else "generator")


def driving(usage: Mapping[str, Any] | None) -> Span | None:
    """When the generator drove, from a record's `usage`; `None` where that is not known."""
    answer = (usage or {}).get("driven")
    return None if answer is None else Span(answer["began_monotonic_s"], answer["ended_monotonic_s"])


def spans_of(ends_s: Sequence[float], began_s: float) -> tuple[Span, ...]:
    """Where windows lie: each from the end of the one before it, the first from when the generator began.

    `ends_s`: in seconds since it began; `began_s`: that moment, on the clock on which they are to lie.
    """
    return tuple(Span(began_s + since, began_s + until) for since, until in pairwise((0.0, *ends_s)))


def _reported_start(word: Word, phase: Span) -> float | None:
    if word.started_at is None:
        return None
    at = word.started_at - word.ahead_s
    began = at - _ZONES_S * round((at - phase.began_s) / _ZONES_S)
    return began if phase.began_s - _SLACK_S <= began < phase.ended_s else None
