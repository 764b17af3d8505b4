"""Windows of all runs in one pot with z = 1.96, as in bth-thesis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tare.analyze.estimate import Estimate

METHOD = "pooled-windows-z"
_Z = 1.96


def pooled_windows(arm: Sequence[float], baseline: Sequence[float]) -> Estimate:
    """Difference of the windows' means ± 1.96 · √(s1²/n1 + s2²/n2), relative to the baseline's mean.

    `n` counts windows. Invalid: windows of one run share its start, so the interval is far too narrow, and
    53 to 58 % of A/A comparisons come out "significant". Kept only to show what the published analysis would say.
    """
    n = min(len(arm), len(baseline))
    if n < 2:
        return Estimate(None, None, None, n, 0.95, METHOD, "fewer than 2 windows on a side")
    one, other = np.asarray(arm, dtype=float), np.asarray(baseline, dtype=float)
    reference = float(other.mean())
    if reference <= 0:
        return Estimate(None, None, None, n, 0.95, METHOD, "nothing is relative to a baseline of zero")
    difference = float(one.mean()) - reference
    reach = _Z * math.sqrt(float(one.var(ddof=1)) / len(one) + float(other.var(ddof=1)) / len(other))
    low, high = (difference - reach) / reference, (difference + reach) / reference
    return Estimate(difference / reference, low, high, n, 0.95, METHOD)


def mean_interval(windows: Sequence[float]) -> tuple[float, float]:
    """Lower and upper end of mean ± 1.96 · s / √n of one arm's pooled windows, in their unit."""
    values = np.asarray(windows, dtype=float)
    if len(values) < 2:
        raise ValueError("an interval takes two windows")
    reach = _Z * float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - reach, float(values.mean()) + reach
