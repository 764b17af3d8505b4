"""Verdicts against a margin that was declared beforehand: equivalent, different or inconclusive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from tare.analyze.estimate import Verdict
from tare.analyze.statistics.intervals import FEWEST_BLOCKS


@dataclass(frozen=True)
class PValues:
    """The p values behind a verdict: of an effect outside the margin (`None` without one), and of none at all."""

    outside: float | None
    zero: float


def p_values(ratios: Sequence[float], margin: float | None, bucket: float | None = None) -> PValues | None:
    """Two one-sided t tests and a two-sided one on the log ratios; `None` where nothing can be tested.

    The margin is symmetric on the log scale: within 1/(1 + margin) and 1 + margin. p of equivalence is the larger
    of the two one-sided ones. Schuirmann, "A comparison of the two one-sided tests procedure …", J. Pharmacokinet.
    Biopharm. 15 (1987). `bucket`: relative width of the histogram's buckets that the values were read from. Each
    ratio may be wrong by that much, and all of them the same way, so it is taken off the margin; a margin of one
    bucket or less is never shown to be kept.
    """
    if margin is not None and margin <= 0:
        raise ValueError(f"a margin is above 0, not {margin:g}")
    logs = np.log(np.asarray(ratios, dtype=float))
    if len(logs) < FEWEST_BLOCKS or float(np.ptp(logs)) < 1e-12:
        return None
    mean, error, freedom = float(logs.mean()), float(logs.std(ddof=1)) / len(logs) ** 0.5, len(logs) - 1
    zero = 2 * float(stdtr(freedom, -abs(mean) / error))
    if margin is None:
        return PValues(outside=None, zero=zero)
    bound = float(np.log1p(margin) - np.log1p(bucket or 0.0))
    outside = float(stdtr(freedom, (abs(mean) - bound) / error)) if bound > 0 else 1.0
    return PValues(outside=outside, zero=zero)


def verdict(found: PValues | None, alpha: float = 0.05, *, resolved: bool = True) -> Verdict:
    """Equivalent comes first: a tiny effect that is surely not zero still lies within the margin.

    `resolved`: whether the effect is larger than what the generator's histogram can tell apart; a smaller one is
    not called a difference.
    """
    if found is None:
        return Verdict.INCONCLUSIVE
    if found.outside is not None and found.outside < alpha:
        return Verdict.EQUIVALENT
    return Verdict.DIFFERENT if found.zero < alpha and resolved else Verdict.INCONCLUSIVE


def holm(raw: Mapping[str, float]) -> dict[str, float]:
    """Adjust a family of p values so that one false one among all of them is as rare as alpha.

    Of m values in rising order, the i-th times m - i + 1, never below one before it nor above 1. Holm, "A simple
    sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979). By hand: statsmodels's own
    collects garbage at every call, which took twenty times as long as all the rest of an analysis.
    """
    adjusted, least = {}, 0.0
    for n, (name, p) in enumerate(sorted(raw.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, (len(raw) - n) * p))
        adjusted[name] = least
    return {name: adjusted[name] for name in raw}


def adjusted(family: Mapping[str, PValues]) -> dict[str, PValues]:
    """The tests of secondary metrics, each kind a family of its own: of what has a margin, and of all."""
    outside = holm({name: one.outside for name, one in family.items() if one.outside is not None})
    zero = holm({name: one.zero for name, one in family.items()})
    return {name: PValues(outside=outside.get(name), zero=zero[name]) for name in family}
