"""Random-effects pooling of a few log ratios, with and without moderators.

Between-study variance: Paule & Mandel, "Consensus values and weighting factors", J. Res. NBS 87 (1982), with
moderators by the same equation for the residuals. Interval: Knapp & Hartung, Stat. Med. 22 (2003), modified so that
it is never narrower than without their factor (Röver, Knapp & Friede, BMC Med. Res. Methodol. 15:99, 2015).
Prediction interval: Higgins, Thompson & Spiegelhalter, J. R. Stat. Soc. A 172 (2009), which is approximate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import stdtrit
from statsmodels.regression.linear_model import WLS  # type: ignore[import-untyped]  # has no stubs

Floats = NDArray[np.float64]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Pooled:
    """A pooled log ratio. `low`, `high`: of the mean; `predicted_*`: of the next such effect, approximate.

    `tau2`: variance between effects; `k`: how many; `moderators`: name → (coefficient, low, high).
    """

    point: float
    low: float
    high: float
    predicted_low: float
    predicted_high: float
    tau2: float
    k: int
    moderators: tuple[tuple[str, float, float, float], ...] = ()


def random_effects(effects: Sequence[float], errors: Sequence[float], tau2: float | None = None) -> Pooled:
    """Pool `effects` with standard errors `errors`, three at least. `tau2`: given, instead of estimated."""
    y, variance = np.asarray(effects, dtype=float), np.asarray(errors, dtype=float) ** 2
    design = np.ones((len(y), 1))
    return _pooled(y, variance, design, residual_tau2(y, variance, design) if tau2 is None else tau2, ())


def with_moderators(
    effects: Sequence[float],
    errors: Sequence[float],
    names: Sequence[str],
    columns: Sequence[Sequence[float]],
    tau2: float | None = None,
) -> Pooled:
    """Meta-regression on centred moderators (`told_apart`), so that the point is the effect at their mean."""
    y, variance = np.asarray(effects, dtype=float), np.asarray(errors, dtype=float) ** 2
    centred = [np.asarray(column, dtype=float) - float(np.mean(column)) for column in columns]
    design = np.column_stack([np.ones(len(y)), *centred])
    return _pooled(y, variance, design, residual_tau2(y, variance, design) if tau2 is None else tau2, tuple(names))


def told_apart(columns: Sequence[Sequence[float]]) -> bool:
    """Whether moderators have each a coefficient of its own: none is made of a constant and the others."""
    design = np.column_stack([np.ones(len(columns[0])), *columns])
    return bool(np.linalg.matrix_rank(design) == design.shape[1])


def residual_tau2(y: Floats, variance: Floats, design: Floats) -> float:
    """Paule and Mandel's variance: weighted squared residuals as many as degrees of freedom; 0 at least.

    Their sum falls with the variance, so there is one root, and it is bracketed. By hand: `combine_effects` of
    statsmodels 0.15 steps towards it from below, and says 0 wherever rounding takes its last step just beyond.
    """
    free = len(y) - design.shape[1]
    excess: Callable[[float], float] = lambda tau2: _fit(y, variance, design, tau2)[2] - free  # noqa: E731 - a name for its type
    if excess(0.0) <= 0:
        return 0.0
    high = float(np.var(y)) + 1e-9
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-14))


def _fit(y: Floats, variance: Floats, design: Floats, tau2: float) -> tuple[Floats, Floats, float]:
    """Coefficients, their covariance with known variances, and the weighted sum of squared residuals."""
    weights = 1 / (variance + tau2)
    fitted = WLS(y, design, weights=weights).fit()
    covariance: Floats = np.linalg.inv(design.T @ (weights[:, None] * design)).astype(np.float64)
    residual = y - design @ fitted.params
    return np.asarray(fitted.params), covariance, float(weights @ residual**2)


def _pooled(y: Floats, variance: Floats, design: Floats, tau2: float, names: tuple[str, ...]) -> Pooled:
    k, parameters = design.shape
    coefficients, covariance, q = _fit(y, variance, design, tau2)
    factor = max(1.0, q / (k - parameters))  # the modification: never below 1
    errors = np.sqrt(factor * np.diag(covariance))
    t = float(stdtrit(k - parameters, 0.5 + CONFIDENCE / 2))
    point, error = float(coefficients[0]), float(errors[0])
    wide = float(stdtrit(k - parameters - 1, 0.5 + CONFIDENCE / 2)) * math.sqrt(tau2 + error**2)
    told = tuple(
        (name, float(b), float(b - t * e), float(b + t * e))
        for name, b, e in zip(names, coefficients[1:], errors[1:], strict=True)
    )
    return Pooled(point, point - t * error, point + t * error, point - wide, point + wide, tau2, k, told)
