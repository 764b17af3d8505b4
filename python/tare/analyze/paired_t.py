"""The paired log-ratio t estimator: how an arm stands to its baseline over blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from tare.analyze.estimate import Estimate
from tare.plural import counted

METHOD = "paired-log-ratio-t"
FEWEST_BLOCKS = 3
"""With two, t has one degree of freedom (12.7 standard errors) and nothing tells a wild block from a tame one."""

_NO_SPREAD = 1e-12
"""Standard deviation of log ratios below which they are equal but for rounding."""


def paired_log_ratio_t(ratios: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Relative effect from the ratios arm/baseline of each block, all of them above 0.

    With d_i = ln(ratio_i), mean d and standard deviation s over n blocks:
    point = exp(d) - 1, interval = exp(d ± t(n - 1, 1 - a/2) · s / √n) - 1, with a = 1 - confidence.

    The logarithm makes the effect multiplicative, so that swapping arm and baseline inverts it exactly, and
    the ratios' skew does not move the interval. Student (1908), paired form; log ratios of paired performance
    data: Fleming & Wallace (1986), "How not to lie with statistics", CACM 29(3).

    No interval below `FEWEST_BLOCKS`, and none where all ratios are equal: that is quantised data, whose spread
    is unknown rather than zero.
    """
    n = len(ratios)
    if n == 0:
        return _without_interval(None, n, confidence, "no block has a good run of both arm and baseline")
    logs = np.log(np.asarray(ratios, dtype=float))
    mean = float(logs.mean())
    point = math.expm1(mean)
    if n < FEWEST_BLOCKS:
        return _without_interval(
            point, n, confidence, f"{counted(n, 'block')} only, an interval takes {FEWEST_BLOCKS}"
        )
    spread = float(logs.std(ddof=1))
    if spread < _NO_SPREAD:
        return _without_interval(point, n, confidence, "the same ratio in every block, so the spread is unknown")
    reach = float(stdtrit(n - 1, 0.5 + confidence / 2)) * spread / math.sqrt(n)
    return Estimate(point, math.expm1(mean - reach), math.expm1(mean + reach), n, confidence, METHOD)


def _without_interval(point: float | None, n: int, confidence: float, why: str) -> Estimate:
    return Estimate(point, None, None, n, confidence, METHOD, why)
