"""A protocol for tests: every block in the order given, over after a block that it was told of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tare.protocols import Block, Finished
from tare.study.model import ProtocolSpec


@dataclass(frozen=True)
class AsListed:
    """No randomisation; `stop_after`: number of blocks after which it says to stop, `None` for never."""

    stop_after: int | None = None

    def order(self, arms: Sequence[str], spec: ProtocolSpec, rng: np.random.Generator) -> tuple[Block, ...]:
        """The arms as listed, `spec.blocks` times."""
        del rng
        return tuple(tuple(arms) for _ in range(spec.blocks))

    def stop(self, baseline: str, finished: Sequence[Finished], spec: ProtocolSpec) -> str | None:
        """Stops once `stop_after` blocks are finished."""
        del baseline, spec
        done = self.stop_after is not None and len(finished) >= self.stop_after
        return f"{self.stop_after} blocks are enough" if done else None
