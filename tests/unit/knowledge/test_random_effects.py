"""Pooling against published worked examples, and against the equations that define it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tare.knowledge.pool import random_effects, residual_tau2, with_moderators

# Thirteen trials of the BCG vaccine: Colditz et al., JAMA 271 (1994). Cases, others, vaccinated and not; latitude.
TRIALS = (
    (4, 119, 11, 128, 44), (6, 300, 29, 274, 55), (3, 228, 11, 209, 42), (62, 13536, 248, 12619, 52),
    (33, 5036, 47, 5761, 13), (180, 1361, 372, 1079, 44), (8, 2537, 10, 619, 19), (505, 87886, 499, 87892, 13),
    (29, 7470, 45, 7232, 27), (17, 1699, 65, 1600, 42), (186, 50448, 141, 27197, 18), (5, 2493, 3, 2338, 33),
    (27, 16886, 29, 17825, 33),
)  # fmt: skip
LATITUDE = [float(trial[4]) for trial in TRIALS]
RISK = [math.log(a / (a + b)) - math.log(c / (c + d)) for a, b, c, d, _ in TRIALS]
RISK_SE = [math.sqrt(1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)) for a, b, c, d, _ in TRIALS]
ODDS = [math.log(a * d / (b * c)) for a, b, c, d, _ in TRIALS]
ODDS_SE = [math.sqrt(1 / a + 1 / b + 1 / c + 1 / d) for a, b, c, d, _ in TRIALS]


def test_the_restricted_likelihood_s_variance_gives_the_published_mean() -> None:
    """Risk ratio 0.489 with tau² 0.3132, as R's metafor prints for these trials (Viechtbauer, JSS 36(3), 2010)."""
    pooled = random_effects(RISK, RISK_SE, tau2=0.3132)
    assert math.exp(pooled.point) == pytest.approx(0.489, abs=5e-4)
    assert pooled.k == 13


def test_paule_and_mandel_s_variance_solves_their_equation() -> None:
    """Weighted squared residuals sum to k - 1: the definition in J. Res. NBS 87 (1982)."""
    pooled = random_effects(RISK, RISK_SE)
    weights = 1 / (np.asarray(RISK_SE) ** 2 + pooled.tau2)
    assert float(weights @ (np.asarray(RISK) - pooled.point) ** 2) == pytest.approx(12, abs=1e-6)
    assert pooled.tau2 == pytest.approx(0.318, abs=1e-3)


@pytest.mark.parametrize("k", [3, 5, 12])
def test_the_variance_is_zero_only_where_the_errors_explain_all(k: int) -> None:
    """A search that steps over the root and then says 0 would be found here in one draw of five."""
    chance = np.random.default_rng(k)
    for _ in range(60):
        errors = chance.uniform(0.001, 0.1, k)
        effects = chance.normal(0, 0.1, k) + chance.normal(0, errors)
        pooled = random_effects(effects.tolist(), errors.tolist())
        weights = 1 / (errors**2 + pooled.tau2)
        squares = float(weights @ (effects - weights @ effects / weights.sum()) ** 2)
        assert squares == pytest.approx(k - 1, rel=1e-6) if pooled.tau2 > 0 else squares <= k - 1


def test_a_meta_regression_gives_the_published_coefficients() -> None:
    """Log odds on latitude by maximum likelihood, tau² 0.0040: 0.3710 - 0.0327 · latitude.

    van Houwelingen, Arends & Stijnen, Statist. Med. 21 (2002), section 5.
    """
    pooled = with_moderators(ODDS, ODDS_SE, ["latitude"], [LATITUDE], tau2=0.0040)
    ((_, slope, _, _),) = pooled.moderators
    assert slope == pytest.approx(-0.0327, abs=5e-5)
    assert pooled.point - slope * float(np.mean(LATITUDE)) == pytest.approx(0.3710, abs=5e-4)


def test_the_residual_variance_leaves_as_many_squares_as_degrees_of_freedom() -> None:
    design = np.column_stack([np.ones(13), LATITUDE])
    variance = np.asarray(RISK_SE) ** 2
    tau2 = residual_tau2(np.asarray(RISK), variance, design)
    assert 0 < tau2 < random_effects(RISK, RISK_SE).tau2
    weights = 1 / (variance + tau2)
    beta = np.linalg.solve(design.T @ (weights[:, None] * design), design.T @ (weights * np.asarray(RISK)))
    assert float(weights @ (np.asarray(RISK) - design @ beta) ** 2) == pytest.approx(11, abs=1e-6)


def test_equal_effects_get_the_interval_of_their_errors_and_never_a_narrower_one() -> None:
    """Knapp and Hartung's own factor would be 0 here; the modified one is 1: t(4) · 0.01 / √5."""
    pooled = random_effects([0.1] * 5, [0.01] * 5)
    assert pooled.tau2 == 0
    assert pooled.high - pooled.point == pytest.approx(2.7764451 * 0.01 / math.sqrt(5), rel=1e-6)


def test_the_prediction_interval_has_one_degree_of_freedom_less() -> None:
    pooled = random_effects([0.0, 0.1, 0.2, 0.3, 0.4], [1e-3] * 5)
    error = (pooled.high - pooled.point) / 2.7764451
    assert pooled.predicted_high - pooled.point == pytest.approx(
        3.1824463 * math.sqrt(pooled.tau2 + error**2), rel=1e-6
    )
    assert pooled.tau2 == pytest.approx(np.var([0.0, 0.1, 0.2, 0.3, 0.4], ddof=1), rel=1e-3)


def test_a_variance_below_zero_is_zero() -> None:
    assert residual_tau2(np.zeros(12), np.full(12, 1.0), np.ones((12, 1))) == 0
