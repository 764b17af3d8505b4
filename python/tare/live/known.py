"""A store's attempts, read incrementally: a new run costs one row, not all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tare.plan.model import Plan
from tare.protocols.registry import PROTOCOLS
from tare.protocols.stopping import Decision, Finished
from tare.run.resume import StudyState, decision, finished
from tare.store import Store
from tare.store.outlines import Outline, outlines

STEPS = 60
"""Most steps of the trail: a step evaluates all blocks before it, and a chart has no room for more."""


@dataclass(frozen=True)
class Known:
    """Content of a store. `attempts`: run → its attempts as they were committed.

    `steps`: number of finished blocks → what was known after them, for at most `STEPS` numbers and always the last.
    """

    store_id: str
    plan: Plan
    row: int = 0
    attempts: Mapping[str, tuple[Outline, ...]] = field(default_factory=dict)
    done: StudyState = field(default_factory=StudyState)
    blocks: tuple[Finished, ...] = ()
    steps: Mapping[int, Decision] = field(default_factory=dict)
    last: Outline | None = None
    """The newest attempt."""

    @property
    def seen(self) -> set[tuple[str, int]]:
        """(run, attempt) of every attempt."""
        return {(run, outline.attempt) for run, made in self.attempts.items() for outline in made}

    @property
    def trail(self) -> tuple[Decision, ...]:
        """What was known after some numbers of blocks, in order."""
        return tuple(self.steps.values())

    @property
    def decision(self) -> Decision:
        """The protocol's current decision."""
        return self.trail[-1] if self.steps else decision(self.plan, self.done)


def known_of(store: Store, before: Known | None = None) -> Known:
    """Read what is new in the store. `before`: the result of the last call. Raises `StoreError`."""
    same = before is not None and before.store_id == store.id and before.plan.digest == store.plan.digest
    known = before if before is not None and same else Known(store.id, store.plan)
    new = outlines(store, known.row, () if store.place.is_directory else known.seen)
    if not new:
        return known
    attempts = dict(known.attempts)
    for outline in new:
        run = outline.made.run_id
        attempts[run] = (*attempts.get(run, ()), outline)
    done = known.done.plus_summaries(outline.made for outline in new)
    blocks = finished(known.plan, done)
    steps = known.steps if blocks == known.blocks else _steps(known, blocks)
    return Known(store.id, known.plan, new[-1].row, attempts, done, blocks, steps, new[-1])


def _steps(known: Known, blocks: tuple[Finished, ...]) -> Mapping[int, Decision]:
    """Compute only new steps, unless an earlier block has changed because a failed run of it was repeated."""
    kept = known.steps if blocks[: len(known.blocks)] == known.blocks else {}
    study = known.plan.study
    stop = PROTOCOLS[study.protocol.name].stop
    return {
        count: kept[count] if count in kept else stop(study.baseline, blocks[:count], study.protocol)
        for count in counts(len(blocks))
    }


def counts(blocks: int) -> tuple[int, ...]:
    """Numbers of blocks to show: evenly spaced, including the last.

    They are spaced by a power of two, so that a number stays shown as blocks are added, until the spacing doubles.
    """
    apart = 1
    while blocks > apart * STEPS:
        apart *= 2
    return tuple(sorted({*range(apart, blocks + 1, apart), *([blocks] if blocks else [])}))
