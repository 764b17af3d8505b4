"""A contrast of means of independent groups, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import stdtrit

from tare.analyze.estimate import Estimate

METHOD = "contrast-of-block-means-welch"


def contrast_of_means(
    groups: Mapping[str, Sequence[float]], weights: Mapping[str, float], confidence: float = 0.95
) -> Estimate | None:
    """Relative effect from logarithms: groups → their values, one a block; `None` where a group has none.

    With mean m_k and variance s_k² of n_k values, and weights w_k: effect = Σ w_k m_k, variance Σ w_k² s_k² / n_k,
    degrees of freedom by Satterthwaite (1946), Biometrics Bulletin 2(6); of two groups this is Welch's interval.
    No interval where a group has one value only, or none of them any spread.
    """
    values = {name: np.asarray(groups.get(name, ()), dtype=float) for name in weights}
    if not values or any(len(each) == 0 for each in values.values()):
        return None
    n = sum(len(each) for each in values.values())
    point = sum(weight * float(values[name].mean()) for name, weight in weights.items())
    if any(len(each) < 2 for each in values.values()):
        return _without_interval(point, n, confidence, "one block of a condition only, an interval takes 2 of each")
    parts = [(weights[name] ** 2 * float(each.var(ddof=1)) / len(each), len(each)) for name, each in values.items()]
    variance = sum(part for part, _ in parts)
    if variance < 1e-24:
        return _without_interval(point, n, confidence, "the same value in every block, so the spread is unknown")
    freedom = variance**2 / sum(part**2 / (count - 1) for part, count in parts)
    reach = float(stdtrit(freedom, 0.5 + confidence / 2)) * math.sqrt(variance)
    return Estimate(math.expm1(point), math.expm1(point - reach), math.expm1(point + reach), n, confidence, METHOD)


def _without_interval(point: float, n: int, confidence: float, why: str) -> Estimate:
    return Estimate(math.expm1(point), None, None, n, confidence, METHOD, why)
