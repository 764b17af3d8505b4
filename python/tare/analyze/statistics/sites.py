"""An effect over several sites: its interval over sites and blocks, and how much sites differ. Pure functions.

A block's log ratio is the mean effect, plus its site's deviation, plus noise: d_ij = mu + b_i + e_ij.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtr, stdtrit

from tare.analyze.estimate import Estimate, OverSites, SiteEffect
from tare.protocols.anytime import NO_SPREAD

METHOD = "random-site-effect-hksj-t"
FEWEST_TO_PREDICT = 3
"""Fewest sites for a prediction of the next one: its t has two degrees of freedom fewer than sites."""


@dataclass(frozen=True)
class MeanOfSites:
    """`mean` of log ratios, its standard `error` and degrees of `freedom`; `between`: variance between sites."""

    mean: float
    error: float
    freedom: int
    between: float


def mean_of_sites(logs: Sequence[NDArray[np.float64]]) -> MeanOfSites | None:
    """Mean effect over sites, with a random effect of the site; `None` for one site or without any spread.

    With m_i the mean of the n_i blocks of site i, s² the pooled variance within sites and t² the variance between
    sites (by one-way analysis of variance, at least 0; the same as REML if all sites have equally many blocks):
    weights w_i = 1 / (t² + s² / n_i), mean = sum w_i m_i / sum w_i,
    SE² = sum w_i (m_i - mean)² / ((k - 1) sum w_i), and t(k - 1) over k sites. Hartung & Knapp, Statist. Med. 20
    (2001); Sidik & Jonkman, Statist. Med. 21 (2002). With equally many blocks on each site, as tare assigns them,
    this is Student's t over the sites' means, and exact.
    """
    return None if len(logs) < 2 else _mean_of(_moments(np.concatenate(logs), [len(each) for each in logs]))


@dataclass(frozen=True)
class _Moments:
    """For each site: `counts` of log ratios, their `means`, and the sums of `squares` of deviations from them.

    Arrays over all sites, as NumPy takes microseconds for each call, and there may be 200 sites.
    """

    counts: NDArray[np.float64]
    means: NDArray[np.float64]
    squares: NDArray[np.float64]


def _moments(logs: NDArray[np.float64], lengths: Sequence[int]) -> _Moments:
    """Moments of each site. `logs`: all log ratios, site after site; `lengths`: their number on each site."""
    sites, place = len(lengths), np.repeat(np.arange(len(lengths)), lengths)
    counts = np.array(lengths, dtype=float)
    means = np.bincount(place, logs, sites) / counts
    squares: NDArray[np.float64] = np.bincount(place, (logs - means[place]) ** 2, sites).astype(float)
    return _Moments(counts, means, squares)


def _mean_of(moments: _Moments) -> MeanOfSites | None:
    counts, means = moments.counts, moments.means
    k = len(counts)
    free = counts.sum() - k
    within = float(moments.squares.sum() / free) if free else 0.0
    grand = float((counts * means).sum() / counts.sum())
    among = float((counts * (means - grand) ** 2).sum() / (k - 1))
    effective = float((counts.sum() - (counts**2).sum() / counts.sum()) / (k - 1))
    between = max(0.0, (among - within) / effective) if free else float(means.var(ddof=1))
    variances = between + within / counts
    if float(variances.max()) < NO_SPREAD**2:
        return None
    weights = 1 / variances
    mean = float((weights * means).sum() / weights.sum())
    error = math.sqrt(float((weights * (means - mean) ** 2).sum() / ((k - 1) * weights.sum())))
    return MeanOfSites(mean, error, k - 1, between)


def over_sites(ratios: Mapping[str, Sequence[float]], confidence: float, pooled: Estimate) -> OverSites | None:
    """Effect from ratios arm/baseline by site, all above 0; `None` if there is only one site.

    `pooled`: the estimate from all blocks, as if they came from one site.
    """
    if len(ratios) < 2:
        return None
    names = sorted(ratios)
    logs = np.log(np.fromiter(chain.from_iterable(ratios[name] for name in names), dtype=float))
    moments, blocks = _moments(logs, [len(ratios[name]) for name in names]), len(logs)
    sites, combined = _sites(names, moments, confidence), _mean_of(moments)
    if combined is None:
        why = "the same ratio in every block of every site, so the spread is unknown"
        none = Estimate(pooled.point, None, None, blocks, confidence, METHOD, why)
        return OverSites(none, sites, 0.0, None, len(names) - 1, 0.0, None, None, None, pooled)
    reach = float(stdtrit(combined.freedom, 0.5 + confidence / 2)) * combined.error
    estimate = Estimate(
        math.expm1(combined.mean),
        math.expm1(combined.mean - reach),
        math.expm1(combined.mean + reach),
        blocks,
        confidence,
        METHOD,
    )
    low, high = _next(combined, len(names), confidence)
    return OverSites(
        estimate=estimate,
        sites=sites,
        mean=combined.mean,
        error=combined.error,
        freedom=combined.freedom,
        between=math.sqrt(combined.between),
        between_p=_between_p(moments),
        next_low=low,
        next_high=high,
        pooled=pooled,
    )


def _sites(names: Sequence[str], moments: _Moments, confidence: float) -> tuple[SiteEffect, ...]:
    """Effect of each site, with Student's t over its own blocks if there are at least three that differ."""
    free = np.maximum(moments.counts - 1, 1)
    spreads = np.sqrt(moments.squares / free)
    reach = stdtrit(free, 0.5 + confidence / 2) * spreads / np.sqrt(moments.counts)
    known = (moments.counts > 2) & (spreads >= NO_SPREAD)
    points, lows, highs = (np.expm1(moments.means + sign * reach) for sign in (0, -1, 1))
    return tuple(
        SiteEffect(name, int(n), float(point), float(low) if differ else None, float(high) if differ else None)
        for name, n, point, low, high, differ in zip(names, moments.counts, points, lows, highs, known, strict=True)
    )


def _next(combined: MeanOfSites, sites: int, confidence: float) -> tuple[float | None, float | None]:
    """Prediction mean ± t(k - 2) · sqrt(t² + SE²): Higgins, Thompson & Spiegelhalter, JRSS A 172 (2009)."""
    if sites < FEWEST_TO_PREDICT:
        return None, None
    reach = float(stdtrit(sites - 2, 0.5 + confidence / 2)) * math.hypot(
        math.sqrt(combined.between), combined.error
    )
    return math.expm1(combined.mean - reach), math.expm1(combined.mean + reach)


def _between_p(moments: _Moments) -> float | None:
    """P value of equal sites by F(k - 1, N - k) of one-way ANOVA; `None` without two blocks on any site."""
    k, blocks, within = len(moments.counts), float(moments.counts.sum()), float(moments.squares.sum())
    if blocks == k or within <= 0:
        return None
    grand = float((moments.counts * moments.means).sum() / blocks)
    among = float((moments.counts * (moments.means - grand) ** 2).sum())
    return float(fdtrc(k - 1, blocks - k, (among / (k - 1)) / (within / (blocks - k))))


def stands_out(means: Sequence[float]) -> tuple[int, float] | None:
    """Index of the site whose mean log ratio is farthest from the others', and its p value.

    t(k - 2) of a site's mean against the others', times k sites (Bonferroni): Grubbs's test for one outlier,
    Technometrics 11 (1969). `None` for fewer than 4 sites, where the test can find nothing.
    """
    k = len(means)
    if k < 4:
        return None
    values, n = np.asarray(means, dtype=float), np.arange(k)
    others = np.arange(k - 1) + (
        np.arange(k - 1) >= n[:, np.newaxis]
    )  # one row for each site: indices of all other sites
    rest = values[others]
    spreads = rest.std(axis=1, ddof=1)
    if float(spreads.min()) < NO_SPREAD:
        return None
    t = np.abs(values - rest.mean(axis=1)) / (spreads * math.sqrt(1 + 1 / (k - 1)))
    p_values = np.minimum(1.0, 2 * k * stdtr(k - 2, -t))
    most = int(np.argmin(p_values))
    return most, float(p_values[most])
