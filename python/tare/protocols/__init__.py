"""Protocols: how often each arm runs, in what order, and when enough is known.

A plan holds all blocks that a protocol may need. After each block, the protocol decides whether to stop: one with a
fixed number of blocks stops after the last, a sequential one when its rule is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tare.protocols.stopping import Decision, Finished
from tare.requirements import Requirement
from tare.study.protocol_spec import Repetition

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Turn:
    """One run of an arm. `block`: from 1; each block has one turn of every arm, in a duet of two arms."""

    block: int
    arm: str


class RunProtocol(Protocol):
    """A way to repeat and order the runs of a study."""

    published_baseline: bool
    """Whether it follows publications and serves as a baseline for comparison, marked in every report; see
    `as_published`."""
    at_once: bool
    """Whether a block is the baseline and one other arm at the same time, which is not the operating point of one
    alone."""
    as_one: bool
    """Whether the runs of a block share time, and are kept or discarded together."""
    needs: tuple[Requirement, ...]
    """What every host that a block runs on must have."""

    def order(self, arms: Sequence[str], spec: Repetition, rng: np.random.Generator) -> tuple[Turn, ...]:
        """Return all turns up to the cap `spec.blocks` in order; the same generator state gives the same order.

        `arms`: in the study's order; the baseline first if `at_once`.
        """
        ...

    def stop(self, baseline: str, finished: Sequence[Finished], spec: Repetition) -> Decision:
        """Decide from the finished blocks only whether another block starts, with what is known of each arm."""
        ...
