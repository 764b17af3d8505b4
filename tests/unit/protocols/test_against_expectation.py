"""Both intervals that hold at every look, against the library `expectation` where it is installed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri

from tare.protocols.anytime import SCALE, p_value
from tare.protocols.sign_flip import log_wealth

martingales = pytest.importorskip("expectation.modules.martingales")
ttest = pytest.importorskip("expectation.parametric.ttest_universal")


def test_the_t_mixture_is_that_of_the_library_expectation() -> None:
    """Wang and Ramdas, theorem 4.9. The library takes the number of values from the length of the sum."""
    values = np.random.default_rng(8).normal(0.5, 1, 12)
    theirs = ttest.TtestGaussianMixtureMartingale(prior_precision=1 / SCALE)
    for n in range(3, 13):
        seen = values[:n]
        t = float(seen.mean() / (seen.std(ddof=1) / math.sqrt(n)))
        log_e = float(theirs.log_superMG(np.full(n, seen.sum()), float(np.square(seen).sum()))[0])
        assert p_value(t, n) == pytest.approx(min(1.0, math.exp(-log_e)))


def test_the_wager_pays_no_less_than_the_sub_gaussian_mixture_of_the_library_expectation() -> None:
    """de la Peña's bound mixed over the positive half of a normal distribution, against the wager mixed alike."""
    rho, values = 2.0, np.random.default_rng(9).normal(0.3, 1, 40)
    theirs = martingales.OneSidedNormalMixture(1.0, 0.025)
    theirs.rho = rho
    effects = ndtri(0.5 + (np.arange(4000) + 0.5) / 8000) / math.sqrt(
        rho
    )  # slices of |N(0, 1/rho)|, equally likely
    ours = log_wealth(values, effects.tolist())
    bounds = [theirs.log_superMG(values[:n].sum(), np.square(values[:n]).sum()) for n in range(1, 41)]
    assert (ours >= np.asarray(bounds) - 1e-3).all()
    assert (ours > np.asarray(bounds)).mean() > 0.9
