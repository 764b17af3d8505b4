"""How latency shifts over quantiles: known answers, and what is not told."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze.estimator import paired
from tare.analyze.statistics.quantile_shift import QuantileShift, quantile_shifts
from tare.record.run_record import RunRecord
from tare.study.protocol_spec import InterleaveSpec

ARMS = ("bare", "bridge")


def run(block: int, arm: str, histogram: list[list[float]], **measurement: Any) -> RunRecord:
    def change(tree: dict[str, Any]) -> None:
        tree["measurement"] |= {"histogram": histogram, **measurement}

    return synthetic.changed(synthetic.record(block, arm, 1_900.0), change)


def shifts(*runs: RunRecord) -> tuple[QuantileShift, ...]:
    return quantile_shifts(synthetic.study(ARMS, blocks=9), runs)


def even(scale: float, events: int = 1_000) -> list[list[float]]:
    """One event at each of `events` steps up to `scale` ms."""
    return [[scale * (n + 1) / events, 1] for n in range(events)]


def test_known_answer_by_hand() -> None:
    """All latencies times 1.1, 1.2 and 1.3: at every quantile the mean log ratio, and t(2, 0.975) = 4.302653."""
    factors = (1.1, 1.2, 1.3)
    runs = [
        each
        for block, factor in enumerate(factors)
        for each in (run(block, "bare", even(10.0)), run(block, "bridge", even(10.0 * factor)))
    ]
    (shift,) = shifts(*runs)
    assert [quantile.percent for quantile in shift.quantiles] == [5, 10, 25, 50, 75, 90, 95, 99]
    logs = [math.log(factor) for factor in factors]
    mean = sum(logs) / 3
    reach = 4.302653 * math.sqrt(sum((each - mean) ** 2 for each in logs) / 2 / 3)
    for quantile in shift.quantiles:
        assert quantile.estimate.point == pytest.approx(math.expm1(mean))
        assert quantile.estimate.low == pytest.approx(math.expm1(mean - reach), abs=1e-6)
        assert quantile.baseline_ms == pytest.approx(quantile.percent / 10)
        assert quantile.arm_ms == pytest.approx(1.2 * quantile.percent / 10)


def test_after_looks_a_quantile_has_the_interval_that_the_metric_of_its_name_has() -> None:
    study = synthetic.study(ARMS, blocks=9).model_copy(update={"protocol": InterleaveSpec()})
    runs = [
        each
        for block, factor in enumerate((1.1, 1.2, 1.3))
        for each in (run(block, "bare", even(10.0)), run(block, "bridge", even(10.0 * factor)))
    ]
    (shift,) = quantile_shifts(study, runs)
    wanted = paired(study, [1.1, 1.2, 1.3])
    for quantile in shift.quantiles:
        assert quantile.estimate.low == pytest.approx(wanted.low)
        assert quantile.estimate.high == pytest.approx(wanted.high)
    (plain,) = shifts(*runs)
    assert (plain.quantiles[0].estimate.low or 0) > (shift.quantiles[0].estimate.low or 0)


def test_a_tail_alone_shifts_its_own_quantiles_alone() -> None:
    slow = [*even(10.0)[:950], *([value + 90, 1] for value, _ in even(10.0)[950:])]
    runs = [each for n in range(3) for each in (run(n, "bare", even(10.0)), run(n, "bridge", slow))]
    (shift,) = shifts(*runs)
    points = {quantile.percent: quantile.estimate.point for quantile in shift.quantiles}
    assert [points[percent] for percent in (5, 50, 90)] == [0, 0, 0]
    assert points[99] == pytest.approx(9.0, rel=0.02)
    assert "spread is unknown" in str(shift.quantiles[0].estimate.why)


def test_a_quantile_with_less_than_ten_events_beyond_it_in_some_run_is_not_told() -> None:
    runs = [run(0, "bare", even(1.0, 100_000)), run(0, "bridge", even(1.0, 200))]
    (shift,) = shifts(*runs)
    assert [quantile.percent for quantile in shift.quantiles] == [5, 10, 25, 50, 75, 90, 95]


def test_a_block_without_a_good_run_of_both_does_without() -> None:
    runs = [
        run(0, "bare", even(1.0)),
        run(0, "bridge", even(2.0)),
        run(1, "bare", even(1.0)),
        synthetic.record(1, "bridge", None, position=1),
    ]
    (shift,) = shifts(*runs)
    assert {quantile.estimate.n for quantile in shift.quantiles} == {1}
    assert {quantile.estimate.low for quantile in shift.quantiles} == {None}


def test_kinds_of_operation_are_told_apart_where_only_they_have_histograms() -> None:
    def parts(scale: float) -> dict[str, Any]:
        kind = {"operations": 1000, "errors": 0, "latency": {"resolution": 0.01}}
        return {
            "read": {**kind, "histogram": even(scale)},
            "update": {**kind, "histogram": even(2 * scale)},
        }

    runs = [
        each
        for n in range(3)
        for each in (run(n, "bare", [], by_operation=parts(1.0)), run(n, "bridge", [], by_operation=parts(1.005)))
    ]
    results = shifts(*runs)
    assert [(shift.arm, shift.operation) for shift in results] == [("bridge", "read"), ("bridge", "update")]
    assert not any(quantile.resolved for shift in results for quantile in shift.quantiles)


def test_a_generator_without_histograms_gives_none() -> None:
    assert shifts(run(0, "bare", []), run(0, "bridge", [])) == ()
    assert shifts() == ()
