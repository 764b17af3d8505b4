"""The turns of one generation on the monotonic clock. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from tare.protocols.rotate import rounds
from tare.protocols.turn_pilot import LENGTHS_MS, SLICES, rounds_tried
from tare.record.turns import Rotation
from tare.study.protocol_spec import RotateSpec
from tare.workloads import Parameters
from tare.workloads.turns import TurnSpan, turns_file

_NS_PER_MS = 1_000_000
_WARM_UP_MS = 120.0
"""Turns of a pilot's warm-up."""


@dataclass(frozen=True)
class Length:
    """How long an arm settles in a turn, and how long it is measured then."""

    settle_ns: int
    turn_ns: int

    @classmethod
    def of(cls, settle_ms: float, turn_ms: float) -> Length:
        """Make one from milliseconds."""
        return cls(round(settle_ms * _NS_PER_MS), round(turn_ms * _NS_PER_MS))

    @property
    def whole_ns(self) -> int:
        """Length of the turn."""
        return self.settle_ns + self.turn_ns


@dataclass(frozen=True)
class Schedule:
    """Arms of each round in their order, those of the warm-up first. `lengths`: of the turns of each round.

    `slices`: parts of a turn in which operations are counted, too. Times are nanoseconds from the first turn.
    """

    order: tuple[tuple[str, ...], ...]
    warm_up_rounds: int
    lengths: tuple[Length, ...]
    slices: int = 0

    @classmethod
    def of(cls, spec: RotateSpec, parameters: Parameters, turns: Mapping[str, int], seed: int) -> Schedule:
        """Draw a schedule. `parameters`: of any arm, as lengths are equal; `turns`: of each arm in a round."""
        warm_up, measured = spec.warm_up_rounds_of(parameters.warmup_s), spec.rounds_of(parameters.measure_s)
        order = rounds(tuple(turns), warm_up + measured, np.random.Generator(np.random.PCG64(seed)), turns)
        return cls(order, warm_up, (Length.of(spec.settling_ms, spec.measured_ms),) * len(order))

    @classmethod
    def of_pilot(cls, parameters: Parameters, arms: Sequence[str], seed: int) -> Schedule:
        """Draw a pilot's schedule: turns of each length, the shortest first, counted from their start on."""
        warm_up, each = math.ceil(parameters.warmup_s * 1000 / _WARM_UP_MS) or 1, rounds_tried(len(arms))
        order = rounds(arms, warm_up + each * len(LENGTHS_MS), np.random.Generator(np.random.PCG64(seed)))
        lengths = [_WARM_UP_MS] * warm_up + [length for length in LENGTHS_MS for _ in range(each)]
        return cls(order, warm_up, tuple(Length.of(1, length - 1) for length in lengths), SLICES)

    @cached_property
    def flat(self) -> tuple[str, ...]:
        """The arm of each turn."""
        return tuple(arm for each in self.order for arm in each)

    @cached_property
    def places(self) -> Mapping[str, tuple[int, ...]]:
        """Arm → numbers of its turns, those of the warm-up included."""
        found: dict[str, list[int]] = {}
        for number, arm in enumerate(self.flat):
            found.setdefault(arm, []).append(number)
        return {arm: tuple(numbers) for arm, numbers in found.items()}

    def measured(self, arm: str) -> tuple[int, ...]:
        """Return the numbers of an arm's measured turns."""
        places = self.places[arm]
        return places[self.warm_up_rounds * len(places) // len(self.order) :]

    def described(self, arm: str, base_ns: int | None) -> Rotation:
        """Return the record's `rotation`.

        `base_ns`: start of the first turn on CLOCK_MONOTONIC; `None` if no turn was taken.
        """
        return Rotation(
            arms=len(self.places),
            turn_ms=self.lengths[-1].turn_ns / _NS_PER_MS,
            settle_ms=self.lengths[-1].settle_ns / _NS_PER_MS,
            numbers=tuple(self.measured(arm)),
            warm_up_rounds=self.warm_up_rounds,
            turns=len(self.flat),
            warm_up_turns=sum(len(each) for each in self.order[: self.warm_up_rounds]),
            began_monotonic_s=None if base_ns is None else base_ns / 1e9,
        )

    @property
    def warm_up_s(self) -> float:
        """Length of the warm-up's rounds."""
        return self._starts_ns[sum(len(each) for each in self.order[: self.warm_up_rounds])] / 1e9

    @property
    def seconds(self) -> float:
        """Length of all rounds."""
        return self._starts_ns[-1] / 1e9

    @cached_property
    def _turns(self) -> tuple[Length, ...]:
        return tuple(length for each, length in zip(self.order, self.lengths, strict=True) for _ in each)

    @cached_property
    def _starts_ns(self) -> tuple[int, ...]:
        """Start of each turn, and the end of the last one."""
        return tuple(accumulate((turn.whole_ns for turn in self._turns), initial=0))

    def span(self, number: int, base_ns: int = 0) -> TurnSpan:
        """Return the times of a turn."""
        start_ns, turn = base_ns + self._starts_ns[number], self._turns[number]
        return TurnSpan(start_ns, start_ns + turn.settle_ns, start_ns + turn.whole_ns)

    def file_of(self, arm: str, base_ns: int) -> bytes:
        """Render an arm's turns for its client. `base_ns`: start of the first turn on CLOCK_MONOTONIC."""
        spans = [self.span(number, base_ns) for number in self.places[arm]]
        warm_up = len(spans) - len(self.measured(arm))
        return turns_file(spans, warm_up, base_ns + self._starts_ns[-1], self.slices)
