"""Two arms at once, each on CPUs of its own, the CPUs swapped half-way, both servers started anew each block.

What the machine does to one it does to the other at the same moment, so it drops out of their ratio, however fast
it changes. Swapping takes out what the two sets of CPUs differ by. Bulej et al., "Duet benchmarking: improving
measurement accuracy in the cloud", ICPE 2020 (arXiv 2001.05811). The price: neither arm has the machine to itself,
caches, memory and kernel are loaded twice. It is another operating point, and reports say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.protocols import Turn
from tare.protocols.shuffle import shuffled
from tare.protocols.stopping import Decision, Finished, Rule, decide
from tare.study.protocol_spec import Repetition

if TYPE_CHECKING:
    import numpy as np


class Duet:
    """A block is the baseline with one other arm; the first of the two begins on the first set of CPUs."""

    published_baseline = False
    at_once = True

    def order(self, arms: Sequence[str], spec: Repetition, rng: np.random.Generator) -> tuple[Turn, ...]:
        """`spec.blocks` times each arm beside the baseline, in random order; each second time all backwards.

        Backwards holds for the order of the arms and for who begins on which CPUs: over two blocks of an arm both
        have begun on both.
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
        """At the target width of every arm, or at a cap; looked at when every arm has as many blocks."""
        others = len(finished[0].throughput_per_s) - 1 if finished else 1
        return decide(Rule.of(spec, others), baseline, finished)
