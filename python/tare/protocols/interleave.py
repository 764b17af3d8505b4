"""Randomised complete blocks: every arm once a block, in an order of its own in each block.

Pairing by block takes out what drifts slower than a block lasts; random order keeps what drifts within one
from falling on the same arm every time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tare.protocols import Block, Finished
from tare.study.model import ProtocolSpec


class Interleave:
    """A fixed number of randomised complete blocks."""

    def order(self, arms: Sequence[str], spec: ProtocolSpec, rng: np.random.Generator) -> tuple[Block, ...]:
        """`spec.blocks` independent uniform permutations of the arms."""
        return tuple(_shuffled(arms, rng) for _ in range(spec.blocks))

    def stop(self, baseline: str, finished: Sequence[Finished], spec: ProtocolSpec) -> str | None:
        """Never early: the number of blocks was fixed before anything was seen."""
        del baseline, finished, spec
        return None


def _shuffled(arms: Sequence[str], rng: np.random.Generator) -> Block:
    # Raw bits, since NumPy keeps a bit generator's stream from release to release but not that of
    # Generator.permutation (NEP 19), and a plan has to come out the same next year.
    keys = rng.bit_generator.random_raw(len(arms))
    return tuple(arms[n] for n in np.argsort(keys, kind="stable"))
