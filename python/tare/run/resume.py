"""What is left to do of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tare.plan.model import Plan, PlannedRun
from tare.run.record import RunRecord


@dataclass(frozen=True)
class Done:
    """What earlier sessions made: the runs with a good attempt, and how many attempts each run has had."""

    good: frozenset[str] = frozenset()
    attempts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, records: Iterable[RunRecord]) -> Done:
        """Read from the records of a store."""
        known = tuple(records)
        return cls(
            good=frozenset(record.run_id for record in known if record.outcome.ok),
            attempts=Counter(record.run_id for record in known),
        )


def remaining(plan: Plan, done: Done) -> tuple[PlannedRun, ...]:
    """Runs without a good attempt, in the order of the plan."""
    return tuple(run for run in plan.runs if run.id not in done.good)
