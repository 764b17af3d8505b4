"""What an interval says about an arm's cost, and how far a study can be trusted."""

from __future__ import annotations

import itertools
import math

import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import as_tree, with_parts

from tare.analyze import analyze
from tare.analyze.answer import Kind, Trust, arm_answer, arm_answers, hidden_words, trust
from tare.analyze.estimate import BlockEffect, Estimate, Finding

ARMS = ("bare", "bridge")


def finding(
    low: float | None, high: float | None, metric: str = "throughput", blocks: tuple[float, ...] = ()
) -> Finding:
    point = None if low is None or high is None else (low + high) / 2
    return Finding(
        study="s", arm="bridge", levels={}, baseline="bare", metric=metric,
        estimate=Estimate(point, low, high, 8, 0.95, "t"), published=None,
        blocks=tuple(map(BlockEffect, itertools.count(), blocks)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "kind", "cost"),
    [
        (-0.51, -0.33, Kind.COSTS, (0.33, 0.51)),
        (0.03, 0.08, Kind.GAINS, (-0.08, -0.03)),
        (-0.04, 0.03, Kind.ALIKE, (-0.03, 0.04)),
        (-0.049, 0.2, Kind.BELOW, (-0.2, 0.049)),
        (-0.06, 0.01, Kind.UNDECIDED, (-0.01, 0.06)),
        (-0.01, -0.001, Kind.COSTS, (0.001, 0.01)),
    ],
)
def test_less_throughput_is_a_cost(low: float, high: float, kind: Kind, cost: tuple[float, float]) -> None:
    answer = arm_answer(finding(low, high), 0.05)
    assert (answer.kind, (answer.low, answer.high)) == (kind, cost)


def test_longer_latency_is_a_cost() -> None:
    answer = arm_answer(finding(0.12, 0.15, "latency_p95"), 0.05)
    assert (answer.kind, answer.low, answer.high) == (Kind.COSTS, 0.12, 0.15)


def test_the_margin_of_the_study_is_what_is_small() -> None:
    assert arm_answer(finding(-0.04, 0.03), 0.02).kind is Kind.UNDECIDED


def test_without_an_interval_nothing_is_said() -> None:
    assert arm_answer(finding(None, None), 0.05).kind is Kind.UNKNOWN


def test_more_blocks_are_those_whose_interval_would_exclude_zero() -> None:
    """Log ratios with mean -0.1 and standard deviation 0.2: t(n - 1, 0.975) 0.2 / sqrt(n) < 0.1 from n = 18 on."""
    logs = (-0.3, 0.1, -0.3, 0.1, -0.1)  # deviations -0.2, 0.2, -0.2, 0.2, 0: sum of squares 0.16, variance 0.04
    answer = arm_answer(finding(-0.3, 0.15, blocks=tuple(math.expm1(each) for each in logs)), 0.05)
    assert answer.more_blocks == 18 - 5


def test_a_hopeless_arm_is_not_given_a_number_of_blocks() -> None:
    logs = (-1.0, 0.9, -0.9, 1.1)
    answer = arm_answer(finding(-0.9, 3.0, blocks=tuple(math.expm1(each) for each in logs)), 0.001)
    assert answer.more_blocks is None


def judged(noise: float, arms: tuple[str, ...] = ARMS, blocks: int = 12, *, control: bool = True) -> Trust | None:
    names = (*arms, "again") if control else arms
    study = synthetic.study(names, blocks)
    study = study.model_copy(
        update={"arms": tuple(each.model_copy(update={"control": each.name == "again"}) for each in study.arms)}
    )
    made = [
        synthetic.record(
            block,
            arm,
            1000 * synthetic.EFFECTS.get(arm, 1.0) * (1 + noise * wiggle),
            position=(n + block) % len(names),
        )
        for block in range(blocks)
        for n, arm in enumerate(names)
        for wiggle in [math.sin(7.9 * block**2 + 2.0 * n)]
    ]
    analysis = analyze(study, made)
    trusted = trust(study, analysis, arm_answers(study, analysis))
    assert trusted is None or trusted.level is not Trust.SOUND or not trusted.reasons
    return None if trusted is None else trusted.level


def test_a_quiet_study_with_a_control_is_sound() -> None:
    assert judged(0.01) is Trust.SOUND


def test_without_a_control_it_is_read_with_care() -> None:
    assert judged(0.01, control=False) is Trust.CARE


def test_a_study_that_decides_no_arm_is_too_noisy() -> None:
    assert judged(0.5) is Trust.NOISY


def test_a_study_without_runs_is_not_judged() -> None:
    study = synthetic.study(ARMS)
    analysis = analyze(study, [])
    assert trust(study, analysis, arm_answers(study, analysis)) is None


def test_an_effect_that_the_control_could_hide_does_not_decide_a_study() -> None:
    study = synthetic.study(("bare", "bridge", "again"), 4)
    study = study.model_copy(
        update={"arms": tuple(each.model_copy(update={"control": each.name == "again"}) for each in study.arms)}
    )
    factors = {"bare": (1.0, 1.0, 1.0, 1.0), "bridge": (0.9, 0.91, 0.9, 0.91), "again": (2.0, 0.5, 1.6, 0.7)}
    made = [
        synthetic.record(block, arm, 1000 * factors[arm][block], position=n)
        for block in range(4)
        for n, arm in enumerate(factors)
    ]
    analysis = analyze(study, made)
    answers = arm_answers(study, analysis)
    assert [each.kind for each in answers] == [Kind.COSTS]
    trusted = trust(study, analysis, answers)
    assert trusted is not None
    assert trusted.level is Trust.NOISY


@pytest.mark.parametrize(
    ("hidden", "words"),
    [(0.0, "0.0 %"), (0.0851, "8.6 %"), (0.085, "8.5 %"), (0.07, "7.0 %"), (0.101, "11 %"), (0.12, "12 %")],
)
def test_what_a_control_could_hide_is_rounded_upwards_everywhere(hidden: float, words: str) -> None:
    assert hidden_words(hidden) == words


def test_an_arm_with_a_rate_to_keep_is_answered_by_latency_beside_arms_without_one() -> None:
    arms = ("bare", "bridge", "kept")
    made = synthetic.records(arms, 8)
    at_a_rate = [
        with_parts(each, measurement={**as_tree(each.measurement), "details": {"delivered_share": 1.0}})
        if each.arm == "kept"
        else each
        for each in made
    ]
    study = synthetic.study(arms, 8)
    answers = arm_answers(study, analyze(study, at_a_rate))
    assert {each.finding.arm: each.finding.metric for each in answers} == {
        "bridge": "throughput", "kept": "latency_p95",
    }  # fmt: skip
