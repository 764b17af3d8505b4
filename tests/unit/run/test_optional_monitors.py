"""A monitor that a host lacks: refused with a way forward, or done without where the study says that it may be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from tare.deployments.fake import FakeDeployment
from tare.monitors import Monitor
from tare.monitors.fake import FakeMonitor
from tare.plan.expand import decisive, expand
from tare.plan.model import Plan
from tare.record.monitor import MonitorFacts
from tare.record.run_record import NOTHING
from tare.report.words.notes import made
from tare.requirements import HostPlan, Lack, Requirement
from tare.run.monitoring.monitors import Monitors
from tare.run.requirements import PlugIns, uses_of
from tare.sites.fake import FakeHost
from tare.study.model import Arm, ArmSettings, MonitorSpec, Study, SutSpec
from tare.study.protocol_spec import FixedSpec

WHY = "it is not installed; apt-get install it"


class Lacking(FakeMonitor):
    """Is not installed."""

    needs: ClassVar[tuple[Requirement, ...]] = (
        Requirement("eye", "the monitor `eye`", "not at all", "", lambda _: [Lack(WHY)]),
    )


def plan_with(**monitors: MonitorSpec) -> Plan:
    """Of one arm that is watched so."""
    sut = SutSpec(image="i", deployment="bare")
    settings = ArmSettings(sut=sut, workload_name="load", workload={}, monitors=monitors)
    study = Study(
        name="watched",
        scale="full",
        question="What?",
        source=None,
        arms=(Arm(name="plain", levels={"arm": "plain"}, settings=settings),),
        baseline="plain",
        factors={"arm": ("plain",)},
        protocol=FixedSpec(name="fixed", blocks=1, control=False),
        published=(),
        deviations=(),
        text="format: 1\n",
    )
    return expand(study, 1)


def record(**monitors: dict[str, Any]) -> Any:
    facts = {name: MonitorFacts(**each) for name, each in monitors.items()}
    return SimpleNamespace(pilot=None, plan_digest="d", monitors=facts, usage=None)


def blockers(plan: Plan, **monitors: Monitor) -> list[str]:
    """What the plan lacks on a host, of its monitors."""
    deployments: Any = {"bare": FakeDeployment}
    there = HostPlan(FakeHost(), uses=uses_of(plan), study=plan.study)
    return list(PlugIns(deployments, monitors=monitors).blockers(there, 1))


def test_a_monitor_that_is_not_installed_is_named_with_a_way_forward_before_anything_is_run() -> None:
    monitors = {"probe": FakeMonitor(), "eye": Lacking()}
    sentence = f"the monitor eye cannot run (arms: plain): {WHY}"
    assert blockers(plan_with(eye=MonitorSpec()), **monitors) == [sentence]
    assert blockers(plan_with(eye=MonitorSpec(optional=True)), **monitors) == []


def test_the_trace_of_a_run_is_not_optional() -> None:
    plan = plan_with(probe=MonitorSpec(optional=True))
    assert blockers(plan, probe=Lacking()) == [f"the monitor probe cannot run (arms: plain): {WHY}"]


def test_an_optional_monitor_that_is_lacking_is_recorded_as_absent(tmp_path: Path) -> None:
    site = SimpleNamespace(sut_hosts=(FakeHost(),))
    machine: Any = SimpleNamespace(monitors={"probe": FakeMonitor(), "eye": Lacking()}, site=site)
    settings = plan_with(eye=MonitorSpec(optional=True)).study.arms[0].settings
    context: Any = SimpleNamespace(workdir=SimpleNamespace(host=FakeHost()), settings=settings)
    monitors = Monitors(machine)
    nothing: Any = None
    monitors.begin_measure(context, nothing)
    assert monitors.running == {}
    assert monitors.read(tmp_path, None) == {"eye": MonitorFacts(absent=WHY)}


def test_the_report_tells_of_a_monitor_that_was_missed_and_of_none_that_had_nothing_to_watch() -> None:
    records = [
        record(probe={"samples": 9}, eye={"absent": WHY}),
        record(probe={"samples": 9}, eye={"absent": WHY}, **{"docker-stats": {"absent": NOTHING}}),
        record(probe={"samples": 9}, eye={"samples": 3}),
    ]
    assert made(records) == (f"The monitor eye did not watch 2 of 3 runs: {WHY}.",)


@pytest.mark.parametrize(("optional", "known"), [(False, {}), (True, {"optional": True})])
def test_a_plan_without_optional_monitors_is_what_it_was_before_there_were_any(
    optional: bool, known: dict[str, bool]
) -> None:
    (arm,) = decisive(plan_with(eye=MonitorSpec(optional=optional)))["arms"]
    before: dict[str, Any] = {"interval_s": None, "drop_first": 0, "drop_last": 0, "options": {}}
    assert arm["settings"]["monitors"]["eye"] == {**before, **known}
