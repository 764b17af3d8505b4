"""A contrast of means of independent groups, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tare.analyze.estimate import Estimate
from tare.analyze.statistics.intervals import term, welch_t

METHOD = "contrast-of-block-means-welch"
_NO_SPREAD = 1e-12


def contrast_of_means(
    groups: Mapping[str, Sequence[float]], weights: Mapping[str, float], confidence: float = 0.95
) -> Estimate | None:
    """Relative effect from logarithms: groups → their values, one a block; `None` where a group has none.

    With means m_k and weights w_k: effect = Σ w_k m_k, its error and degrees of freedom by `welch_t`; of two groups
    this is Welch's interval.
    No interval where a group has one value only, or none of them any spread.
    """
    values = {name: np.asarray(groups.get(name, ()), dtype=float) for name in weights}
    if not values or any(len(each) == 0 for each in values.values()):
        return None
    n = sum(len(each) for each in values.values())
    point = sum(weight * float(values[name].mean()) for name, weight in weights.items())
    if any(len(each) < 2 for each in values.values()):
        return _without_interval(point, n, confidence, "one block of a condition only, an interval takes 2 of each")
    known = welch_t(term(each, weights[name]) for name, each in values.items())
    if known is None or known.error < _NO_SPREAD:
        return _without_interval(point, n, confidence, "the same value in every block, so the spread is unknown")
    reach = known.reach(confidence)
    return Estimate(math.expm1(point), math.expm1(point - reach), math.expm1(point + reach), n, confidence, METHOD)


def _without_interval(point: float, n: int, confidence: float, why: str) -> Estimate:
    return Estimate(math.expm1(point), None, None, n, confidence, METHOD, why)
