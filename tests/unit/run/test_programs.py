"""Workloads without a database: the program is itself the SUT, and no client is told of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.record.parts import as_tree, with_parts
from tests.unit.run.conftest import Rig, make_plan

from tare.analyze import analyze
from tare.analyze.metrics import METRICS
from tare.plan.model import Plan
from tare.record.run_record import Phase
from tare.report import EXPORTERS
from tare.report.content import build_report
from tare.report.words.summary import summary
from tare.study.model import SutSpec
from tare.workloads.registry import WORKLOADS


def program_plan(blocks: int = 1, **workload: Any) -> Plan:
    """One arm whose SUT is the fake program."""
    plan = make_plan(blocks=blocks)
    parameters = {"measure_s": 0.3, "window_s": 0.1, **workload}
    document = WORKLOADS["fake-program"].parameters.model_validate(parameters).model_dump(mode="json")
    settings = plan.study.arms[0].settings.model_copy(
        update={
            "sut": SutSpec(image="tar:fake", deployment="fake"),
            "client": None,
            "workload_name": "fake-program",
            "workload": document,
        }
    )
    arm = plan.study.arms[0].model_copy(update={"settings": settings})
    return plan.model_copy(update={"study": plan.study.model_copy(update={"arms": (arm,)})})


def test_a_program_is_measured_without_database_and_client(empty_rig: Rig) -> None:
    (record,) = empty_rig.execute(program_plan())
    assert record.outcome.ok, record.outcome.reason
    assert record.measurement is not None
    assert record.measurement.unit == "rounds"
    assert (record.effective, record.path, record.snapshot) == (None, None, None)
    assert record.images["client"] is None
    assert record.parity.client is None
    assert record.parity.sut is not None
    assert record.notices == ()
    assert not empty_rig.leftovers


def test_its_cpu_time_is_the_sut_s(empty_rig: Rig) -> None:
    (record,) = empty_rig.execute(program_plan(measure_s=0.5))
    assert record.usage is not None
    assert record.usage.client_cpu_s is None
    assert record.usage.sut_cpu_s is not None
    assert record.usage.monotonic_s is not None
    assert 0 < (record.usage.sut_over_s or 0) <= record.usage.monotonic_s


def test_cpu_time_read_over_a_part_stands_for_the_whole(empty_rig: Rig) -> None:
    (record,) = empty_rig.execute(program_plan())
    assert record.measurement is not None
    usage = {**as_tree(record.usage), "sut_cpu_s": 0.9, "sut_over_s": 1.8}
    measurement = as_tree(replace(record.measurement, duration_s=2.0, operations=1000))
    arm = with_parts(record, usage=usage, measurement=measurement)
    value = METRICS["cpu_per_operation"].of(arm)
    assert value is not None
    assert abs(value - 1000.0) < 1e-9


def test_every_run_starts_from_a_copy_of_files_made_once(empty_rig: Rig) -> None:
    first, second = empty_rig.execute(program_plan(blocks=2, bytes=1000, warmup_s=0.1))
    assert first.outcome.ok, first.outcome.reason
    assert second.outcome.ok, second.outcome.reason
    assert first.snapshot is not None
    assert first.snapshot == second.snapshot
    assert list(first.snapshot.made_by) == ["sut"]
    assert len(list(empty_rig.machine.layout.snapshots.iterdir())) == 1


def test_a_failure_names_its_phase(empty_rig: Rig) -> None:
    for fault, phase in (("load", Phase.LOAD), ("warm-up", Phase.WARM_UP), ("measure", Phase.MEASURE)):
        (record,) = empty_rig.execute(program_plan(bytes=1000, warmup_s=0.1, fault=fault))
        assert record.outcome.failed_in is phase
        assert f"told to fail in {fault}" in (record.outcome.reason or "")
        assert not empty_rig.leftovers


def test_a_report_tells_of_no_client_and_no_server(empty_rig: Rig) -> None:
    plan = program_plan(blocks=3)
    records = empty_rig.execute(plan)
    report = build_report(plan.study, records)
    assert "itself the SUT" in summary(report)[0].text
    result = EXPORTERS["html"](report) + EXPORTERS["md"](report)
    assert "network path was not seen" not in result
    assert "Server variables" not in result
    rules = {alarm.rule for alarm in analyze(plan.study, records).alarms}
    assert "client-bottleneck" not in rules
