"""How an overhead in one study stands to that in another: Welch's interval on the log ratios of their blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from tare.analyze.estimate import Estimate
from tare.analyze.paired_t import FEWEST_BLOCKS

METHOD = "welch-log-ratios"
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class Difference:
    """`estimate`: exp(mean log ratio in B - mean log ratio in A) - 1, a fraction. `p_zero`: that there is none."""

    estimate: Estimate
    p_zero: float | None = None


def difference(a: Sequence[float], b: Sequence[float], alpha: float = 0.05) -> Difference:
    """From the ratios arm/baseline of each block of two studies, all above 0; `alpha` is the interval's.

    With means m, variances s² and n blocks of the logs of each: Δ = m_B - m_A, SE² = s_A²/n_A + s_B²/n_B, interval
    Δ ± t(f, 1 - alpha/2) · SE, f = SE⁴ / ((s_A²/n_A)²/(n_A - 1) + (s_B²/n_B)²/(n_B - 1)). The studies share no run,
    so their blocks are not paired, and two machines have no common variance: Welch, "The generalization of
    'Student's' problem when several different population variances are involved", Biometrika 34 (1947);
    Satterthwaite, Biometrics Bulletin 2 (1946). `alpha` below 0.05 where studies stopped by looks.
    """
    n = min(len(a), len(b))
    if n == 0:
        return _without(None, n, "one of the studies has no block with a good run of both arm and baseline")
    logs = [np.log(np.asarray(ratios, dtype=float)) for ratios in (a, b)]
    apart = float(logs[1].mean() - logs[0].mean())
    if n < FEWEST_BLOCKS:
        return _without(math.expm1(apart), n, f"an interval takes {FEWEST_BLOCKS} blocks of both studies")
    if min(float(each.std(ddof=1)) for each in logs) < _NO_SPREAD:
        return _without(math.expm1(apart), n, "the same ratio in every block of a study, so the spread is unknown")
    parts = [float(each.var(ddof=1)) / len(each) for each in logs]
    error = math.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, logs, strict=True))
    reach = float(stdtrit(freedom, 1 - alpha / 2)) * error
    estimate = Estimate(math.expm1(apart), math.expm1(apart - reach), math.expm1(apart + reach), n, 0.95, METHOD)
    return Difference(estimate, p_zero=2 * float(stdtr(freedom, -abs(apart) / error)))


def _without(point: float | None, n: int, why: str) -> Difference:
    return Difference(Estimate(point, None, None, n, 0.95, METHOD, why))
