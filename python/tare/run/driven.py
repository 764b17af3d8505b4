"""When the generator drove, on the trace's clock: a JVM measures seconds after its start, and ends later too."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tare.run.record import Phase, PhaseTime
from tare.run.traced import span_of
from tare.run.trimming import Span

_ZONES_S = 900.0
"""All time zones in use are whole quarters of an hour apart, and no generator takes half as long to begin."""
_SLACK_S = 1.0
"""A generator may have begun before the phase, which is taken from when its process is known."""


@dataclass(frozen=True)
class Driven:
    """The generator's own measurement. `by`: `generator`, which told when it began, or the phase's `end`.

    Of one that does not tell, its seconds are taken for those right before the phase ended; they then lie late by
    what it took to end.
    """

    began_monotonic_s: float
    ended_monotonic_s: float
    by: Literal["generator", "end"]


def with_driven(
    usage: Mapping[str, Any] | None, measurement: Mapping[str, Any] | None, times: Sequence[PhaseTime]
) -> Mapping[str, Any] | None:
    """`usage` with `driven`: a `Driven`; without it where there is no measurement, or not how long it took."""
    phase, seconds = span_of(usage), (measurement or {}).get("duration_s")
    if usage is None or measurement is None or phase is None or seconds is None:
        return usage
    told = _told(measurement.get("started_at"), phase, times)
    began = phase.ended_s - seconds if told is None else told
    found = Driven(began, min(began + seconds, phase.ended_s), "end" if told is None else "generator")
    return {**usage, "driven": dataclasses.asdict(found)}


def driving(usage: Mapping[str, Any] | None) -> Span | None:
    """When the generator drove, `None` where that is not known."""
    driven = (usage or {}).get("driven")
    return None if driven is None else Span(driven["began_monotonic_s"], driven["ended_monotonic_s"])


def _told(started_at: float | None, phase: Span, times: Sequence[PhaseTime]) -> float | None:
    """The generator's word on the trace's clock, whatever its time zone; `None` where it cannot be true."""
    known = [time for time in times if time.phase is Phase.MEASURE and time.monotonic_s is not None]
    if started_at is None or not known or known[-1].monotonic_s is None:
        return None
    at = started_at - known[-1].began_at + known[-1].monotonic_s
    began = at - _ZONES_S * round((at - phase.began_s) / _ZONES_S)
    return began if phase.began_s - _SLACK_S <= began < phase.ended_s else None
