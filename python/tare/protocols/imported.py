"""Runs that somebody else has made: there is an end to them, and no order that is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.protocols import Turn
from tare.protocols.stopping import Decision, Finished, Rule, decide
from tare.study.model import Repetition

if TYPE_CHECKING:
    import numpy as np


class AsImported:
    """All blocks are there from the beginning."""

    published_baseline = False
    at_once = False

    def order(self, arms: Sequence[str], spec: Repetition, rng: np.random.Generator) -> tuple[Turn, ...]:
        """As listed: an order that means nothing."""
        del rng
        return tuple(Turn(block, arm) for block in range(1, spec.blocks + 1) for arm in arms)

    def stop(self, baseline: str, finished: Sequence[Finished], spec: Repetition) -> Decision:
        """After the last block."""
        return decide(Rule.of(spec), baseline, finished)
