"""How an overhead in one study stands to that in another: Welch's interval on the log ratios of their blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tare.analyze.estimate import Estimate
from tare.analyze.paired_t import FEWEST_BLOCKS
from tare.analyze.welch_t import term, welch_t

METHOD = "welch-log-ratios"
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class Difference:
    """`estimate`: exp(mean log ratio in B - mean log ratio in A) - 1, a fraction. `p_zero`: that there is none."""

    estimate: Estimate
    p_zero: float | None = None


def difference(a: Sequence[float], b: Sequence[float], alpha: float = 0.05) -> Difference:
    """From the ratios arm/baseline of each block of two studies, all above 0; `alpha` is the interval's.

    With means m of the logs of each: Δ = m_B - m_A, interval Δ ± t(f, 1 - alpha/2) · SE, SE and f by `welch_t`: the
    studies share no run, so their blocks are not paired, and two machines have no common variance. `alpha` below
    0.05 where studies stopped by looks.
    """
    n = min(len(a), len(b))
    if n == 0:
        return _without(None, n, "one of the studies has no block with a good run of both arm and baseline")
    logs = [np.log(np.asarray(ratios, dtype=float)) for ratios in (a, b)]
    apart = float(logs[1].mean() - logs[0].mean())
    if n < FEWEST_BLOCKS:
        return _without(math.expm1(apart), n, f"an interval takes {FEWEST_BLOCKS} blocks of both studies")
    known = welch_t(map(term, logs))
    if known is None or min(float(each.std(ddof=1)) for each in logs) < _NO_SPREAD:
        return _without(math.expm1(apart), n, "the same ratio in every block of a study, so the spread is unknown")
    reach = known.reach(1 - alpha)
    estimate = Estimate(math.expm1(apart), math.expm1(apart - reach), math.expm1(apart + reach), n, 0.95, METHOD)
    return Difference(estimate, p_zero=known.p_zero(apart))


def _without(point: float | None, n: int, why: str) -> Difference:
    return Difference(Estimate(point, None, None, n, 0.95, METHOD, why))
