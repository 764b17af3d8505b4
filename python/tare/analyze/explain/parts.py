"""Parts of an operation, and what an arm adds to each, with intervals over blocks. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy.special import stdtrit

from tare.analyze.estimator import CONFIDENCE
from tare.analyze.statistics.intervals import FEWEST_BLOCKS
from tare.plural import counted


@dataclass(frozen=True)
class Change:
    """Microseconds that an operation takes more in an arm than in its baseline. `n`: blocks with both.

    `low`, `high`: 95 % interval; `None` for the reason `why`.
    """

    added_us: float
    low: float | None
    high: float | None
    n: int
    why: str | None = None

    @property
    def least_us(self) -> float:
        """Lower end of the interval; the point if there is no interval."""
        return self.added_us if self.low is None else self.low

    @property
    def shown(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True)
class Part:
    """One part of an operation. `name`: key; `title`: for people; `us`, `baseline_us`: over the same blocks."""

    name: str
    title: str
    us: float
    baseline_us: float
    change: Change


def part_of(name: str, title: str, values: Sequence[tuple[float, float]]) -> Part:
    """Make a part from the (arm, baseline) values of each block."""
    return Part(
        name,
        title,
        fmean(mine for mine, _ in values),
        fmean(theirs for _, theirs in values),
        change([mine - theirs for mine, theirs in values]),
    )


def change(differences: Sequence[float]) -> Change:
    """Mean of paired differences d, ± t(n - 1, 0.975) · s / √n (Student 1908, paired form).

    Differences rather than ratios, so that parts add up, and a part that the baseline lacks has a value.
    """
    n, point = len(differences), fmean(differences)
    if n < FEWEST_BLOCKS:
        return Change(point, None, None, n, f"{counted(n, 'block')} only; an interval needs {FEWEST_BLOCKS}")
    spread = float(np.std(differences, ddof=1))
    reach = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * spread / math.sqrt(n)
    return Change(point, point - reach, point + reach, n)
