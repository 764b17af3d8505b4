"""How many windows a round should have, from what restarts cost and where the variance lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Components:
    """Variance of the windows within a round, and of the rounds' true means between each other."""

    within: float
    between: float


def components(rounds: Sequence[Sequence[float]]) -> Components:
    """Split the variance of a pilot: two rounds of two windows at least, all of the same number of windows.

    One-way random effects: within = mean square within, between = (mean square between - within) / windows, and not
    below 0. Searle, Casella & McCulloch, Variance Components (1992), chapter 3.
    """
    import numpy as np  # slow to import, and only a pilot needs it

    table = np.asarray(rounds, dtype=float)
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError("a pilot takes two rounds of two windows at least, all of the same number")
    windows = table.shape[1]
    within = float(table.var(axis=1, ddof=1).mean())
    between = float(table.mean(axis=1).var(ddof=1)) - within / windows
    return Components(within=within, between=max(0.0, between))


def windows_per_round(found: Components, restart_s: float, window_s: float, most: int) -> int:
    """Windows that give the narrowest interval for the time: √(restart_s / window_s · within / between).

    Between 1 and `most`, which it also is where rounds do not differ. Cochran, Sampling Techniques (1977), section
    10.6 (two-stage sampling with a linear cost); for benchmarks Kalibera & Jones, "Rigorous
    benchmarking in reasonable time", ISMM 2013.
    """
    if found.between == 0:
        return most
    best = math.sqrt(restart_s / window_s * found.within / found.between)
    return min(most, max(1, round(best)))
