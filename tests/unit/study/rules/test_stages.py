"""Stages are levels of a factor of the workload, each with a baseline of its own."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.plan.expand import expand
from tare.study.model import Study
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.study.rules.repetition import instances

TEXT = """\
format: 1
name: staged
question: What do stages cost?
sut: {image: fio, deployment: container}
workload: {name: fio, rw: write, measure_s: 5}
protocol: {name: fixed, blocks: 3, control: true, seed: 4}
factors:
  phase:
    sets: workload.rw
    levels: {filling: write, asking: randread}
  side:
    sets: sut.deployment
    levels: [bare, container]
  size:
    sets: workload.size
    levels: {small: 16M, large: 32M}
stages: phase
"""
BASELINE = "baseline: {side: bare}\nconditions: [size]\n"


def read(text: str = TEXT, rest: str = BASELINE) -> Study:
    return loads(text + rest, installed())


def test_an_instance_is_all_that_differs_in_its_stage_only() -> None:
    phases = [[arm.levels["phase"] for arm in arms] for arms in instances(read())]
    assert phases == [["filling", "asking"]] * 4


def test_stages_follow_each_other_in_the_order_of_levels_in_every_block() -> None:
    plan = expand(read())
    arms = {arm.name: arm for arm in plan.study.arms}
    assert len(plan.runs) == 3 * (2 * 2 * 2 + 1)
    runs = [arms[run.arm] for run in plan.runs if not arms[run.arm].control]
    for first, second in zip(runs[::2], runs[1::2], strict=True):
        assert (first.levels["phase"], second.levels["phase"]) == ("filling", "asking")
        assert {**first.levels, "phase": "asking"} == second.levels
    orders = {tuple(run.arm for run in plan.runs if run.block == block) for block in (1, 2, 3)}
    assert len(orders) > 1


def test_the_control_repeats_the_first_stage_alone() -> None:
    control = [arms for arms in instances(expand(read()).study) if arms[0].control]
    assert [[arm.levels["phase"] for arm in arms] for arms in control] == [["filling"]]


def test_each_stage_is_compared_with_that_stage_of_the_baseline() -> None:
    study = read()
    for arm in study.arms:
        baseline = next(other for other in study.arms if other.name == study.baseline_of(arm.name))
        assert baseline.levels == {**arm.levels, "side": "bare"}


def test_stages_decide_what_is_run() -> None:
    apart = read(TEXT.replace("stages: phase\n", ""), "baseline: {side: bare}\n")
    assert expand(apart).digest != expand(read(rest="baseline: {side: bare}\n")).digest
    assert [len(arms) for arms in instances(apart)] == [1] * 8


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("stages: phase", "stages: fase", "there is no factor 'fase'"),
        ("stages: phase", "stages: side", "all stages run on one unchanged server"),
        ("conditions: [size]", "conditions: [size, phase]", "over which findings are averaged"),
        ("baseline: {side: bare}", "baseline: {side: bare, phase: filling}", "baseline"),
        (
            "{name: fixed, blocks: 3, control: true, seed: 4}",
            "{name: interleave, measure: auto}",
            "a fixed measure phase",
        ),
    ],
)
def test_what_cannot_be_is_refused(old: str, new: str, what: str) -> None:
    whole = (TEXT + BASELINE).replace(old, new)
    with pytest.raises(StudyError, match=what):
        loads(whole, installed())
