"""Protocols: how often each arm is run, in what order, and when enough is known.

A plan holds all the blocks that a protocol may need. Between two blocks the protocol is asked whether to stop;
one with a fixed number of blocks says so after the last only, a sequential one when its rule is met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tare.protocols.stopping import Decision, Finished
from tare.study.model import Repetition


@dataclass(frozen=True)
class Turn:
    """One run of an arm. `block`: from 1; of each block every arm has one turn."""

    block: int
    arm: str


class RunProtocol(Protocol):
    """A way to repeat and order the runs of a study."""

    published_baseline: bool
    """Kept as publications have it, to be compared with, and marked as that in every report."""

    def order(self, arms: Sequence[str], spec: Repetition, rng: np.random.Generator) -> tuple[Turn, ...]:
        """All turns up to the cap `spec.blocks`, as they run; the same generator state gives the same order."""
        ...

    def stop(self, baseline: str, finished: Sequence[Finished], spec: Repetition) -> Decision:
        """Whether a further block is to be begun, and what is known of each arm; from these blocks alone."""
        ...


from tare.protocols.fixed import Buckets, Fixed  # noqa: E402 - built on the contract above
from tare.protocols.imported import AsImported  # noqa: E402 - built on the contract above
from tare.protocols.interleave import Interleave  # noqa: E402 - built on the contract above

IMPORTED = "imported"
"""The protocol of results that somebody else has measured: no study file can ask for it."""

PROTOCOLS: Mapping[str, RunProtocol] = {
    "interleave": Interleave(),
    "fixed": Fixed(),
    "buckets": Buckets(),
    IMPORTED: AsImported(),
}
