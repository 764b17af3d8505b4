"""The servers of all arms at once, driven one at a time in short turns.

Whatever the machine does more slowly than a round does to all arms alike, and the driven arm has the machine to
itself. Restarted servers differ, so a generation of servers is the unit of replication, not a round. Turns are
ordered as in Williams, "Experimental designs balanced for the estimation of residual effects of treatments",
Australian Journal of Scientific Research A 2 (1949): each turn follows each other turn of a round equally often.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from tare.protocols import Turn
from tare.protocols.shuffle import shuffled
from tare.protocols.stopping import Decision, Finished, Rule, decide
from tare.requirements import Requirement
from tare.requirements.cpus import CPUS_OF_PROTOCOL
from tare.study.protocol_spec import Repetition

if TYPE_CHECKING:
    import numpy as np


class Rotate:
    """Generations: a block has all arms; its runs share the time in which they take turns."""

    published_baseline = False
    at_once = False
    as_one = True
    needs: tuple[Requirement, ...] = (CPUS_OF_PROTOCOL,)

    def order(self, arms: Sequence[str], spec: Repetition, rng: np.random.Generator) -> tuple[Turn, ...]:
        """Draw the order in which the servers of each generation start."""
        return tuple(Turn(block, arm) for block in range(1, spec.blocks + 1) for arm in shuffled(arms, rng))

    def stop(self, baseline: str, finished: Sequence[Finished], spec: Repetition) -> Decision:
        """Stop at the target width of every arm, or at a cap."""
        return decide(Rule.of(spec), baseline, finished)


def turns_a_round(baselines: Mapping[str, str]) -> Mapping[str, int]:
    """Return the turns of each arm in a round. `baselines`: arm → the arm that it is compared with, itself for one.

    One, and √k for a baseline of k arms, which all share its error: Dunnett, "A multiple comparison procedure for
    comparing several treatments with a control", JASA 50 (1955).
    """
    shared = Counter(baseline for arm, baseline in baselines.items() if arm != baseline)
    return {arm: max(1, round(math.sqrt(shared[arm]))) for arm in baselines}


def rounds(
    arms: Sequence[str], count: int, rng: np.random.Generator, turns: Mapping[str, int] = MappingProxyType({})
) -> tuple[tuple[str, ...], ...]:
    """Return the order of the arms in each round. `turns`: arm → its turns in a round, if not one.

    Each Williams design is drawn anew: its arms are named and its rows are ordered at random, so that nothing
    periodic always falls on the same arm.
    """
    found: list[tuple[str, ...]] = []
    while len(found) < count:
        named = shuffled([arm for arm in arms for _ in range(turns.get(arm, 1))], rng)
        rows = [tuple(named[place] for place in row) for row in williams(len(named))]
        keys = rng.bit_generator.random_raw(len(rows))
        found += [rows[place] for place in keys.argsort(kind="stable")]
    return tuple(found[:count])


@cache
def williams(arms: int) -> tuple[tuple[int, ...], ...]:
    """Return the rows of the design: `arms` rows, or twice as many for an odd number.

    Each arm stands in each place, and directly after each other arm, equally often.
    """
    first = tuple(_zigzag(arms))
    rows = [tuple((place + shift) % arms for place in first) for shift in range(arms)]
    if arms % 2:
        rows += [row[::-1] for row in rows]
    return tuple(rows)


def _zigzag(arms: int) -> Iterator[int]:
    """Yield 0, 1, n - 1, 2, n - 2, …."""
    for place in range(arms):
        yield (place + 1) // 2 if place % 2 else (arms - place // 2) % arms
