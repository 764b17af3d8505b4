"""The pilot of a rotation: choose how long turns last, how long arms settle and how many rounds a generation has.

The pilot's generation takes turns of several lengths; operations are counted in slices of each turn. For each
length, the shortest settling time after which the rate neither rises nor falls is kept; of the lengths without
carry-over, that with the least error for a second of machine time. The spread between rounds is the measure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tare.record.pilot import Tried, TurnChoice

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LENGTHS_MS = (60.0, 120.0, 240.0, 480.0)
"""Whole turns that are tried: below, a server's wake-up takes most of a turn; above, a run would do as well."""
SLICES = 12
"""Parts of a turn, and so steps of the settling time; it lasts at most half of the turn."""
_FREE = 24
"""Rounds of a length times arms beside the baseline: a standard deviation is then known to about 15 %."""
_FEWEST_ROUNDS = 6
CARRIED = 0.02
"""Largest relative change of a rate by what happened before: the target width of an overhead."""
LATE = 0.05
"""Largest share of turns that begin to count while the arm before has operations under way."""
_CHANCE = 0.01
_RESTARTS = 0.0175
"""Standard deviation of the log ratio of two arms between generations, as `tare.plan.estimate` assumes it."""
FEWEST = 10
"""Rounds of a generation; fewer would say little about it."""


@dataclass(frozen=True)
class Trial:
    """What was seen of turns of one length.

    `counts`: arm → operations, one row for each round, one column for each slice. `ended_ms`: for each turn, when
    the last operation of the turn before it ended, from this turn's start on.
    """

    length_ms: float
    counts: Mapping[str, NDArray[np.float64]]
    ended_ms: Sequence[float]

    @property
    def round_s(self) -> float:
        """Length of a round."""
        return len(self.counts) * self.length_ms / 1000

    @cached_property
    def idle(self) -> str | None:
        """An arm that ends no operation in the second half of any turn: its rate is unknown."""
        return next((arm for arm, counts in self.counts.items() if not counts[:, SLICES // 2 :].any()), None)

    @cached_property
    def settled(self) -> int | None:
        """Fewest slices after which no rate changes and the turn before is over; `None` if half is too few."""
        if self.idle is not None:
            return None
        enough = (few for few in range(1, SLICES // 2 + 1) if self.late(few) <= LATE and not self._moves(few))
        return next(enough, None)

    def rates(self, settled: int) -> Mapping[str, NDArray[np.float64]]:
        """Arm → operations after these slices in each round, relative to the arm's mean."""
        sums = {arm: counts[:, settled:].sum(axis=1) for arm, counts in self.counts.items()}
        return {arm: each / each.mean() for arm, each in sums.items()}

    def log_ratio(self, arm: str, baseline: str, settled: int) -> float:
        """Log of an arm's rate relative to the baseline's."""
        means = [float(self.counts[each][:, settled:].mean()) for each in (arm, baseline)]
        return math.log(means[0] / means[1])

    def spread(self, arm: str, baseline: str, settled: int) -> float:
        """Standard deviation of one round's log ratio."""
        rates = self.rates(settled)
        return float((rates[arm] - rates[baseline]).std(ddof=1))

    def late(self, settled: int) -> float:
        """Share of turns that begin to count before the turn before is over."""
        settle_ms = settled * self.length_ms / SLICES
        return sum(ended > settle_ms for ended in self.ended_ms) / max(1, len(self.ended_ms))

    def _moves(self, settled: int) -> bool:
        """Whether a rate differs between both halves of the rest: of one arm, or of all arms together."""
        half = (SLICES - settled) // 2
        rises = []
        for counts in self.counts.values():
            first, second = counts[:, settled : settled + half].sum(axis=1), counts[:, -half:].sum(axis=1)
            rises.append((second - first) / ((first + second).mean() / 2))
        import numpy as np  # slow to import, and only a pilot needs it

        together = np.mean(rises, axis=0)
        return any(_differs(each, len(rises)) for each in rises) or _differs(together, 1)


def _differs(values: NDArray[np.float64], tests: int) -> bool:
    """Whether the mean is over `CARRIED` and its t interval (99 % over all tests) excludes zero."""
    from scipy import stats  # slow to import, and only a pilot needs it

    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    mean = abs(float(values.mean()))
    return mean > CARRIED and mean > float(stats.t.ppf(1 - _CHANCE / tests / 2, len(values) - 1)) * error


def rounds_tried(arms: int) -> int:
    """Return the rounds of each length that the pilot drives."""
    return max(_FEWEST_ROUNDS, math.ceil(_FREE / max(1, arms - 1)))


def pilot_seconds(arms: int) -> float:
    """Return the length of all turns of the pilot, without its warm-up."""
    return rounds_tried(arms) * arms * sum(LENGTHS_MS) / 1000


def choose(
    trials: Sequence[Trial], baselines: Mapping[str, str], *, start_s: float, most_s: float, rounds: int | None
) -> TurnChoice | str:
    """Return the choice, or why these arms cannot take turns. Trials go from the shortest to the longest turns.

    `baselines`: arm → the arm that it is compared with. `most_s`: the longest time that an arm is measured in a
    generation. `rounds`: those of a study that sets them.
    """
    tried = [_tried(trial, trials[-1], baselines) for trial in trials]
    pairs = zip(tried, trials, strict=True)
    usable = {
        each.error: (each.length_ms, each.settle_ms, trial)
        for each, trial in pairs
        if each.error is not None and each.settle_ms is not None
    }
    if not usable:
        return f"turns of up to {trials[-1].length_ms:g} ms: {tried[-1].why_not}"
    error = min(usable)
    length_ms, settle_ms, trial = usable[error]
    turn_ms = length_ms - settle_ms
    if rounds is None:
        # Least variance for the time: Cochran, Sampling Techniques (1977), section 10.6.
        turns_s = math.sqrt(start_s) * error / _RESTARTS
        rounds = max(FEWEST, min(round(turns_s / trial.round_s), math.floor(most_s * 1000 / turn_ms)))
    return TurnChoice(turn_ms=turn_ms, settle_ms=settle_ms, rounds=rounds, start_s=start_s, tried=tuple(tried))


def _tried(trial: Trial, longest: Trial, baselines: Mapping[str, str]) -> Tried:
    if trial.idle is not None:
        return Tried(length_ms=trial.length_ms, why_not=f"{trial.idle} ends no operation in half of a turn")
    if trial.settled is None:
        late = trial.late(SLICES // 2) > LATE
        why = "the turn before is not over" if late else "rates rise or fall"
        return Tried(length_ms=trial.length_ms, why_not=f"{why} after half of the turn")
    settle_ms = trial.settled * trial.length_ms / SLICES
    if (arm := _other_ratio(trial, longest, baselines)) is not None:
        why = f"the ratio of {arm} differs from that with turns of {longest.length_ms:g} ms"
        return Tried(length_ms=trial.length_ms, settle_ms=settle_ms, why_not=why)
    spreads = [trial.spread(arm, baseline, trial.settled) for arm, baseline in baselines.items()]
    variance = sum(each**2 for each in spreads) / len(spreads)
    return Tried(length_ms=trial.length_ms, settle_ms=settle_ms, error=math.sqrt(variance * trial.round_s))


def _other_ratio(trial: Trial, longest: Trial, baselines: Mapping[str, str]) -> str | None:
    """Return an arm whose ratio differs between both lengths; `None` if there is none or nothing to compare."""
    from scipy import stats  # slow to import, and only a pilot needs it

    own, other = trial.settled, longest.settled
    if trial is longest or own is None or other is None:
        return None
    for arm, baseline in baselines.items():
        parts = [(trial, own), (longest, other)]
        ratios = [each.log_ratio(arm, baseline, settled) for each, settled in parts]
        counts = [len(each.counts[arm]) for each, _ in parts]
        errors = [
            each.spread(arm, baseline, settled) ** 2 / count
            for (each, settled), count in zip(parts, counts, strict=True)
        ]
        limit = float(stats.t.ppf(1 - _CHANCE / len(baselines) / 2, min(counts) - 1)) * math.sqrt(sum(errors))
        if abs(ratios[0] - ratios[1]) > max(limit, CARRIED):
            return arm
    return None
