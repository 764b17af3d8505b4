"""Intervals for a paired log ratio, and for a difference of means (Welch)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from tare.analyze.estimate import Estimate
from tare.plural import counted
from tare.protocols import sign_flip
from tare.protocols.anytime import ALPHA, NO_SPREAD, reach_factor, spreads

METHOD = "paired-log-ratio-t"
ANYTIME = "anytime-log-ratio-t-mixture"
SIGN_FLIP = "anytime-log-ratio-sign-flip"
FEWEST_BLOCKS = 3
"""With two blocks, t has one degree of freedom (12.7 standard errors), and an outlier cannot be recognised."""


def paired_log_ratio_t(ratios: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Relative effect from the ratios arm/baseline of the blocks, all above 0.

    With d_i = ln(ratio_i), mean d and standard deviation s over n blocks:
    point = exp(d) - 1, interval = exp(d ± t(n - 1, 1 - a/2) · s / √n) - 1, with a = 1 - confidence.

    The logarithm makes the effect multiplicative, so that swapping arm and baseline inverts it exactly, and
    skewed ratios do not shift the interval. Student (1908), paired form; log ratios of paired performance
    data: Fleming & Wallace (1986), "How not to lie with statistics", CACM 29(3).

    There is no interval below `FEWEST_BLOCKS`, and none if all ratios are equal: such data are quantised, so their
    spread is unknown rather than zero.
    """
    n = len(ratios)
    if n == 0:
        return _without_interval(None, n, confidence, "no block has good runs of both arm and baseline")
    logs = np.log(np.asarray(ratios, dtype=float))
    mean = float(logs.mean())
    point = math.expm1(mean)
    if n < FEWEST_BLOCKS:
        return _without_interval(
            point, n, confidence, f"{counted(n, 'block')} only; an interval needs {FEWEST_BLOCKS}"
        )
    spread = float(logs.std(ddof=1))
    if spread < NO_SPREAD:
        return _without_interval(point, n, confidence, "the same ratio in every block, so the spread is unknown")
    reach = float(stdtrit(n - 1, 0.5 + confidence / 2)) * spread / math.sqrt(n)
    return Estimate(point, math.expm1(mean - reach), math.expm1(mean + reach), n, confidence, METHOD)


def anytime_log_ratio(ratios: Sequence[float]) -> Estimate:
    """Like `paired_log_ratio_t`, with the interval that holds at every look: `tare.protocols.anytime`."""
    estimate = replace(paired_log_ratio_t(ratios, 1 - ALPHA), method=ANYTIME)
    if estimate.low is None:
        return estimate
    logs = np.log(np.asarray(ratios, dtype=float))
    half = reach_factor(len(logs)) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    if math.isinf(half):
        return _too_few(estimate)
    return replace(estimate, low=math.expm1(float(logs.mean()) - half), high=math.expm1(float(logs.mean()) + half))


def sign_flip_log_ratio(ratios: Mapping[int, float], blocks_each: int = 1) -> Estimate:
    """Relative effect with the interval that follows from the random order alone: `tare.protocols.sign_flip`.

    `ratios`: by block. The point is the mean over the mirrored pairs on which the interval is based.
    """
    estimate = replace(paired_log_ratio_t(list(ratios.values()), 1 - ALPHA), method=SIGN_FLIP)
    if estimate.low is None:
        return estimate
    units = sign_flip.mirrored({block: math.log(ratio) for block, ratio in ratios.items()}, blocks_each)
    within = sign_flip.interval(units)
    if len(units) < FEWEST_BLOCKS:
        return _too_few(estimate)
    point = math.expm1(sign_flip.mean(units))
    if not spreads(units):
        why = "the same ratio in every mirrored pair of blocks, so the spread is unknown"
        return replace(estimate, point=point, low=None, high=None, why=why)
    if within is None:
        return _too_few(estimate)
    return replace(estimate, point=point, low=math.expm1(within.low), high=math.expm1(within.high))


def _too_few(estimate: Estimate) -> Estimate:
    why = f"{counted(estimate.n, 'block')} only; too few for an interval that stays valid at every look"
    return replace(estimate, low=None, high=None, why=why)


def _without_interval(point: float | None, n: int, confidence: float, why: str) -> Estimate:
    return Estimate(point, None, None, n, confidence, METHOD, why)


@dataclass(frozen=True)
class WelchT:
    """Welch's t of a sum. `error`: its standard error; `freedom`: degrees of freedom."""

    error: float
    freedom: float

    def reach(self, confidence: float) -> float:
        """Half of the interval's width."""
        return float(stdtrit(self.freedom, 0.5 + confidence / 2)) * self.error

    def p_zero(self, apart: float) -> float:
        """Two-sided p value of a sum that is `apart` from zero."""
        return 2 * float(stdtr(self.freedom, -abs(apart) / self.error))


@dataclass(frozen=True)
class Term:
    """A weighted mean of n values. `variance`: of the weighted mean, w² s² / n."""

    variance: float
    n: int


def term(values: ArrayLike, weight: float = 1.0) -> Term:
    """Make a term of at least two values."""
    each = np.asarray(values, dtype=float)
    return Term(weight**2 * float(each.var(ddof=1)) / len(each), len(each))


def welch_t(terms: Iterable[Term]) -> WelchT | None:
    """Welch's t: SE² = Σ v_k, f = SE⁴ / Σ (v_k² / (n_k - 1)); `None` if no term has a spread that a float can hold.

    Welch, "The generalization of 'Student's' problem when several different population variances are involved",
    Biometrika 34 (1947); Satterthwaite, Biometrics Bulletin 2 (1946).
    """
    terms = tuple(terms)
    variance = sum(one.variance for one in terms)
    below = sum(one.variance**2 / (one.n - 1) for one in terms)
    return WelchT(math.sqrt(variance), variance**2 / below) if below > 0 else None
