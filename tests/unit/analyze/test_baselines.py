"""Arms with baselines of their own: each is paired with the one that is else like it, everywhere."""

from __future__ import annotations

import pytest
from tests.unit.analyze.synthetic import arm, record, study

from tare.analyze import analyze
from tare.protocols.stopping import Finished, Rule, decide
from tare.report.words.answer import answer
from tare.study.model import Study

ARMS = {"bare-1": 1000.0, "boxed-1": 900.0, "bare-4": 4000.0, "boxed-4": 4400.0}


@pytest.fixture
def loads() -> Study:
    """Two loads, each bare and in a box."""
    named = {name: name.split("-") for name in ARMS}
    arms = tuple(
        arm(name).model_copy(update={"levels": {"how": how, "load": n}}) for name, (how, n) in named.items()
    )
    levels = {"how": ("bare", "boxed"), "load": ("1", "4")}
    made = study(arms=tuple(ARMS), published=(), factors=levels)
    return made.model_copy(update={"arms": arms, "baseline": "bare-1", "baseline_levels": {"how": "bare"}})


def test_each_arm_is_paired_with_its_own_baseline(loads: Study) -> None:
    records = [record(b, name, tps * (1 + b / 1000)) for b in range(1, 5) for name, tps in ARMS.items()]
    analysis = analyze(loads, records)
    by_arm = {one.arm: one for one in analysis.findings if one.metric == "throughput"}
    assert {name: one.baseline for name, one in by_arm.items()} == {"boxed-1": "bare-1", "boxed-4": "bare-4"}
    assert by_arm["boxed-1"].estimate.point == pytest.approx(-0.1)
    assert by_arm["boxed-4"].estimate.point == pytest.approx(0.1)
    assert [each.arm for each in analysis.arms if each.is_baseline] == ["bare-1", "bare-4"]


def test_the_answer_says_with_what_each_is_compared(loads: Study) -> None:
    noise = [0.99, 1.01, 1.0, 1.005]
    records = [
        record(b, name, tps * (noise[b - 1] if name == "boxed-1" else 1))
        for b in range(1, 5)
        for name, tps in ARMS.items()
    ]
    decision = answer(loads, analyze(loads, records))
    assert "gainst bare, all else alike" in decision


def test_the_stopping_rule_asks_for_no_interval_of_a_baseline() -> None:
    own = {"bare-1": "bare-1", "boxed-1": "bare-1", "bare-4": "bare-4", "boxed-4": "bare-4"}
    done = [Finished(b, {name: tps * (1 + b / 1e4) for name, tps in ARMS.items()}, 1.0, own) for b in range(1, 9)]
    decision = decide(Rule(), "bare-1", done)
    assert list(decision.arms) == ["boxed-1", "boxed-4"]
    assert decision.arms["boxed-4"].point == pytest.approx(0.1)
