"""Which block goes to which site, and how many blocks may start. Pure: only the seed decides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tare.plan.model import Plan
from tare.protocols.pilot import BLOCKS, is_piloted
from tare.protocols.registry import rule_of
from tare.protocols.stopping import Decision
from tare.record.pilot import Choice
from tare.record.run_record import RunRecord

_STREAM = 0x5173
"""Separates the random numbers of the assignment from those of the order and the runs, which use the same seed."""


def site_of_block(plan: Plan, sites: Sequence[str], block: int) -> str:
    """Return the site that a block is assigned to: each round, one block a site, is a seeded shuffle of the sites.

    So no site gets a second block before every other site has one, and the order of sites in their file is
    irrelevant.
    """
    import numpy as np  # slow to import, and who only plans needs none

    names = sorted(sites)
    turn, place = divmod(block - 1, len(names))
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([plan.seed, _STREAM, turn])))
    return names[int(rng.permutation(len(names))[place])]


def places_of(records: Iterable[RunRecord]) -> Mapping[int, str]:
    """Block → site of its first good run; the other runs of the block must be made there too."""
    places: dict[int, str] = {}
    for record in records:
        if record.outcome.ok and record.site is not None:
            places.setdefault(record.block, record.site)
    return places


def last_block(plan: Plan, decided: Decision, choice: Choice | None) -> int:
    """Return the last block that may start now, so that none starts that the protocol can do without.

    `decided`: after the finished blocks. Up to the next check of the target every block is needed, beyond it as
    many as the spread suggests. With a cap on machine time, as many as fit at the pace so far. With a pilot, no
    later block starts before its measure phase is chosen.
    """
    cap = max((run.block for run in plan.runs), default=0)
    if decided.end is not None:
        return decided.blocks
    if is_piloted(plan.study.protocol) and choice is None:
        cap = min(cap, BLOCKS)
    rule = rule_of(plan.study)
    if rule.seconds is not None and decided.blocks and decided.seconds > 0:
        cap = min(cap, max(decided.blocks + 1, math.floor(rule.seconds * decided.blocks / decided.seconds)))
    if rule.target is None:
        return cap
    made = decided.blocks // rule.blocks_each
    look = next((n for n in range(made + 1, rule.blocks) if rule.looks_at(n)), rule.blocks)
    expected = decided.blocks + rule.blocks_each * (decided.more_blocks or 0)
    return min(cap, max(look * rule.blocks_each, expected))
