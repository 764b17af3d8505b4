"""Estimators of published studies, for comparison only. Each docstring says what is wrong with the method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from tare.analyze.estimate import Estimate
from tare.analyze.metrics import Metric
from tare.analyze.runs import Runs
from tare.analyze.statistics.intervals import term, welch_t
from tare.study.model import Study


def mean_square_error(values: Sequence[float]) -> float | None:
    """Mean of (x_i - mean)² over N values, in the square of their unit; `None` without values.

    Casalicchio & Perciballi, "Measuring Docker performance: what a mess!!!", ICPE 2017 companion. The figure
    describes the scatter of single repetitions, not the precision of their mean.
    """
    return float(np.var(values)) if len(values) else None


def overhead_fraction(docker: float, native: float) -> float | None:
    """|docker - native| / native; `None` if `native` is not above 0.

    Casalicchio & Perciballi, "Measuring Docker performance: what a mess!!!", ICPE 2017 companion. The absolute
    value hides which figure is larger, and turns noise into overhead: for two equal systems, its mean over
    repetitions is above 0.
    """
    return abs(docker - native) / native if native > 0 else None


@dataclass(frozen=True)
class Repetitions:
    """Summary of repetitions in their unit. `stddev`: of the sample (n - 1); `None` for one repetition."""

    n: int
    smallest: float
    largest: float
    mean: float
    stddev: float | None


def min_max_mean(values: Sequence[float]) -> Repetitions | None:
    """Summarise repetitions; `None` without any.

    Seybold et al., "The impact of the storage tier: a baseline performance analysis of containerized DBMS" (2018).
    """
    if not values:
        return None
    return Repetitions(
        n=len(values),
        smallest=min(values),
        largest=max(values),
        mean=fmean(values),
        stddev=stdev(values) if len(values) > 1 else None,
    )


POOLED_WINDOWS = "pooled-windows-z"
_Z = 1.96


def pooled_windows(arm: Sequence[float], baseline: Sequence[float]) -> Estimate:
    """Difference of the windows' means ± 1.96 · √(s1²/n1 + s2²/n2), relative to the baseline's mean.

    `n` counts windows. The method is invalid: windows of one run share its start, so the interval is far too
    narrow, and 53 to 58 % of A/A comparisons are "significant". It only shows what the published analysis would
    conclude.
    """
    n = min(len(arm), len(baseline))
    if n < 2:
        return Estimate(None, None, None, n, 0.95, POOLED_WINDOWS, "fewer than 2 windows on a side")
    one, other = np.asarray(arm, dtype=float), np.asarray(baseline, dtype=float)
    reference = float(other.mean())
    if reference <= 0:
        return Estimate(None, None, None, n, 0.95, POOLED_WINDOWS, "the baseline is zero")
    difference = float(one.mean()) - reference
    reach = _Z * math.sqrt(float(one.var(ddof=1)) / len(one) + float(other.var(ddof=1)) / len(other))
    low, high = (difference - reach) / reference, (difference + reach) / reference
    return Estimate(difference / reference, low, high, n, 0.95, POOLED_WINDOWS)


RELATIVE_CHANGE = "relative-change-of-averages"


def relative_change(arm: Sequence[float], baseline: Sequence[float], confidence: float = 0.95) -> Estimate:
    """mean(arm) / mean(baseline) - 1, without an interval: the method has none."""
    n = min(len(arm), len(baseline))
    if n and fmean(baseline) <= 0:
        return Estimate(None, None, None, n, confidence, RELATIVE_CHANGE, "the baseline is zero")
    point = fmean(arm) / fmean(baseline) - 1 if n else None
    return Estimate(point, None, None, n, confidence, RELATIVE_CHANGE, "the method has no interval")


WELCH = "welch"


def welch(arm: Sequence[float], baseline: Sequence[float], confidence: float = 0.95) -> Estimate:
    """(mean(arm) - mean(baseline)) / mean(baseline), with the numerator's interval divided by the same.

    Welch, "The generalization of 'Student's' problem …", Biometrika 34 (1947). The method assumes independent runs:
    with runs in fixed blocks it is wrong in 18 to 31 % of A/A comparisons instead of 5 %. It also ignores that the
    denominator is itself an estimate.
    """
    n = min(len(arm), len(baseline))
    if n == 0:
        return Estimate(None, None, None, n, confidence, WELCH, "no run of one side")
    reference = float(np.mean(baseline))
    if reference <= 0:
        return Estimate(None, None, None, n, confidence, WELCH, "the baseline is zero")
    point = float(np.mean(arm)) / reference - 1
    if n < 2:
        return Estimate(point, None, None, n, confidence, WELCH, "one run per side has no spread")
    known = welch_t((term(arm), term(baseline)))
    if known is None or float(np.ptp(arm)) == 0 == float(np.ptp(baseline)):
        return Estimate(point, None, None, n, confidence, WELCH, "neither side has any spread")
    reach = known.reach(confidence) / reference
    return Estimate(point, point - reach, point + reach, n, confidence, WELCH)


def by_publication(study: Study, parts: Sequence[Runs], arm: str, metric: Metric) -> Estimate | None:
    """Relative change of averages; over several strata, the mean of their changes, as in Table 3 of grambow-2018.

    `None` if the study does not name its publication's method, or no stratum has runs of both arm and baseline.
    """
    if study.published_by is None:
        return None
    baseline = study.baseline_of(arm)
    each = [relative_change(runs.values_of(arm, metric), runs.values_of(baseline, metric)) for runs in parts]
    known = [one for one in each if one.point is not None]
    if len(known) < 2:
        return known[0] if known else None
    return Estimate(
        point=fmean(one.point for one in known if one.point is not None),
        low=None,
        high=None,
        n=sum(one.n for one in known),
        confidence=known[0].confidence,
        method=RELATIVE_CHANGE,
        why=f"the mean of {len(known)} relative changes; the method has no interval",
    )
