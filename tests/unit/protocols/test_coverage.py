"""What the default protocol promises, in simulation: how often its interval holds the truth, and cries wolf.

The machine: each start of a server has a level of its own (standard deviation 1.5 % of throughput, as measured),
each run's windows average to noise of 1.2 %, and in one kind of noise the machine drifts from run to run (AR(1)) by
3 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from tare.protocols.stopping import Rule, reach
from tare.study.model import InterleaveSpec

Logs = NDArray[np.float64]
Noise = Callable[[np.random.Generator], Logs]
"""Noise of the log ratios: a study a row, a block a column."""

STUDIES, CAP = 8000, 60
RESTART, WITHIN, DRIFT, MEMORY = 0.015, 0.012, 0.03, 0.9
RUN = math.hypot(RESTART, WITHIN)


def normal(rng: np.random.Generator) -> Logs:
    return rng.normal(0, RUN, (STUDIES, CAP)) - rng.normal(0, RUN, (STUDIES, CAP))


def heavy_tailed(rng: np.random.Generator) -> Logs:
    """Starts by t with 3 degrees of freedom, of the same variance: now and then a server comes up quite wrong."""
    starts = rng.standard_t(3, (2, STUDIES, CAP)) * RESTART / math.sqrt(3)
    runs = starts + rng.normal(0, WITHIN, (2, STUDIES, CAP))
    return np.asarray(runs[0] - runs[1])


def autocorrelated(rng: np.random.Generator) -> Logs:
    """A machine that drifts from run to run, in the mirrored order in which the protocol runs two arms."""
    shocks = rng.normal(0, DRIFT * math.sqrt(1 - MEMORY**2), (STUDIES, 2 * CAP))
    shocks[:, 0] = rng.normal(0, DRIFT, STUDIES)
    drift = np.asarray(lfilter([1.0], [1.0, -MEMORY], shocks, axis=1)).reshape(STUDIES, CAP, 2)
    runs = drift + rng.normal(0, RUN, (STUDIES, CAP, 2))
    first = np.repeat(rng.integers(0, 2, (STUDIES, CAP // 2)) * 2 - 1, 2, axis=1)
    first[:, 1::2] *= -1
    return np.asarray((runs[:, :, 0] - runs[:, :, 1]) * first)


def steady_drift(rng: np.random.Generator) -> Logs:
    """Every run half a percent slower than the one before, in the same mirrored order, the first drawn a pair."""
    first = np.repeat(rng.integers(0, 2, (STUDIES, CAP // 2)) * 2 - 1, 2, axis=1)
    first[:, 1::2] *= -1
    return normal(rng) + 0.005 * first


@dataclass(frozen=True)
class Outcome:
    """Of all studies: the share whose interval holds the truth, that excludes zero, and the blocks it took."""

    covered: float
    excludes_zero: float
    mean_blocks: float


def simulate(rule: Rule, effect: float, noise: Noise, seed: int) -> Outcome:
    """Run every study by the rule, as `decide` does it, on arrays."""
    logs = noise(np.random.default_rng([seed, round(1000 * effect)])) + math.log1p(-effect)
    low, high, blocks = np.empty(STUDIES), np.empty(STUDIES), np.zeros(STUDIES)
    for n in range(1, CAP + 1):
        if not rule.looks_at(n):
            continue
        mean, half = logs[:, :n].mean(axis=1), reach(logs[:, :n], rule.alpha)
        narrow = (np.expm1(mean + half) - np.expm1(mean - half)) / 2 <= (rule.target or 0)
        now = (blocks == 0) & (narrow | (n == CAP))
        low[now], high[now], blocks[now] = np.expm1(mean - half)[now], np.expm1(mean + half)[now], n
    assert (blocks > 0).all()
    return Outcome(
        covered=float(((low <= -effect) & (-effect <= high)).mean()),
        excludes_zero=float(((low > 0) | (high < 0)).mean()),
        mean_blocks=float(blocks.mean()),
    )


DEFAULT = Rule.of(InterleaveSpec(blocks=CAP))


@pytest.mark.parametrize("noise", [normal, heavy_tailed, autocorrelated, steady_drift])
@pytest.mark.parametrize("effect", [0.0, 0.01, 0.02, 0.05, 0.10])
def test_the_default_protocol_covers_the_truth_and_seldom_cries_wolf(effect: float, noise: Noise) -> None:
    found = simulate(DEFAULT, effect, noise, seed=20160205)
    assert found.covered >= 0.93, found
    if effect == 0:
        assert found.excludes_zero <= 0.06, found


@pytest.mark.parametrize("target", [0.01, 0.015, 0.03])
def test_other_targets_are_covered_as_well(target: float) -> None:
    found = simulate(Rule(target=target, blocks=CAP), 0.0, normal, seed=3)
    assert found.covered >= 0.93, found


def test_an_uncorrected_alpha_would_miss_more_often() -> None:
    """So that the simulation is known to see what it is there to see."""
    corrected = simulate(Rule(target=0.015, blocks=CAP), 0.0, normal, seed=5)
    plain = simulate(Rule(target=0.015, alpha=0.05, blocks=CAP), 0.0, normal, seed=5)
    assert plain.covered < corrected.covered - 0.005
    assert plain.mean_blocks < corrected.mean_blocks


def test_stopping_when_significant_would_cry_wolf_far_more_often() -> None:
    """What the rule is there to avoid."""
    logs = normal(np.random.default_rng(7))
    wolf = np.zeros(STUDIES, dtype=bool)
    for n in range(4, CAP + 1, 4):
        wolf |= np.abs(logs[:, :n].mean(axis=1)) > reach(logs[:, :n], 0.05)
    assert wolf.mean() > 0.15
