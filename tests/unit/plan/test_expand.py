"""A plan is all of a study's runs, in an order that only study, scale and seed decide."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.errors import StudyError
from tare.plan.expand import decisive, expand
from tare.plan.model import Plan
from tare.study.model import Arm, ArmSettings, ClientSpec, Study, SutSpec
from tare.study.protocol_spec import FixedSpec, InterleaveSpec


def a_study(arms: int = 4, blocks: int = 3, seed: int = 5) -> Study:
    settings = ArmSettings(
        sut=SutSpec(image="i", database="d", deployment="container"),
        client=ClientSpec(image="i", deployment="bare"),
        workload_name="load",
        workload={"warmup_s": 1.0, "measure_s": 4.0, "window_s": 1.0, "cooldown_s": 0.0},
    )
    names = [f"arm{n}" for n in range(arms)]
    return Study(
        name="paths",
        scale="full",
        question="What?",
        source=None,
        arms=tuple(Arm(name=name, levels={"path": name}, settings=settings) for name in names),
        baseline=names[0],
        factors={"path": tuple(names)},
        protocol=InterleaveSpec(blocks=blocks, seed=seed),
        published=(),
        deviations=(),
        text="format: 1\n",
    )


def test_runs_are_numbered_as_they_are_made() -> None:
    plan = expand(a_study())
    assert [run.index for run in plan.runs] == list(range(15))
    assert [run.block for run in plan.runs] == [1] * 5 + [2] * 5 + [3] * 5
    assert [run.position for run in plan.runs] == [0, 1, 2, 3, 4] * 3
    for run in plan.runs:
        assert run.id == f"b{run.block:02d}-{run.position + 1}-{run.arm}"


def test_ids_are_unique_and_do_not_depend_on_the_number_of_blocks() -> None:
    plan = expand(a_study(arms=3, blocks=120))
    assert len({run.id for run in plan.runs}) == 480
    assert expand(a_study(arms=3, blocks=9)).runs == plan.runs[:36]
    assert re.fullmatch(r"b120-4-(arm\d|baseline-again)", plan.runs[-1].id)


def test_the_same_seed_gives_the_same_plan() -> None:
    assert expand(a_study(), 3) == expand(a_study(), 3)
    assert expand(a_study(), 3).digest == expand(a_study(seed=5), 3).digest


def test_without_a_seed_the_study_s_own_is_used() -> None:
    assert expand(a_study(seed=9)).seed == 9
    assert expand(a_study(seed=9)).runs == expand(a_study(seed=1), 9).runs


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_another_seed_is_another_plan(first: int, second: int) -> None:
    plans = [expand(a_study(arms=6, blocks=4), seed) for seed in (first, second)]
    assert (plans[0].digest == plans[1].digest) == (first == second)


def test_the_arms_of_a_block_share_its_seed_and_no_other_block_s() -> None:
    plan = expand(a_study(blocks=8))
    seeds = {block: {run.seed for run in plan.runs if run.block == block} for block in range(1, 9)}
    assert all(len(of_block) == 1 for of_block in seeds.values())
    assert len(set.union(*seeds.values())) == 8
    assert all(0 < run.seed < 2**31 for run in plan.runs)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(StudyError, match="0 or more, not -1"):
        expand(a_study(), -1)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"question": "Another?"}, True),
        ({"text": "# a comment\nformat: 1\n"}, True),
        ({"deviations": ("One more.",)}, True),
        ({"scale": "demo"}, False),
        ({"name": "other"}, False),
        ({"protocol": InterleaveSpec(blocks=3, seed=5, retries=2)}, False),
        ({"arms": a_study(arms=3).arms}, False),
    ],
)
def test_the_digest_is_of_what_is_run_not_of_what_is_said(change: dict[str, object], same: bool) -> None:
    digest = expand(a_study().model_copy(update=change)).digest
    assert (digest == expand(a_study()).digest) is same


def test_a_plan_survives_json() -> None:
    plan = expand(a_study())
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_every_block_has_a_second_instance_of_the_baseline() -> None:
    plan = expand(a_study())
    control = plan.arm("baseline-again")
    assert [arm.name for arm in plan.study.arms if arm.control] == ["baseline-again"]
    assert (control.settings, control.levels) == (plan.arm("arm0").settings, plan.arm("arm0").levels)
    assert [run.block for run in plan.runs if run.arm == control.name] == [1, 2, 3]


def test_an_arm_that_the_plan_has_not_is_a_key_error_with_its_name() -> None:
    with pytest.raises(KeyError, match="arm99"):
        expand(a_study()).arm("arm99")


def test_a_plan_made_of_a_planned_study_has_one_control() -> None:
    assert expand(expand(a_study()).study) == expand(a_study())


def test_only_a_published_protocol_may_go_without_a_control() -> None:
    fixed = FixedSpec(name="fixed", blocks=2, control=False)
    without = expand(a_study().model_copy(update={"protocol": fixed}))
    assert len(without.runs) == 8
    spec = fixed.model_copy(update={"control": True})
    assert len(expand(a_study().model_copy(update={"protocol": spec})).runs) == 10
    with pytest.raises(ValueError, match="control"):
        InterleaveSpec.model_validate({"control": False})


def test_pairing_is_of_what_was_decided_and_without_it_a_plan_is_what_it_was() -> None:
    plain = FixedSpec(name="fixed", blocks=2)
    plans = [
        expand(a_study().model_copy(update={"protocol": spec}))
        for spec in (plain, plain.model_copy(update={"paired": True}))
    ]
    assert "paired" not in decisive(plans[0])["protocol"]
    assert plans[0].runs == plans[1].runs
    assert plans[0].digest != plans[1].digest


def test_runs_kept_together_are_not_paired() -> None:
    with pytest.raises(ValueError, match="spread"):
        FixedSpec(name="fixed", sequence="together", paired=True)


def test_an_arm_with_the_control_s_name_is_refused() -> None:
    study = a_study()
    named = study.arms[1].model_copy(update={"name": "baseline-again"})
    with pytest.raises(StudyError, match="baseline-again"):
        expand(study.model_copy(update={"arms": (study.arms[0], named)}))


def test_runs_that_are_kept_together_are_numbered_by_repetition() -> None:
    spec = FixedSpec(name="fixed", blocks=2, sequence="together", control=False)
    plan = expand(a_study(arms=2).model_copy(update={"protocol": spec}))
    assert [run.id for run in plan.runs] == ["b01-1-arm0", "b02-1-arm0", "b01-2-arm1", "b02-2-arm1"]
