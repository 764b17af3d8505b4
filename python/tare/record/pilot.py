"""What a pilot chose: the length of the measure phase, or of turns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """The measure phase of every round after the pilot, and the reasons for it.

    The first record with a choice decides for all later ones, so a resumed study makes the same choice.
    """

    measure_s: float
    """Length of the measure phase: `windows` of `window_s` each."""
    windows: int
    """Number of its windows."""
    window_s: float
    """Length of a window."""
    pilot_s: float
    """Measure phase of the pilot's blocks."""
    most_s: float
    """Longest measure phase that was allowed."""
    within: float | None = None
    """Variance of the log ratio to the baseline within one window."""
    between: float | None = None
    """Variance of the true log ratios of the rounds."""
    restart_s: float | None = None
    """Seconds that a run took apart from measuring, mean over the pilot."""
    why_not: str | None = None
    """Why the pilot could not decide, so that its own length stays; else `null`."""

    @property
    def sentence(self) -> str:
        """The choice and its reasons, as a clause without a full stop."""
        runs = f"the measure phase of a run is {self.measure_s:g} s instead of {self.pilot_s:g} s"
        if self.within is None or self.between is None or self.restart_s is None:
            return f"the measure phase stays {self.pilot_s:g} s: {self.why_not}"
        spread, rounds = (100 * math.sqrt(part) for part in (self.within, self.between))
        return (
            f"{runs}, {self.windows} windows: log ratios of windows scatter by {spread:.2g} % in a round, those "
            f"of rounds by {rounds:.2g} %, and a run takes {self.restart_s:.3g} s beside measuring "
            f"({self.most_s:g} s at most were allowed)"
        )


@final
@dataclass(frozen=True, slots=True)
class Tried:
    """Turns of one length that the pilot tried."""

    length_ms: float
    """Length of the turns."""
    settle_ms: float | None = None
    """Shortest settling time that was long enough; `null`: none was."""
    error: float | None = None
    """Standard error of a log ratio after one second of machine time; `null` as `settle_ms`."""
    why_not: str | None = None
    """Why such turns are no use; else `null`."""


@final
@dataclass(frozen=True, slots=True)
class TurnChoice:
    """The lengths of a study's turns, and the reasons."""

    turn_ms: float
    """How long an arm is measured in its turn."""
    settle_ms: float
    """How long it is driven before that."""
    rounds: int
    """Rounds of a generation."""
    start_s: float
    """Machine time of a generation beside its turns."""
    tried: tuple[Tried, ...]
    """What was found for each length of turns."""

    @property
    def sentence(self) -> str:
        """The choice and its reasons, as a clause without a full stop."""
        error = min(each.error for each in self.tried if each.error is not None)
        others = [f"{each.length_ms:g} ms: {_of(each)}" for each in self.tried]
        return (
            f"turns of {self.turn_ms:g} ms after {self.settle_ms:g} ms of settling, {self.rounds} rounds in a "
            f"generation; after a second of turns, a ratio is known to {100 * error:.2g} % "
            f"(tried {'; '.join(others)})"
        )


def _of(tried: Tried) -> str:
    return str(tried.why_not) if tried.error is None else f"{100 * tried.error:.2g} %"
