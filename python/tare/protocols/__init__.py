"""Protocols: how often each arm is run, in what order, and when enough is known.

A plan holds all the blocks that a protocol may need. Between two blocks the protocol is asked whether to stop;
one with a fixed number of blocks never says so, a sequential one does when its rule is met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tare.study.model import ProtocolSpec

Block = tuple[str, ...]
"""The arms of one block, in the order in which they run."""


@dataclass(frozen=True)
class Finished:
    """A block that is over: arm → its throughput, `None` where no attempt gave a usable result."""

    block: int
    throughput_per_s: Mapping[str, float | None]


class RunProtocol(Protocol):
    """A way to repeat and order the runs of a study."""

    def order(self, arms: Sequence[str], spec: ProtocolSpec, rng: np.random.Generator) -> tuple[Block, ...]:
        """All blocks up to the cap `spec.blocks`; the same generator state gives the same order."""
        ...

    def stop(self, baseline: str, finished: Sequence[Finished], spec: ProtocolSpec) -> str | None:
        """Why no further block is needed, `None` to go on to the next planned one."""
        ...


from tare.protocols.interleave import Interleave  # noqa: E402 - builds on the contract above

PROTOCOLS: Mapping[str, RunProtocol] = {"interleave": Interleave()}
