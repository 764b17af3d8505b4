"""The default: randomised complete blocks in mirrored pairs, until every arm is known well enough.

Every run starts its server anew from an identical copy of the data. Pairing by block cancels drift that is slower
than a block; the random order keeps drift within a block from always falling on the same arm; the mirrored order of
each second block (ABBA) cancels a steady drift in each pair of blocks, since every arm then has the same mean
position in time (Cox, "Some systematic experimental designs", Biometrika 38, 1951).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.protocols import Turn
from tare.protocols.shuffle import shuffled
from tare.protocols.stopping import Decision, Finished, Rule, decide
from tare.requirements import Requirement
from tare.study.protocol_spec import Repetition

if TYPE_CHECKING:
    import numpy as np


class Interleave:
    """Pairs of blocks: the first in random order, the second in reverse order."""

    published_baseline = False
    at_once = False
    as_one = False
    needs: tuple[Requirement, ...] = ()

    def order(self, arms: Sequence[str], spec: Repetition, rng: np.random.Generator) -> tuple[Turn, ...]:
        """Draw an independent uniform permutation of the arms for each pair of blocks."""
        turns: list[Turn] = []
        drawn: tuple[str, ...] = ()
        for block in range(1, spec.blocks + 1):
            drawn = shuffled(arms, rng) if block % 2 else drawn[::-1]
            turns += [Turn(block, arm) for arm in drawn]
        return tuple(turns)

    def stop(self, baseline: str, finished: Sequence[Finished], spec: Repetition) -> Decision:
        """Stop at the target width of every arm, or at a cap."""
        return decide(Rule.of(spec), baseline, finished)
