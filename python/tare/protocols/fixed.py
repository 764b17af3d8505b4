"""A fixed number of runs, as in publications: baselines for comparison, not to be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.protocols import Turn
from tare.protocols.shuffle import shuffled
from tare.protocols.stopping import Decision, Finished, Rule, decide
from tare.requirements import Requirement
from tare.study.protocol_spec import BucketsSpec, FixedSpec, Repetition

if TYPE_CHECKING:
    import numpy as np


class Fixed:
    """Repetitions of each arm, spread out (grambow-2018: "not in direct sequence") or together."""

    published_baseline = True
    at_once = False
    as_one = False
    needs: tuple[Requirement, ...] = ()

    def order(self, arms: Sequence[str], spec: Repetition, rng: np.random.Generator) -> tuple[Turn, ...]:
        """Order runs. `spread`: random, an arm never twice in a row; `together`: all runs of an arm, as listed."""
        if not isinstance(spec, FixedSpec | BucketsSpec):
            raise TypeError(f"{spec!r} sets no sequence")
        if spec.sequence == "together":
            return tuple(Turn(block, arm) for arm in arms for block in range(1, spec.blocks + 1))
        turns: list[Turn] = []
        for block in range(1, spec.blocks + 1):
            order = list(shuffled(arms, rng))
            if turns and order[0] == turns[-1].arm:
                order.append(order.pop(0))
            turns += [Turn(block, arm) for arm in order]
        return tuple(turns)

    def stop(self, baseline: str, finished: Sequence[Finished], spec: Repetition) -> Decision:
        """Stop after the last run, whatever the results."""
        return decide(Rule.of(spec), baseline, finished)


class Buckets(Fixed):
    """The runs of `fixed`; the analysis differs: pooled windows of all runs, z = 1.96 (bth-thesis)."""


class AsImported:
    """Imported results, whose blocks all exist from the beginning."""

    published_baseline = False
    at_once = False
    as_one = False
    needs: tuple[Requirement, ...] = ()

    def order(self, arms: Sequence[str], spec: Repetition, rng: np.random.Generator) -> tuple[Turn, ...]:
        """Return the arms as listed: an order without meaning."""
        del rng
        return tuple(Turn(block, arm) for block in range(1, spec.blocks + 1) for arm in arms)

    def stop(self, baseline: str, finished: Sequence[Finished], spec: Repetition) -> Decision:
        """Stop after the last block."""
        return decide(Rule.of(spec), baseline, finished)
