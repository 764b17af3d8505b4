"""Stages of one instance, on fakes: one server, one set of data, a record each, good together or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.run.test_emulated import emulating

from tare.deployments.registry import DEPLOYMENTS
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.record.run_record import Phase, RunRecord
from tare.run.resume import StudyState, finished, remaining
from tare.study.model import Arm
from tare.study.protocol_spec import FixedSpec
from tare.workloads.registry import WORKLOADS

STAGES = ("first", "second")


@pytest.fixture
def staged(plans: Any) -> Any:
    """Makes a plan of two deployments in two stages; `second`: parameters of the second stage alone."""

    def make(*, blocks: int = 1, retries: int = 0, second: dict[str, Any] | None = None, **workload: Any) -> Plan:
        study = plans(**workload).study
        template = study.arms[0].settings

        def settings(stage: str) -> Any:
            if stage == "first" or second is None:
                return template
            asked = {**template.workload, **second}
            parameters = WORKLOADS["fake"].parameters.model_validate(asked).model_dump(mode="json")
            return template.model_copy(update={"workload": parameters})

        arms = tuple(
            Arm(name=f"{side}-{stage}", levels={"side": side, "stage": stage}, settings=settings(stage))
            for side in ("plain", "other")
            for stage in STAGES
        )
        return expand(
            study.model_copy(
                update={
                    "arms": arms,
                    "baseline": arms[0].name,
                    "baseline_levels": {"side": "plain"},
                    "factors": {"side": ("plain", "other"), "stage": STAGES},
                    "varies": {"stage": ("workload.measure_s", "workload.fault")},
                    "stages": "stage",
                    "protocol": FixedSpec(name="fixed", blocks=blocks, retries=retries, control=False),
                }
            )
        )

    return make


def by_instance(records: list[RunRecord]) -> list[tuple[RunRecord, RunRecord]]:
    """In the order in which they were made."""
    return [(first, second) for first, second in zip(records[::2], records[1::2], strict=True)]


def test_stages_of_an_arm_follow_each_other(rig: Any, staged: Any) -> None:
    records = rig.execute(staged(blocks=2))
    assert all(record.outcome.ok for record in records), [record.outcome for record in records]
    assert len(records) == 8
    for first, second in by_instance(records):
        assert (first.levels["stage"], second.levels["stage"]) == STAGES
        assert first.levels["side"] == second.levels["side"]
        assert (first.continues, second.continues) == (None, first.run_id)
        ended = next(time for time in first.phases if time.phase is Phase.COOL_DOWN)
        begun = next(time for time in second.phases if time.phase is Phase.PROVISION)
        assert begun.began_at >= ended.began_at + ended.seconds


def test_both_are_served_by_one_process_that_ends_with_the_last(empty_rig: Any, staged: Any) -> None:
    started: list[str] = []
    empty_rig.swap(deployments={"fake": counting(empty_rig.machine.deployments["fake"], started)})
    records = empty_rig.execute(staged())
    assert all(record.outcome.ok for record in records), [record.outcome for record in records]
    assert [name for name in started if name == "sut"] == ["sut", "sut", "sut"], "one of them to load the data"
    assert started.count("measure") == 4
    assert empty_rig.leftovers == []


def counting(deployment: Any, started: list[str]) -> Any:
    """The deployment, telling of each task that it starts."""

    class Counting(deployment):  # type: ignore[misc]  # a class that is known at run time
        def start(self, task: Any) -> Any:
            started.append(task.name.rpartition("-")[2])
            return super().start(task)

    return Counting


def test_each_stage_has_phases_measurement_and_raw_files_of_its_own(rig: Any, staged: Any) -> None:
    for first, second in by_instance(rig.execute(staged(second={"measure_s": 0.3}))):
        assert first.measurement is not None
        assert second.measurement is not None
        assert (second.measurement.duration_s or 0) > (first.measurement.duration_s or 0)
        for record in (first, second):
            assert [time.phase for time in record.phases] == list(Phase)
            assert "measure.stdout" in record.raw
            assert record.monitors
        assert "sut.stdout" in first.raw
        assert "sut.stdout" not in second.raw
        assert first.snapshot == second.snapshot
        assert first.effective == second.effective


@pytest.mark.parametrize("failing", STAGES)
def test_when_a_stage_fails_none_counts_and_all_are_tried_again(rig: Any, staged: Any, failing: str) -> None:
    plan = staged(retries=1, **({"second": {"fault": "errors"}} if failing == "second" else {"fault": "errors"}))
    records = rig.execute(plan)
    assert len(records) == 8
    assert not any(record.outcome.ok for record in records)
    assert all(record.measurement is None for record in records)
    done = StudyState.from_records(records)
    assert [done.attempts[run.id] for run in plan.runs] == [2, 2, 2, 2]
    for first, second in by_instance(records):
        victim, culprit = (first, second) if failing == "second" else (second, first)
        assert victim.outcome.reason == (
            f"{culprit.arm}, a stage on the same server, failed: {culprit.outcome.reason}"
        )
    assert rig.leftovers == []


def test_a_plan_is_gone_on_with_at_the_first_stage(rig: Any, staged: Any) -> None:
    plan = staged()
    records = rig.execute(plan)
    made = StudyState.from_records(records[:2])
    assert [run.arm for run in remaining(plan, made)] == [record.arm for record in records[2:]]
    again = rig.execute(plan, made)
    assert [record.run_id for record in again] == [record.run_id for record in records[2:]]
    assert len(finished(plan, made.plus(*again))) == 1


def test_each_stage_says_that_its_server_is_emulated(rig: Any, staged: Any) -> None:
    rig.swap(deployments={name: DEPLOYMENTS[name] for name in ("fake", "fake-emulated")})
    records = rig.execute(emulating(staged(), "sut"))
    assert len(records) == 4
    assert {record.emulated for record in records} == {("sut",)}
