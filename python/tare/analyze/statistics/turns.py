"""Turns of a generation: how exact its ratios are, and whether one arm's turn carries over to the next.

The ratio of two arms in a generation is that of their operations a second over all its turns, so that a server's
stalls count in full; a median over rounds would hide them. Operations are counted in turns of known length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tare.record.measurement import TurnCounts
from tare.record.run_record import RunRecord

Table = Sequence[NDArray[np.float64]]
"""For each arm its turns, round by round."""
FEWEST_AFTER = 5
"""Turns after one arm below which nothing is said of what it leaves behind."""


@dataclass(frozen=True)
class Generation:
    """Measured turns of the arms that took turns.

    `numbers`: place of each turn among all turns of the generation. `rates`: operations a second in each turn.
    `first`: the same in the first half of the turn. `begun_late`: turns that began to count while the arm before
    still had operations under way.
    """

    block: int
    arms: tuple[str, ...]
    numbers: Sequence[NDArray[np.int64]]
    rates: Table
    first: Table
    begun_late: Sequence[NDArray[np.bool_]]

    def row(self, arm: str) -> int:
        """Row of an arm."""
        return self.arms.index(arm)

    def log_ratio(self, arm: str, baseline: str) -> float:
        """Log of an arm's rate over all turns, relative to the baseline's."""
        return math.log(self.rates[self.row(arm)].mean() / self.rates[self.row(baseline)].mean())

    def error_within(self, arm: str, baseline: str) -> float:
        """Standard error of `log_ratio` from the spread between rounds, with both rates of a round paired."""
        differences = self._relative(arm) - self._relative(baseline)
        return float(differences.std(ddof=1)) / math.sqrt(len(differences))

    @property
    def rounds(self) -> int:
        """Number of rounds: an arm has at least one turn in each."""
        return min(len(each) for each in self.numbers)

    def _relative(self, arm: str) -> NDArray[np.float64]:
        """Rate in each round, relative to the mean; a baseline may have several turns in a round."""
        rates = self.rates[self.row(arm)].reshape(self.rounds, -1).mean(axis=1)
        relative: NDArray[np.float64] = rates / rates.mean()
        return relative

    def rise(self, arm: str) -> float:
        """Log of the rate in the second half of an arm's turns, relative to that in the first half."""
        first, whole = self.first[self.row(arm)].mean(), self.rates[self.row(arm)].mean()
        return math.log((2 * whole - first) / first) if 0 < first < 2 * whole else math.nan

    def after(self, arm: str, before: str) -> float:
        """Relative difference of an arm's rate directly after `before` from that after the other arms.

        NaN if `before` rarely or always preceded it.
        """
        known = self._after[self.row(arm)]
        others = [effect for row, effect in known.items() if row != self.row(before)]
        if self.row(before) not in known or not others:
            return math.nan
        return known[self.row(before)] - float(np.mean(others))

    @cached_property
    def _after(self) -> Mapping[int, Mapping[int, float]]:
        """Row of an arm → row of the arm before → effect on the rate, as least squares with effects of rounds.

        Effects of rounds are removed first (Frisch & Waugh 1933); differences within an arm are then unique.
        """
        arms, rounds = len(self.arms), self.rounds
        pairs = [
            (row, before)
            for row in range(arms)
            for before in range(arms)
            if (self._before[row] == before).sum() >= FEWEST_AFTER
        ]
        each = range(arms)
        row_of = np.concatenate([np.full(len(self.numbers[row]), row) for row in each])
        round_of = np.concatenate([np.repeat(np.arange(rounds), len(self.numbers[row]) // rounds) for row in each])
        before_of = np.concatenate(self._before)
        relative = np.concatenate([self.rates[row] / self.rates[row].mean() for row in each])
        design = np.array([(row_of == row) & (before_of == before) for row, before in pairs], dtype=float).T
        counted = before_of >= 0
        x = _without_rounds(design, round_of)[counted] if pairs else design
        y = _without_rounds(relative, round_of)[counted]
        effects = np.linalg.lstsq(x, y, rcond=None)[0] if pairs else []
        found: dict[int, dict[int, float]] = {row: {} for row in range(arms)}
        for (row, before), effect in zip(pairs, effects, strict=True):
            found[row][before] = float(effect)
        return found

    @cached_property
    def _before(self) -> Sequence[NDArray[np.int64]]:
        """Row of the arm that had the turn before each turn; -1 if it is unknown."""
        owner = {int(number): row for row, each in enumerate(self.numbers) for number in each}
        return [np.array([owner.get(int(number) - 1, -1) for number in each]) for each in self.numbers]


def _without_rounds(values: NDArray[np.float64], round_of: NDArray[np.int64]) -> NDArray[np.float64]:
    """Subtract the mean of each round."""
    means = np.array([values[round_of == each].mean(axis=0) for each in range(round_of.max() + 1)])
    rest: NDArray[np.float64] = values - means[round_of]
    return rest


@dataclass(frozen=True)
class Spread:
    """Variance of an arm's log ratio: of a generation's value about its true one, and between these."""

    within: float
    between: float

    @property
    def helps(self) -> str:
        """What makes the interval narrower at the least cost."""
        return "rounds" if self.within > self.between else "generations"


def spread_of(generations: Sequence[Generation], arm: str, baseline: str) -> Spread | None:
    """Divide the variance between generations (method of moments); `None` for fewer than two of them."""
    if len(generations) < 2:
        return None
    within = float(np.mean([each.error_within(arm, baseline) ** 2 for each in generations]))
    whole = float(np.var([each.log_ratio(arm, baseline) for each in generations], ddof=1))
    return Spread(within, max(0.0, whole - within))


def generations_of(records: Sequence[RunRecord]) -> tuple[Generation, ...]:
    """Return the generations of these good runs in the order of their blocks; runs without turns are left out."""
    blocks: dict[int, list[RunRecord]] = {}
    for record in records:
        if record.rotation is not None and record.measurement is not None and record.measurement.turns is not None:
            blocks.setdefault(record.block, []).append(record)
    return tuple(_generation(block, blocks[block]) for block in sorted(blocks))


def _generation(block: int, records: Sequence[RunRecord]) -> Generation:
    ordered = sorted(records, key=lambda record: record.arm)
    turns = [turns for record in ordered if (turns := record.measurement and record.measurement.turns) is not None]
    seconds = [np.subtract(each.ends_s, each.settled_s) for each in turns]
    numbers = [np.array(record.rotation.numbers, dtype=np.int64) for record in ordered if record.rotation]
    return Generation(
        block,
        tuple(record.arm for record in ordered),
        numbers,
        [np.array(each.operations) / long_s for each, long_s in zip(turns, seconds, strict=True)],
        [2 * np.array(each.first_half) / long_s for each, long_s in zip(turns, seconds, strict=True)],
        _begun_late(ordered, turns, numbers),
    )


def _begun_late(
    records: Sequence[RunRecord], turns: Sequence[TurnCounts], numbers: Sequence[NDArray[np.int64]]
) -> Sequence[NDArray[np.bool_]]:
    """Flag turns that began to count before the last operation of the turn before had ended."""
    ended: dict[int, float] = {}
    settled = [np.zeros(len(each)) for each in numbers]
    for row, (record, each) in enumerate(zip(records, turns, strict=True)):
        # Each client counts time from the start of its own first measured turn.
        zero_s = record.rotation.began_s if record.rotation else 0.0
        for place, number in enumerate(numbers[row]):
            settled[row][place] = zero_s + each.settled_s[place]
            if (last_s := each.last_s[place]) is not None:
                ended[int(number)] = zero_s + last_s
    late = [np.array([ended.get(int(number) - 1, -math.inf) for number in each]) for each in numbers]
    return [last > from_s for last, from_s in zip(late, settled, strict=True)]
