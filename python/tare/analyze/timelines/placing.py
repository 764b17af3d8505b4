"""Where the generator's own windows lie among what else is known of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tare.analyze.numbers import number_at
from tare.run.record import RunRecord
from tare.run.usage.driven import Span, driving, spans_of


@dataclass(frozen=True)
class Placed:
    """A window as a record tells it, and where it lies."""

    span: Span
    told: Mapping[str, Any]


def windows_of(run: RunRecord, zero_s: float | None) -> tuple[Placed, ...]:
    """The windows of a run, in seconds since `zero_s` on the trace's clock; without those that tell no end."""
    known = [
        each for each in (run.measurement or {}).get("windows") or () if number_at(each, ("end_s",)) is not None
    ]
    spans = spans_of([float(each["end_s"]) for each in known], windows_began(run, zero_s))
    return tuple(Placed(span, each) for span, each in zip(spans, known, strict=True))


def windows_began(run: RunRecord, zero_s: float | None) -> float:
    """When the generator began to measure, in seconds since `zero_s` on the trace's clock.

    0 where a record does not tell, as older ones do not: its windows are then taken to begin with the phase.
    """
    drove = driving(run.usage)
    return 0.0 if drove is None or zero_s is None else drove.began_s - zero_s


def placed_by(run: RunRecord) -> str | None:
    """How that is known: `generator` or `end`, as in `run.driven.Driven`; `None` where a record does not tell."""
    told = ((run.usage or {}).get("driven") or {}).get("by")
    return None if told is None else str(told)
