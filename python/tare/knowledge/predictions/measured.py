"""Measurements of an arm against its baseline, and the blocks in which either fell behind its rate."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.analyze.metrics import METRICS
from tare.knowledge.predictions.model_error import LATENCY
from tare.knowledge.predictions.profile import kept_rate
from tare.knowledge.unit_costs import FEWEST
from tare.record.run_record import RunRecord

MOST_BEHIND = 1
"""Most blocks in which an arm may fall behind its rate and still have a latency. The machine may cause one. If an
arm saturates now and then, the other blocks are its fastest ones and would overstate its speed."""


@dataclass(frozen=True)
class Kept:
    """How often an arm kept up with its rate.

    `blocks`: number of blocks in which its baseline did; `behind`: how many of these the arm fell behind in;
    `dropped`: blocks without a latency, as the arm or its baseline fell behind.
    """

    blocks: int
    behind: int
    dropped: int

    @property
    def fell_behind(self) -> bool | None:
        """Whether it fell behind in more blocks than chance explains; `None` for too few blocks."""
        return None if self.blocks < FEWEST else self.behind > MOST_BEHIND


@dataclass(frozen=True)
class RateOutcome:
    """Whether an arm falls behind its rate, predicted from unit costs and measured. `store`: its plan's digest."""

    store: str
    study: str
    arm: str
    predicted: bool
    measured: bool
    kept: Kept

    @property
    def right(self) -> bool:
        """Whether the prediction was correct."""
        return self.predicted == self.measured


@dataclass(frozen=True)
class Measured:
    """A log ratio and its standard error, `None` for too few blocks. `kept`: only for a latency at a rate."""

    log_ratio: float | None
    se: float | None
    kept: Kept | None = None


def measured(own: Mapping[int, RunRecord], bare: Mapping[int, RunRecord], metric: str) -> Measured:
    """Compare an arm's good runs with its baseline's, block by block.

    Latency counts only if both kept up with the rate, since otherwise it depends on the length of the run; CPU time
    per operation always counts.
    """
    blocks = [block for block in own if block in bare]
    if metric != LATENCY:
        return _of_logs(_logs(own, bare, blocks, metric))
    usable = [block for block in blocks if kept_rate(bare[block])]
    left = [block for block in usable if kept_rate(own[block])]
    kept = Kept(len(usable), len(usable) - len(left), len(blocks) - len(left))
    logs = _logs(own, bare, left, metric) if kept.dropped <= MOST_BEHIND else []
    return _of_logs(logs, kept)


def _of_logs(logs: Sequence[float], kept: Kept | None = None) -> Measured:
    return Measured(
        statistics.fmean(logs) if logs else None,
        statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) >= FEWEST else None,
        kept,
    )


def _logs(
    own: Mapping[int, RunRecord], bare: Mapping[int, RunRecord], blocks: Sequence[int], metric: str
) -> list[float]:
    of = METRICS[metric].of
    return [math.log(above / below) for block in blocks if (above := of(own[block])) and (below := of(bare[block]))]
