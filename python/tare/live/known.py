"""What a store says of its study, read on from where it was read before: a new run costs one row, not all."""

from __future__ import annotations

from dataclasses import dataclass, field

from tare.plan.model import Plan
from tare.protocols.registry import PROTOCOLS
from tare.protocols.stopping import Decision, Finished
from tare.run.resume import StudyState, decision, finished
from tare.store import Store
from tare.store.read import Outline, outlines


@dataclass(frozen=True)
class Known:
    """`attempts`: run → its attempts as they were committed. `trail`: what was known after 1, 2, … blocks."""

    store_id: str
    plan: Plan
    row: int = 0
    attempts: dict[str, tuple[Outline, ...]] = field(default_factory=dict)
    done: StudyState = field(default_factory=StudyState)
    blocks: tuple[Finished, ...] = ()
    trail: tuple[Decision, ...] = ()
    last: Outline | None = None
    """The newest attempt."""

    @property
    def decision(self) -> Decision:
        """What the protocol says now."""
        return self.trail[-1] if self.trail else decision(self.plan, self.done)


def known_of(store: Store, before: Known | None = None) -> Known:
    """What the store says now. `before`: what it said when it was last asked. Raises `StoreError`."""
    same = before is not None and before.store_id == store.id and before.plan.digest == store.plan.digest
    known = before if before is not None and same else Known(store.id, store.plan)
    new = outlines(store, known.row)
    if not new:
        return known
    attempts = dict(known.attempts)
    for outline in new:
        run = outline.record.run_id
        attempts[run] = (*attempts.get(run, ()), outline)
    done = known.done.plus(*(outline.record for outline in new))
    blocks = finished(known.plan, done)
    trail = known.trail if blocks == known.blocks else _trail(known, blocks)
    return Known(store.id, known.plan, new[-1].row, attempts, done, blocks, trail, new[-1])


def _trail(known: Known, blocks: tuple[Finished, ...]) -> tuple[Decision, ...]:
    """Only what is new, unless an earlier block has changed: a failed run of it was made good."""
    kept = len(known.blocks) if blocks[: len(known.blocks)] == known.blocks else 0
    study = known.plan.study
    stop = PROTOCOLS[study.protocol.name].stop
    made = tuple(stop(study.baseline, blocks[:count], study.protocol) for count in range(kept + 1, len(blocks) + 1))
    return (*known.trail[:kept], *made)
