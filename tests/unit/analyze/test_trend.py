"""A trend finds a step where it is, and seldom one where there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from tests.unit.analyze import synthetic
from tests.unit.stores import known

from tare.analyze.comparison import Recorded
from tare.analyze.estimate import BlockEffect, Estimate, Finding
from tare.analyze.trend import Series, by_store, series_of, trend
from tare.plan.expand import expand

BLOCKS = 8


def of_stores(
    rng: np.random.Generator, effects: Sequence[float], own: float, between: float, blocks: int = BLOCKS
) -> Series:
    """One arm over stores with these effects, log ratios; `own`: spread of a block, `between`: of a store."""
    plan = expand(synthetic.study(("bare", "host"), blocks=blocks))
    stores = []
    for effect in effects:
        of_store = effect + rng.normal(0, between)
        ratios = [math.exp(of_store + rng.normal(0, own)) for _ in range(blocks)]
        again = [1000.0 * math.exp(rng.normal(0, own)) for _ in range(blocks)]
        rates = {"bare": [1000.0] * blocks, "host": [1000.0 * each for each in ratios], "baseline-again": again}
        stores.append(Recorded(plan, known(rates)))
    (series,) = trend(stores, ["throughput"])
    return series


def found_in(rng: np.random.Generator, effects: Sequence[float], own: float, between: float) -> Series:
    """As `of_stores`, from the blocks' ratios alone: a simulation needs many, and no store's other figures."""
    findings = []
    for effect in effects:
        ratios = np.exp(effect + rng.normal(0, between) + rng.normal(0, own, BLOCKS))
        blocks = tuple(BlockEffect(n, float(each) - 1) for n, each in enumerate(ratios, start=1))
        estimate = Estimate(None, None, None, BLOCKS, 0.95, "")
        one = Finding("made-up", "host", {}, "bare", "throughput", estimate, None, blocks)
        findings.append((one, False))
    return series_of("host", "throughput", findings)


@pytest.mark.parametrize("between", [0.0, 0.01], ids=["alike", "stores vary"])
def test_a_series_without_a_change_shows_one_in_few_cases(between: float) -> None:
    rng = np.random.default_rng(20261129)
    shown = sum(bool(found_in(rng, [-0.05] * 10, 0.02, between).steps) for _ in range(60))
    assert shown <= 6  # of 60 at 5 %: 7 or more come in 3 % of seeds


def test_a_step_is_found_where_it_is_with_its_size() -> None:
    rng = np.random.default_rng(7)
    series = of_stores(rng, [-0.02] * 6 + [-0.09] * 5, 0.02, 0.005)
    (step,) = series.steps
    assert step.at == 6
    assert step.estimate.low is not None
    assert step.estimate.high is not None
    assert step.estimate.low < math.expm1(-0.07) < step.estimate.high
    assert list(by_store([series])) == [6]


def test_two_steps_are_found_in_time() -> None:
    rng = np.random.default_rng(8)
    series = of_stores(rng, [0.0] * 5 + [-0.1] * 5 + [0.0] * 5, 0.02, 0.0)
    assert [step.at for step in series.steps] == [5, 10]
    assert [(step.estimate.point or 0) > 0 for step in series.steps] == [False, True]


def test_four_stores_show_no_change_and_no_spread_between_stores() -> None:
    series = of_stores(np.random.default_rng(9), [0.0, 0.0, -0.2, -0.2], 0.02, 0.0)
    assert (series.steps, series.between) == ((), None)


def test_a_store_with_two_blocks_is_shown_and_decides_nothing() -> None:
    plan = expand(synthetic.study(("bare", "host"), blocks=BLOCKS))
    rng = np.random.default_rng(10)
    whole = [known(_rates(rng, BLOCKS)) for _ in range(6)]
    short = known({name: rates[:2] for name, rates in _rates(rng, 2, effect=-0.5).items()})
    (series,) = trend([Recorded(plan, each) for each in [*whole[:3], short, *whole[3:]]], ["throughput"])
    assert series.steps == ()
    assert [bool(point.why) for point in series.points] == [False] * 3 + [True] + [False] * 3


def _rates(rng: np.random.Generator, blocks: int, effect: float = 0.0) -> dict[str, list[float]]:
    spread = [[math.exp(rng.normal(0, 0.02)) for _ in range(blocks)] for _ in range(2)]
    return {
        "bare": [1000.0] * blocks,
        "host": [1000.0 * math.exp(effect) * each for each in spread[0]],
        "baseline-again": [1000.0 * each for each in spread[1]],
    }
