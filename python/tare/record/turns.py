"""The turns of one arm of a rotation, as a time over which counters of a trace are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

from tare.record.load_time import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_NS = 1e9
_MOST_ALIKE = 0.98
"""Correlation of driven and idle parts above which a trace is too coarse to tell them apart."""


@dataclass(frozen=True, eq=False)
class Rates:
    """Growth of a counter for a second: while the arm was driven, and while others were."""

    driven: float
    idle: float


@dataclass(frozen=True, eq=False)
class Turns:
    """Measured turns of one arm, on the clock of the trace.

    Samples do not fall on the edges of turns. Growth in a turn therefore follows from a model: a counter grows at
    one rate while its arm is driven and at another while it is not. Least squares give both, from each interval
    between two samples and the part of it that lies within turns. What the server does after its turn counts as
    idle.
    """

    began_ns: Floats
    """Start of each turn; the arm settles first."""
    ended_ns: Floats
    """End of each turn."""
    seconds: float
    """Length of the parts of all turns in which operations counted."""
    rounds_ns: tuple[float, float]
    """Start and end of the rounds that were measured."""

    @property
    def began_s(self) -> float:
        """Start of the first measured round."""
        return self.rounds_ns[0] / _NS

    @property
    def ended_s(self) -> float:
        """End of the last round."""
        return self.rounds_ns[1] / _NS

    def shifted(self, ahead_s: float) -> Turns:
        """Return the same turns on a clock that is `ahead_s` ahead."""
        ahead = ahead_s * _NS
        first, last = self.rounds_ns
        return Turns(self.began_ns + ahead, self.ended_ns + ahead, self.seconds, (first + ahead, last + ahead))

    def within(self, from_ns: Floats, to_ns: Floats) -> Floats:
        """Return how many nanoseconds of each interval lie within turns."""
        return self._until(to_ns) - self._until(from_ns)

    def weights(self, from_ns: Floats, to_ns: Floats) -> Floats | None:
        """Return the weight of each interval's growth in the growth over `seconds`, which is their weighted sum.

        Intervals outside of the measured rounds weigh nothing; a weight may be negative. `None` if the intervals
        are too long, or too few, to tell turns from the rest.
        """
        solved = self._solved(from_ns, to_ns)
        return None if solved is None else solved[0] * self.seconds

    def rates(self, at_ns: Floats, values: Floats) -> Rates | None:
        """Return the rates of a counter that was read at these times; `None` as in `weights`."""
        if len(at_ns) < 2:
            return None
        import numpy as np  # slow to import, and records are read without

        solved = self._solved(at_ns[:-1], at_ns[1:])
        if solved is None:
            return None
        driven, idle = solved @ np.diff(values)
        return Rates(float(driven), float(idle))

    def growth(self, at_ns: Floats, values: Floats) -> float | None:
        """Return the growth of a counter over `seconds` of turns; never below zero."""
        rates = self.rates(at_ns, values)
        return None if rates is None else max(0.0, rates.driven * self.seconds)

    def _until(self, at_ns: Floats) -> Floats:
        """Time in turns before each moment."""
        import numpy as np  # slow to import, and records are read without

        edges = np.column_stack((self.began_ns, self.ended_ns)).ravel()
        spent = np.repeat(np.cumsum(self.ended_ns - self.began_ns), 2)
        spent[0::2] -= self.ended_ns - self.began_ns
        return np.interp(at_ns, edges, spent)

    def _solved(self, from_ns: Floats, to_ns: Floats) -> Floats | None:
        """Pseudo-inverse of the model: rows of weights that give both rates for a second."""
        import numpy as np  # slow to import, and records are read without

        driven = self.within(from_ns, to_ns) / _NS
        idle = (to_ns - from_ns) / _NS - driven
        used = (from_ns >= self.rounds_ns[0]) & (to_ns <= self.rounds_ns[1])
        design = np.column_stack((driven, idle)) * used[:, np.newaxis]
        square = design.T @ design
        scale = np.sqrt(np.outer(np.diag(square), np.diag(square)))
        if not scale.all() or square[0, 1] > _MOST_ALIKE * scale[0, 1]:
            return None
        return np.asarray(np.linalg.solve(square, design.T), dtype=np.float64)


Measured: TypeAlias = Span | Turns
"""The time that a run's figures cover: its measure phase, or the turns of its arm."""


@final
@dataclass(frozen=True, slots=True)
class Rotation:
    """The place of a run in its generation, whose arms took turns."""

    arms: int
    """How many arms took turns."""
    turn_ms: float
    """How long each was measured in its turn."""
    settle_ms: float
    """How long each was driven before that."""
    numbers: tuple[int, ...]
    """Places of this run's measured turns, one or more in each round, among all turns of the generation, from 0 for
    the first of the warm-up; `measurement.turns` has what was counted in each."""
    warm_up_rounds: int = 0
    """Rounds before the measured ones."""
    turns: int = 0
    """Turns of all arms in the generation."""
    warm_up_turns: int = 0
    """How many of them warmed up."""
    began_monotonic_s: float | None = None
    """Start of the first turn on the host's CLOCK_MONOTONIC, the clock of the trace; `null`: no turn was taken, or
    the record is older."""

    @property
    def began_s(self) -> float:
        """Start of this run's first measured turn, in seconds from the generation's first turn."""
        return self.numbers[0] * (self.turn_ms + self.settle_ms) / 1000


def turns_of(rotation: Rotation | None) -> Turns | None:
    """Return the measured turns of a record's `rotation`; `None` for a run alone, and for records without times."""
    if rotation is None or rotation.began_monotonic_s is None:
        return None
    import numpy as np

    settle, turn = rotation.settle_ms * 1e6, rotation.turn_ms * 1e6
    numbers = np.asarray(rotation.numbers, dtype=np.float64)
    base = rotation.began_monotonic_s * _NS
    began = base + numbers * (settle + turn)
    rounds = (base + rotation.warm_up_turns * (settle + turn), base + rotation.turns * (settle + turn))
    return Turns(began, began + settle + turn, len(numbers) * turn / _NS, rounds)
