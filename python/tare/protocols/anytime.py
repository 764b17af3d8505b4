"""An interval of the mean log ratio that holds at every look, however often one looks and whatever ends the study.

The t-mixture: for each mean μ, the likelihood ratio of "the standardised effect is N(0, c²)" against "the mean is
μ", with the scale integrated out by its right Haar measure, is a test martingale. With t² = n (m - μ)² / s² and r =
1 + n c²:

    E(μ) = r^(-1/2) · ((1 + t²/(n-1)) / (1 + t²/((n-1) r)))^(n/2)

By Ville's inequality, it ever reaches 1/alpha with a probability of at most alpha, so {μ: E(μ) < 1/alpha} holds at
all n simultaneously.
Exact for normal log ratios of any spread. Lai, "On confidence sequences", Ann. Statist. 4 (1976); Wang & Ramdas,
"Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance", arXiv 2310.03722.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SCALE = 1.0
"""c: the interval is tuned to effects of about one standard deviation between blocks; fixed before any study."""
ALPHA = 0.05
"""Looks cost nothing here, so alpha needs no adjustment for them."""
NO_SPREAD = 1e-12
"""Standard deviation below which log ratios are equal up to rounding, so that their spread is unknown."""


def spreads(log_ratios: Sequence[float]) -> bool:
    """Whether the log ratios differ by more than rounding; `False` for a single one."""
    n = len(log_ratios)
    mean = math.fsum(log_ratios) / max(1, n)
    return n > 1 and math.sqrt(math.fsum((each - mean) ** 2 for each in log_ratios) / (n - 1)) >= NO_SPREAD


def reach_factor(n: int, alpha: float = ALPHA) -> float:
    """Half the interval in units of s/√n; infinite while n is too small for an interval."""
    spread = 1 + n * SCALE**2
    bound = (spread / alpha**2) ** (1 / n)
    return math.inf if bound >= spread else math.sqrt((n - 1) * (bound - 1) / (1 - bound / spread))


def p_value(t: float, n: int) -> float:
    """1/E, at most 1: bound on the chance of a mean this many standard errors away, at any look."""
    spread, share = 1 + n * SCALE**2, t * t / (n - 1)
    log_e = -0.5 * math.log(spread) + n / 2 * (math.log1p(share) - math.log1p(share / spread))
    return math.exp(-max(0.0, log_e))
