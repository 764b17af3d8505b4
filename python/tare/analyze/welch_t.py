"""Welch's t: how well a sum of independent means is known whose variances are not the same."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit


@dataclass(frozen=True)
class WelchT:
    """`error`: standard error of the sum; `freedom`: degrees of freedom of its t."""

    error: float
    freedom: float

    def reach(self, confidence: float) -> float:
        """Half of the interval's width."""
        return float(stdtrit(self.freedom, 0.5 + confidence / 2)) * self.error

    def p_zero(self, apart: float) -> float:
        """That a sum as far from zero as `apart` comes by chance, on either side."""
        return 2 * float(stdtr(self.freedom, -abs(apart) / self.error))


@dataclass(frozen=True)
class Term:
    """A mean of n values, weighted: `variance` is that of the weighted mean, w² s² / n."""

    variance: float
    n: int


def term(values: ArrayLike, weight: float = 1.0) -> Term:
    """Of two values at the least."""
    each = np.asarray(values, dtype=float)
    return Term(weight**2 * float(each.var(ddof=1)) / len(each), len(each))


def welch_t(terms: Iterable[Term]) -> WelchT | None:
    """SE² = Σ v_k, f = SE⁴ / Σ (v_k² / (n_k - 1)); `None` where no term has any spread that a float holds.

    Welch, "The generalization of 'Student's' problem when several different population variances are involved",
    Biometrika 34 (1947); Satterthwaite, Biometrics Bulletin 2 (1946).
    """
    terms = tuple(terms)
    variance = sum(one.variance for one in terms)
    below = sum(one.variance**2 / (one.n - 1) for one in terms)
    return WelchT(math.sqrt(variance), variance**2 / below) if below > 0 else None
