"""Where the generator's own windows lie among what else is known of a run."""

from __future__ import annotations

from tare.analyze.numbers import number_at
from tare.run.record import RunRecord


def windows_began(run: RunRecord, zero_s: float | None) -> float:
    """When the generator began to measure, in seconds since `zero_s` on the trace's clock.

    0 where a record does not tell, as older ones do not: its windows are then taken to begin with the phase.
    """
    began = number_at(run.usage, ("driven", "began_monotonic_s"))
    return 0.0 if began is None or zero_s is None else began - zero_s


def placed_by(run: RunRecord) -> str | None:
    """How that is known: `generator` or `end`, as in `run.driven.Driven`; `None` where a record does not tell."""
    told = ((run.usage or {}).get("driven") or {}).get("by")
    return None if told is None else str(told)
