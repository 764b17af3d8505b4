"""Claims that contradict each other: about the same effect, and too far apart for both to be right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tare.knowledge.claim import Between, Claim, ClaimFile, Measured
from tare.knowledge.comparable import Key, key_of, of
from tare.knowledge.pool import half_width
from tare.knowledge.prior import SINGLE_SD, applicable

_NINETY_FIVE = 1.959963984540054
LEAST_GAP = 0.02
"""Smallest gap between the intervals of two contradicting claims, a log ratio: less would change no decision."""


@dataclass(frozen=True)
class Dispute:
    """Two claims that cannot both be true. `gap`: log ratio between the nearer ends of their 95 % intervals."""

    one: ClaimFile
    other: ClaimFile
    gap: float


def all_disputes(claims: Sequence[ClaimFile]) -> tuple[Dispute, ...]:
    """Return every pair, without weak sources, averages and claims with broken parity."""
    pairs = []
    for one, other in combinations(applicable(claims), 2):
        gap = _gap(one.claim, other.claim)
        if gap > LEAST_GAP and _of_the_same(one, other):
            pairs.append(Dispute(one, other, gap))
    return tuple(pairs)


def disputes(claims: Sequence[ClaimFile], wanted: Key, database: str | None) -> tuple[Dispute, ...]:
    """Return the disputes about the wanted effect: for this database or its family, without stated differences."""
    about = [
        known
        for known in claims
        if (key := key_of(known.claim)) is not None and not key.differences(wanted) and of(known.claim, database)
    ]
    return all_disputes(about)


def _of_the_same(one: ClaimFile, other: ClaimFile) -> bool:
    """Whether two claims state no difference, except in the machine and in how studies name a workload."""
    a, b, keys = one.claim.context, other.claim.context, (key_of(one.claim), key_of(other.claim))
    if a is None or b is None or keys[0] is None or keys[1] is None or keys[0].differences(keys[1]):
        return False
    pairs: list[tuple[object, object]] = [
        (a.arm.client, b.arm.client),
        (a.load.operation, b.load.operation),
        (a.load.level, b.load.level),
    ]
    if one.study == other.study:
        pairs += [(a.machine, b.machine), (a.load.threads, b.load.threads), (a.load.workload, b.load.workload)]
    return of(one.claim, b.database.name) and all(None in pair or pair[0] == pair[1] for pair in pairs)


def _gap(one: Claim, other: Claim) -> float:
    (low, high), (other_low, other_high) = _interval(one), _interval(other)
    return max(other_low - high, low - other_high)


def _interval(claim: Claim) -> tuple[float, float]:
    """Return the 95 % interval; of a single figure from the spread of single runs, of a range the range."""
    effect = claim.effect
    if isinstance(effect, Measured):
        reach = half_width(effect)
        reach = _NINETY_FIVE * (effect.se or SINGLE_SD) if reach is None else reach
        return effect.log_ratio - reach, effect.log_ratio + reach
    if not isinstance(effect, Between) or effect.absolute:
        return -math.inf, math.inf
    return (
        -math.inf if effect.low is None else effect.low,
        math.inf if effect.high is None else effect.high,
    )
