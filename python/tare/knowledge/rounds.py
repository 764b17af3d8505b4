"""How many rounds, and how much machine time, a study needs to know an overhead well enough."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tare.calibrate.archive import Archive
from tare.databases.registry import DATABASES
from tare.knowledge.advice import Advice
from tare.plan.datasets import data_sets
from tare.plan.estimate import EXPECTED_SPREAD, estimate
from tare.plan.model import Plan
from tare.plan.slow_starts import slow_starts
from tare.protocols.stopping import Rule, blocks_needed
from tare.workloads.registry import WORKLOADS

FINEST, COARSEST = 0.01, 0.05
_MOST_BLOCKS = 1000


@dataclass(frozen=True)
class Rounds:
    """Blocks for intervals of ± `target`, if `spread` is that from block to block. `seconds`: machine time.

    `enough`: whether these blocks are; where they are not, so many are the most that a study may have.
    """

    target: float
    spread: float
    spread_from: str
    blocks: int
    seconds: float | None
    enough: bool = True


def target_of(advice: Advice) -> float:
    """Half of the smallest overhead that is expected and not next to none, between ± 1 % and ± 5 %; else ± 2 %."""
    middles = [abs(sum(each.pool.bounds) / 2) for each in advice.forecasts if each.pool is not None]
    expected = [middle for middle in middles if middle > FINEST]
    return 0.02 if not expected else min(COARSEST, max(FINEST, round(min(expected) / 2, 3)))


def calibrated_spread(archive: Archive, machine_key: str) -> float | None:
    """Spread from block to block as the latest calibration of a machine found it; `None` where there is none."""
    known = [each.spread for each in archive.summaries(machine_key) if each.spread is not None]
    return known[-1] if known else None


def rounds_of(plan: Plan, target: float, spread: float | None = None) -> Rounds:
    """For the arms of `plan`. `spread`: as calibrated, `None`: what is expected of a machine that is not."""
    known = EXPECTED_SPREAD if spread is None else spread
    rule = replace(Rule(), target=target, blocks=_MOST_BLOCKS, seconds=None)
    blocks = blocks_needed(rule, 0.0, known) or _MOST_BLOCKS  # `None` only without a target
    found = estimate(plan, data_sets(WORKLOADS), slow_starts(DATABASES, WORKLOADS))
    whence = (
        "what tare expects of a machine that is not calibrated" if spread is None else "this machine's calibration"
    )
    return Rounds(target, known, whence, blocks, found.seconds_of(blocks), enough=blocks < _MOST_BLOCKS)
