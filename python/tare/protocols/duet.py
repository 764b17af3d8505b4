"""Two arms at once on separate CPU sets, which are swapped half-way; both servers restart in each block.

What the machine does to one arm it does to the other at the same moment, so it cancels in their ratio, however fast
it changes. The swap cancels differences between the CPU sets. Bulej et al., "Duet benchmarking: improving
measurement accuracy in the cloud", ICPE 2020 (arXiv 2001.05811). The price: neither arm has the machine to itself;
caches, memory and kernel carry twice the load. That is another operating point, and reports say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.protocols import Turn
from tare.protocols.shuffle import shuffled
from tare.protocols.stopping import Decision, Finished, Rule, decide
from tare.requirements import Requirement
from tare.requirements.cpus import CPUS_OF_PROTOCOL
from tare.study.protocol_spec import Repetition

if TYPE_CHECKING:
    import numpy as np


class Duet:
    """Duets: a block is the baseline with one other arm; the first of the two starts on the first CPU set."""

    published_baseline = False
    at_once = True
    as_one = True
    needs: tuple[Requirement, ...] = (CPUS_OF_PROTOCOL,)

    def order(self, arms: Sequence[str], spec: Repetition, rng: np.random.Generator) -> tuple[Turn, ...]:
        """Order each arm beside the baseline `spec.blocks` times at random; every second round is reversed.

        Reversing applies to the order of arms and to who starts on which CPUs: over two blocks of an arm, both have
        started on both CPU sets.
        """
        baseline, *others = arms
        turns: list[Turn] = []
        drawn: list[tuple[str, str]] = []
        for time in range(spec.blocks):
            if time % 2:
                drawn = [(second, first) for first, second in reversed(drawn)]
            else:
                pairs = [shuffled((baseline, other), rng) for other in shuffled(others, rng)]
                drawn = [(first, second) for first, second in pairs]
            for pair in drawn:
                block = len(turns) // 2 + 1
                turns += [Turn(block, arm) for arm in pair]
        return tuple(turns)

    def stop(self, baseline: str, finished: Sequence[Finished], spec: Repetition) -> Decision:
        """Stop at the target width of every arm, or at a cap; checked when all arms have as many blocks."""
        others = len(finished[0].throughput_per_s) - 1 if finished else 1
        return decide(Rule.of(spec, others), baseline, finished)
