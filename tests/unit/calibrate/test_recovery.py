"""Known effects go in; calibration must tell them, and must tell when an estimator is broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.calibrate.conftest import NOISE, Series

from tare.analyze import Estimate
from tare.calibrate.outcome import by_product
from tare.calibrate.pooled import block_spread, false_positives, injected
from tare.record.run_record import RunRecord
from tare.study.model import Study

EFFECTS = {
    "work +1 %": 1 / 1.01 - 1, "work +2 %": 1 / 1.02 - 1, "work +5 %": 1 / 1.05 - 1, "work +10 %": 1 / 1.1 - 1,
    "CPU quota 90 %": 0.923 - 1, "proxy delay 20 µs": 0.88 / 0.999 - 1,
    "900 reads a second": 0.905 - 1,
}  # fmt: skip


def too_narrow(study: Study, records: Sequence[RunRecord], arm: str) -> Estimate:
    """A third of the interval, as windows taken for runs would give."""
    estimate = by_product(study, records, arm)
    assert estimate.point is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return replace(
        estimate,
        low=estimate.point - (estimate.point - estimate.low) / 3,
        high=estimate.point + (estimate.high - estimate.point) / 3,
    )


def too_kind(study: Study, records: Sequence[RunRecord], arm: str) -> Estimate:
    """Three points too good, whatever was measured."""
    estimate = by_product(study, records, arm)
    assert estimate.point is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return replace(estimate, point=estimate.point + 0.03, low=estimate.low + 0.03, high=estimate.high + 0.03)


def test_every_injected_effect_is_recovered_without_bias_and_covered(series: Series) -> None:
    seen = series(20)
    for title, effect in EFFECTS.items():
        recovery = injected(seen, title)
        assert recovery.estimate.point == pytest.approx(effect, abs=0.006), title
        assert recovery.truth.point == pytest.approx(effect, abs=0.006), title
        assert recovery.bias.low is not None
        assert recovery.bias.high is not None
        assert recovery.bias.low < 0.004, title
        assert recovery.bias.high > -0.004, title
        assert recovery.covered.of == 20
        assert recovery.covered.count >= 17, title


def test_identical_servers_are_called_different_in_about_one_study_of_twenty(series: Series) -> None:
    share = false_positives(series(100, ["aa", "quota"]))
    assert share.of == 300
    assert share.low is not None
    assert share.high is not None
    assert share.low < 0.05 < share.high


def test_an_estimator_whose_intervals_are_too_narrow_is_seen(series: Series) -> None:
    seen = series(20, estimator=too_narrow)
    positives, covered = false_positives(seen), injected(seen, "work +5 %").covered
    assert positives.low is not None
    assert positives.low > 0.05
    assert covered.high is not None
    assert covered.high < 0.95


def test_an_estimator_that_is_biased_is_seen(series: Series) -> None:
    seen = series(20, estimator=too_kind)
    recovery = injected(seen, "work +5 %")
    assert recovery.bias.low is not None
    assert recovery.bias.low > 0.02
    assert recovery.covered.high is not None
    assert recovery.covered.high < 0.95
    positives = false_positives(seen)
    assert positives.low is not None
    assert positives.low > 0.05


def test_a_study_is_never_judged_by_its_own_truth_alone(series: Series) -> None:
    assert injected(series(2, ["work"]), "work +1 %").covered.of == 0
    assert injected(series(3, ["work"]), "work +1 %").covered.of == 3


def test_the_spread_is_that_of_two_runs_whatever_the_injection(series: Series) -> None:
    assert block_spread(series(40, ["aa"])) == pytest.approx(NOISE * 2**0.5, rel=0.1)


def test_a_steady_drift_leaves_identical_servers_identical(series: Series) -> None:
    share = false_positives(series(50, ["aa"], drift=0.002))
    assert share.high is not None
    assert share.count / share.of <= 0.1
