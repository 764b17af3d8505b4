"""Known effects go in; calibration must tell them, and must tell when an estimator is broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.calibrate.conftest import NOISE, Series

from tare.analyze import Estimate
from tare.calibrate.outcome import by_product
from tare.calibrate.pooled import block_spread, false_positives, injected
from tare.run.record import RunRecord
from tare.study.model import Study

EFFECTS = {
    "work +1 %": 1 / 1.01 - 1, "work +2 %": 1 / 1.02 - 1, "work +5 %": 1 / 1.05 - 1, "work +10 %": 1 / 1.1 - 1,
    "CPU quota 90 %": 0.923 - 1, "proxy delay 20 µs": 0.88 / 0.999 - 1,
    "900 reads a second": 0.905 - 1,
}  # fmt: skip


def too_narrow(study: Study, records: Sequence[RunRecord], arm: str) -> Estimate:
    """A third of the interval, as windows taken for runs would give."""
    found = by_product(study, records, arm)
    assert found.point is not None
    assert found.low is not None
    assert found.high is not None
    return replace(
        found, low=found.point - (found.point - found.low) / 3, high=found.point + (found.high - found.point) / 3
    )


def too_kind(study: Study, records: Sequence[RunRecord], arm: str) -> Estimate:
    """Three points too good, whatever was measured."""
    found = by_product(study, records, arm)
    assert found.point is not None
    assert found.low is not None
    assert found.high is not None
    return replace(found, point=found.point + 0.03, low=found.low + 0.03, high=found.high + 0.03)


def test_every_injected_effect_is_recovered_without_bias_and_covered(series: Series) -> None:
    seen = series(20)
    for title, effect in EFFECTS.items():
        found = injected(seen, title)
        assert found.estimate.point == pytest.approx(effect, abs=0.006), title
        assert found.truth.point == pytest.approx(effect, abs=0.006), title
        assert found.bias.low is not None
        assert found.bias.high is not None
        assert found.bias.low < 0.004, title
        assert found.bias.high > -0.004, title
        assert found.covered.of == 20
        assert found.covered.count >= 17, title


def test_identical_servers_are_called_different_in_about_one_study_of_twenty(series: Series) -> None:
    found = false_positives(series(100, ["aa", "quota"]))
    assert found.of == 300
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.05 < found.high


def test_an_estimator_whose_intervals_are_too_narrow_is_seen(series: Series) -> None:
    seen = series(20, estimator=too_narrow)
    positives, covered = false_positives(seen), injected(seen, "work +5 %").covered
    assert positives.low is not None
    assert positives.low > 0.05
    assert covered.high is not None
    assert covered.high < 0.95


def test_an_estimator_that_is_biased_is_seen(series: Series) -> None:
    seen = series(20, estimator=too_kind)
    found = injected(seen, "work +5 %")
    assert found.bias.low is not None
    assert found.bias.low > 0.02
    assert found.covered.high is not None
    assert found.covered.high < 0.95
    positives = false_positives(seen)
    assert positives.low is not None
    assert positives.low > 0.05


def test_a_study_is_never_judged_by_its_own_truth_alone(series: Series) -> None:
    assert injected(series(2, ["work"]), "work +1 %").covered.of == 0
    assert injected(series(3, ["work"]), "work +1 %").covered.of == 3


def test_the_spread_is_that_of_two_runs_whatever_the_injection(series: Series) -> None:
    assert block_spread(series(40, ["aa"])) == pytest.approx(NOISE * 2**0.5, rel=0.1)


def test_a_steady_drift_leaves_identical_servers_identical(series: Series) -> None:
    found = false_positives(series(50, ["aa"], drift=0.002))
    assert found.high is not None
    assert found.count / found.of <= 0.1
