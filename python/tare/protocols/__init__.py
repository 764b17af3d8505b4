"""Protocols: how often each arm is run, in what order, and when enough is known.

A plan holds all the blocks that a protocol may need. Between two blocks the protocol is asked whether to stop;
one with a fixed number of blocks says so after the last only, a sequential one when its rule is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tare.protocols.stopping import Decision, Finished
from tare.study.protocol_spec import Repetition

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Turn:
    """One run of an arm. `block`: from 1; of each block every arm has one turn, in a duet two arms have."""

    block: int
    arm: str


class RunProtocol(Protocol):
    """A way to repeat and order the runs of a study."""

    published_baseline: bool
    """Kept as publications have it, to be compared with, and marked as that in every report; see `as_published`."""
    at_once: bool
    """A block is the baseline and one other arm, driven at the same time: not the operating point of one alone."""

    def order(self, arms: Sequence[str], spec: Repetition, rng: np.random.Generator) -> tuple[Turn, ...]:
        """All turns up to the cap `spec.blocks`, as they run; the same generator state gives the same order.

        `arms`: as the study has them; the baseline first where `at_once`.
        """
        ...

    def stop(self, baseline: str, finished: Sequence[Finished], spec: Repetition) -> Decision:
        """Whether a further block is to be begun, and what is known of each arm; from these blocks alone."""
        ...
