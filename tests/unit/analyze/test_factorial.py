"""Main effects and interactions: known answers, agreement with statsmodels, and what is left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from statsmodels.regression.linear_model import OLS  # type: ignore[import-untyped]  # has no stubs
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW  # type: ignore[import-untyped]  # has no stubs
from tests.unit.analyze import synthetic
from tests.unit.record.parts import rate_of

from tare.analyze.factorial import Cell, Effect, Step, contrast, factorial, reference_of
from tare.analyze.metrics import METRICS
from tare.record.run_record import RunRecord
from tare.study.model import Study
from tare.study.protocol_spec import InterleaveSpec

THROUGHPUT = [METRICS["throughput"]]
PLACES = {"deployment": ("bare", "container"), "disk": ("host", "overlay", "volume")}


def study_of(factors: Mapping[str, tuple[str, ...]], conditions: tuple[str, ...] = ()) -> Study:
    inner = {factor: levels for factor, levels in factors.items() if factor not in conditions}
    arms = tuple(
        synthetic.arm("-".join(levels)).model_copy(update={"levels": dict(zip(inner, levels, strict=True))})
        for levels in product(*inner.values())
    )
    whole = synthetic.study(tuple(arm.name for arm in arms), blocks=99, factors=dict(factors), published=())
    return whole.model_copy(update={"arms": arms, "conditions": conditions})


def made(study: Study, block: int, value: Callable[[Mapping[str, str]], float], **beside: str) -> list[RunRecord]:
    """One block; `value`: levels → throughput."""

    def levelled(levels: Mapping[str, str]) -> Callable[[dict[str, Any]], None]:
        return lambda tree: tree.update(levels=dict(levels))

    return [
        synthetic.changed(
            synthetic.record(block, arm.name, value({**arm.levels, **beside}), position=n),
            levelled({**arm.levels, **beside}),
        )
        for n, arm in enumerate(study.arms)
    ]


def effect(effects: tuple[Effect, ...], *steps: tuple[str, str]) -> Effect:
    return next(each for each in effects if tuple((step.factor, step.level) for step in each.steps) == steps)


def cost(levels: Mapping[str, str]) -> float:
    """A container costs 10 %, an overlay 20 %, both together 5 % more than that."""
    factor = 0.9 if levels["deployment"] == "container" else 1.0
    factor *= {"host": 1.0, "overlay": 0.8, "volume": 1.0}[levels["disk"]]
    return 1_000 * factor * (0.95 if levels["deployment"] == "container" and levels["disk"] == "overlay" else 1.0)


def test_known_answer_of_multiplied_costs() -> None:
    study = study_of(PLACES)
    effects = factorial(study, [run for block in range(3) for run in made(study, block, cost)], THROUGHPUT)
    points = {tuple((step.factor, step.level) for step in each.steps): each.estimate.point for each in effects}
    assert points == {
        (("deployment", "container"),): pytest.approx(0.9 * 0.95 ** (1 / 3) - 1),
        (("disk", "overlay"),): pytest.approx(0.8 * 0.95**0.5 - 1),
        (("disk", "volume"),): pytest.approx(0.0, abs=1e-12),
        (("deployment", "container"), ("disk", "overlay")): pytest.approx(-0.05),
        (("deployment", "container"), ("disk", "volume")): pytest.approx(0.0, abs=1e-12),
    }
    assert all(each.within_blocks for each in effects)


def test_what_a_whole_block_has_in_common_falls_out_and_the_interval_is_of_the_blocks() -> None:
    study = study_of({"deployment": ("bare", "container"), "disk": ("host", "overlay")})
    extra = (0.9, 1.0, 1.1)
    runs = [
        run
        for block, each in enumerate(extra)
        for run in made(
            study,
            block,
            lambda levels, own=each, shift=block: (  # type: ignore[misc]  # a default that binds the variable
                (1 + 5 * shift)
                * cost(levels)
                * (own if levels == {"deployment": "container", "disk": "overlay"} else 1)
            ),
        )
    ]
    estimate = effect(factorial(study, runs, THROUGHPUT), ("deployment", "container"), ("disk", "overlay")).estimate
    logs = np.log([0.95 * each for each in extra])
    low, high = DescrStatsW(logs).tconfint_mean()
    assert estimate.n == 3
    assert estimate.low is not None
    assert estimate.high is not None
    assert [math.log1p(estimate.low), math.log1p(estimate.high)] == pytest.approx([low, high])


def test_points_agree_with_least_squares_of_statsmodels_over_blocks_and_factors() -> None:
    """Effect coding in a complete design: a main effect is twice its coefficient, an interaction four times."""
    study = study_of({"deployment": ("bare", "container"), "disk": ("host", "overlay")})
    rng = np.random.default_rng(5)
    runs = [
        run
        for block in range(6)
        for run in made(study, block, lambda levels: cost(levels) * math.exp(rng.normal(0, 0.05)))
    ]
    container = np.array([1 if run.levels["deployment"] == "container" else -1 for run in runs])
    overlay = np.array([1 if run.levels["disk"] == "overlay" else -1 for run in runs])
    blocks = np.array([[run.block == block for block in range(6)] for run in runs], dtype=float)
    logs = np.log([rate_of(run) for run in runs])
    fit = OLS(logs, np.column_stack([container, overlay, container * overlay, blocks])).fit()
    effects = factorial(study, runs, THROUGHPUT)
    steps = ("deployment", "container"), ("disk", "overlay")
    results = [effect(effects, steps[0]), effect(effects, steps[1]), effect(effects, *steps)]
    points = [math.log1p(each.estimate.point) for each in results if each.estimate.point is not None]
    assert points == pytest.approx([2 * fit.params[0], 2 * fit.params[1], 4 * fit.params[2]])


def test_conditions_are_compared_between_blocks_as_welch_and_statsmodels_do() -> None:
    study = study_of({"deployment": ("bare", "container"), "threads": ("1", "8")}, conditions=("threads",))
    few, many = (0.90, 0.92, 0.91), (0.70, 0.75, 0.74, 0.72)
    runs: list[RunRecord] = []
    for block, (threads, ratio) in enumerate([*(("1", each) for each in few), *(("8", each) for each in many)]):
        tps = {"bare": 1_000.0 * (block + 1), "container": 1_000.0 * (block + 1) * ratio}
        runs += made(study, block, lambda levels, tps=tps: tps[levels["deployment"]], threads=threads)  # type: ignore[misc]  # a default that binds the variable
    effects = factorial(study, runs, THROUGHPUT)
    result = effect(effects, ("deployment", "container"), ("threads", "8"))
    compared = CompareMeans(DescrStatsW(np.log(many)), DescrStatsW(np.log(few)))
    low, high = compared.tconfint_diff(usevar="unequal")
    assert not result.within_blocks
    assert result.estimate.low is not None
    assert result.estimate.high is not None
    assert [math.log1p(result.estimate.low), math.log1p(result.estimate.high)] == pytest.approx([low, high])
    assert effect(effects, ("deployment", "container")).estimate.n == 7
    assert effect(effects, ("threads", "8")).estimate.n == 7


def test_levels_that_never_meet_are_compared_only_with_those_they_meet() -> None:
    """Small machines had 10 and 25 threads, large ones 30 and 75."""
    met = [{"machine": m, "threads": t} for m, t in (("s", "10"), ("s", "25"), ("l", "30"), ("l", "75"))]
    assert reference_of("threads", "25", ("10",), met) == "10"
    assert reference_of("threads", "30", ("10", "25"), met) is None
    assert reference_of("threads", "75", ("10", "25", "30"), met) == "30"
    assert reference_of("machine", "l", ("s",), met) is None


def test_a_combination_that_was_left_out_costs_only_what_it_would_have_told() -> None:
    """No overlay on bare: its effect is read from containers alone, and there is no interaction to tell."""
    cells = [
        Cell(f"{deployment}-{disk}", {"deployment": deployment, "disk": disk})
        for deployment, disk in product(*PLACES.values())
        if (deployment, disk) != ("bare", "overlay")
    ]
    container, overlay = Step("deployment", "container", "bare"), Step("disk", "overlay", "host")
    assert contrast(cells, [overlay]) == {"container-overlay": 1.0, "container-host": -1.0}
    assert contrast(cells, [container, overlay]) == {}
    assert contrast(cells, [container]) == {
        "container-host": 0.5, "bare-host": -0.5, "container-volume": 0.5, "bare-volume": -0.5,
    }  # fmt: skip


def test_a_block_that_lacks_an_arm_does_without() -> None:
    study = study_of({"deployment": ("bare", "container"), "disk": ("host", "overlay")})
    runs = [run for block in range(4) for run in made(study, block, cost)]
    effects = factorial(study, runs[:-1], THROUGHPUT)
    assert {each.estimate.n for each in effects} == {3}


def test_one_factor_alone_has_no_such_view() -> None:
    assert factorial(synthetic.study(), synthetic.records(), THROUGHPUT) == ()
    assert factorial(study_of(PLACES), [], THROUGHPUT) == ()


def test_after_looks_intervals_are_as_wide_as_those_of_the_overheads() -> None:
    """t at 0.9825 in place of 0.975, within blocks as between blocks of two conditions."""
    factors = {**PLACES, "load": ("light", "full")}
    study = study_of(factors, conditions=("load",))
    looking = study.model_copy(update={"protocol": InterleaveSpec()})
    records = [
        each
        for block in range(6)
        for each in made(
            study,
            block,
            lambda levels, n=block: cost(levels) * (1 + 0.01 * ((n * len(levels["deployment"])) % 7)),  # type: ignore[misc]  # a default that binds the variable
            load=factors["load"][block % 2],
        )
    ]
    for step in (("deployment", "container"), ("load", "full")):
        before, after = (effect(factorial(each, records, THROUGHPUT), step).estimate for each in (study, looking))
        assert before.low is not None
        assert after.low is not None
        assert before.high is not None
        assert after.high is not None
        assert after.low < before.low
        assert after.high > before.high
        assert after.point == pytest.approx(before.point)
        assert after.confidence == pytest.approx(0.95)
