"""A SUT of several nodes on fakes: started in turn, each known, one that dies fails the run, all are taken away."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.run.conftest import Rig, make_plan
from tests.unit.run.test_faults import At

from tare.deployments import Task
from tare.deployments.fake import FakeDeployment
from tare.plan.model import Plan
from tare.record.run_record import Phase
from tare.run.attempt.server import nodes_of
from tare.run.execute import execute
from tare.run.parity.compare import unlike_nodes
from tare.run.parity.observed import by_node

NAMES = ["sut-1", "sut-2", "sut-3"]


def cluster(count: int = 3, **asked: Any) -> Plan:
    """The tiny plan with so many nodes."""
    plan = make_plan(**asked)
    arms = []
    for arm in plan.study.arms:
        sut = arm.settings.sut.model_copy(update={"nodes": count})
        arms.append(arm.model_copy(update={"settings": arm.settings.model_copy(update={"sut": sut})}))
    return plan.model_copy(update={"study": plan.study.model_copy(update={"arms": tuple(arms)})})


class Noted(FakeDeployment):
    """What was started, in turn."""

    started: list[Any]

    def start(self, task: Task) -> Any:
        instance = super().start(task)
        self.started.append(instance)
        return instance


@pytest.fixture
def noted() -> type[Noted]:
    return type("NotedHere", (Noted,), {"started": []})


def test_each_node_has_an_address_and_data_of_its_own_and_is_in_the_record(
    empty_rig: Rig, noted: type[Noted]
) -> None:
    empty_rig.swap(deployments={"fake": noted})
    (record,) = empty_rig.execute(cluster())
    assert record.outcome.ok, record.outcome.reason
    assert list(record.nodes or {}) == NAMES
    assert len({node.address for node in (record.nodes or {}).values()}) == 3
    assert all(node.effective == record.effective for node in (record.nodes or {}).values())
    servers = [one.task for one in noted.started if "-sut-" in one.task.name]
    assert [task.name.rpartition("-")[2] for task in servers] == ["1", "2", "3"] * 2  # to load, and to be measured
    assert len({bind.source for task in servers for bind in task.binds if "data" in bind.source}) == 6
    assert len({(task.listen, task.port) for task in servers[3:]}) == 3
    assert empty_rig.leftovers == []


def test_a_server_that_is_alone_is_called_as_before(rig: Rig) -> None:
    (record,) = rig.execute(make_plan())
    assert record.nodes is None
    assert [node.name for node in nodes_of(1)] == ["sut"]
    assert (nodes_of(1)[0].below("/d"), nodes_of(1)[0].named("x"), nodes_of(1)[0].before("f")) == ("/d", "x", "f")


def test_a_snapshot_of_a_cluster_is_one_and_is_reused(empty_rig: Rig, noted: type[Noted]) -> None:
    empty_rig.swap(deployments={"fake": noted})
    first, second = empty_rig.execute(cluster(blocks=2))
    assert first.snapshot is not None
    assert first.snapshot == second.snapshot
    (snapshot,) = empty_rig.machine.layout.snapshots.iterdir()
    assert sorted(path.name for path in (snapshot / "data").iterdir()) == ["1", "2", "3"]
    assert len([one for one in noted.started if "-sut-" in one.task.name]) == 9


def test_a_node_that_dies_fails_the_run_by_its_name(empty_rig: Rig, noted: type[Noted]) -> None:
    empty_rig.swap(deployments={"fake": noted})

    def kill_second() -> None:
        node = next(one for one in reversed(noted.started) if one.task.name.endswith("-sut-2"))
        os.killpg(node.process.pid, signal.SIGKILL)

    plan = cluster(measure_s=5.0)
    ((record,),) = execute(plan, empty_rig.machine, empty_rig.destination(), At(Phase.MEASURE, kill_second))
    assert not record.outcome.ok
    assert record.outcome.failed_in is Phase.MEASURE
    assert "the server ended during measure, node sut-2; its last output: " in str(record.outcome.reason)
    assert empty_rig.leftovers == []


def test_nodes_that_never_see_each_other_fail_the_run(empty_rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tare.run.attempt.server.TOGETHER_S", 0.2)
    (record,) = empty_rig.execute(cluster(settings={"fault": "together"}))
    assert "sut-1 does not see all 3 nodes up" in str(record.outcome.reason)
    assert empty_rig.leftovers == []


def test_a_node_that_cannot_start_takes_the_others_with_it(empty_rig: Rig, noted: type[Noted]) -> None:
    class Refusing(noted):  # type: ignore[misc, valid-type]  # a class that a fixture made
        def start(self, task: Task) -> Any:
            if task.name.endswith("-sut-3"):
                raise OSError("no room for a third")
            return super().start(task)

    empty_rig.swap(deployments={"fake": Refusing})
    (record,) = empty_rig.execute(cluster())
    assert "no room for a third" in str(record.outcome.reason)
    assert empty_rig.leftovers == []


def test_nodes_that_are_not_alike_are_refused(empty_rig: Rig) -> None:
    (record,) = empty_rig.execute(cluster())
    nodes = dict(record.nodes or {})
    assert unlike_nodes(by_node(record, nodes)) == ()
    second = nodes["sut-2"]
    nodes["sut-2"] = replace(second, effective={**(second.effective or {}), "delay_ms": "7"})
    (difference,) = unlike_nodes(by_node(record, nodes))
    assert difference == "variable delay_ms: not there in sut-1, 7 in sut-2"
    nodes["sut-2"] = replace(second, effective=None)
    assert unlike_nodes(by_node(record, nodes)) == ()  # not read is not different
