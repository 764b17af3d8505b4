"""A protocol for tests: every block in the order given, ending after a given block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tare.protocols import Turn
from tare.protocols.stopping import Decision, End, Finished
from tare.study.protocol_spec import Repetition


@dataclass
class AsListed:
    """No randomisation; `stop_after`: number of blocks after which to stop, `None` for never."""

    stop_after: int | None = None
    published_baseline: bool = False
    at_once: bool = False
    as_one: bool = False

    def order(self, arms: Sequence[str], spec: Repetition, rng: np.random.Generator) -> tuple[Turn, ...]:
        """Return the arms as listed, `spec.blocks` times."""
        del rng
        return tuple(Turn(block, arm) for block in range(1, spec.blocks + 1) for arm in arms)

    def stop(self, baseline: str, finished: Sequence[Finished], spec: Repetition) -> Decision:
        """Stop once `stop_after` blocks are finished."""
        del baseline, spec
        done = self.stop_after is not None and len(finished) >= self.stop_after
        return Decision(len(finished), 0.0, End.TARGET if done else None, {})
