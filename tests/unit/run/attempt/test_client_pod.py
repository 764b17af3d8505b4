"""A client in a pod of a cluster: where a server outside listens for it; and a pod that its cluster loses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.run.conftest import Rig, make_plan

from tare.deployments.fake import FakeDeployment
from tare.errors import HostSilent, PodLost, RunFailed
from tare.plan.model import Plan
from tare.run.attempt import context
from tare.run.parity.observed import observation
from tare.sites import Host
from tare.sites.fake import FakeHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.model import ClientSpec
from tare.study.values import NetworkKind

ON_NODE = "127.0.0.2"


@pytest.fixture
def on_a_node(empty_rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A machine that is a node, known in its cluster by another address than the loopback's usual one."""

    def address(host: Host) -> str:
        return ON_NODE

    monkeypatch.setattr(context, "address_in_cluster", address)
    empty_rig.swap(deployments={"fake": FakeDeployment, "pod": FakeDeployment})
    return empty_rig


def with_client(**placed: Any) -> Plan:
    plan = make_plan()
    (arm,) = plan.study.arms
    client = ClientSpec(image="tar:fake", **placed)
    arm = arm.model_copy(update={"settings": arm.settings.model_copy(update={"client": client})})
    return plan.model_copy(update={"study": plan.study.model_copy(update={"arms": (arm,)})})


@pytest.mark.parametrize(
    ("placed", "address"),
    [
        ({"deployment": "pod", "network": NetworkKind.POD}, ON_NODE),
        ({"deployment": "pod"}, "127.0.0.1"),
        ({"deployment": "fake"}, "127.0.0.1"),
    ],
)
def test_a_server_outside_listens_where_a_client_in_a_pod_finds_its_node(
    on_a_node: Rig, placed: dict[str, Any], address: str
) -> None:
    (record,) = on_a_node.execute(with_client(**placed))
    assert record.outcome.ok, record.outcome.reason
    assert record.path is not None
    assert record.path.client_dialled is not None
    assert record.path.client_dialled.address == address
    assert on_a_node.leftovers == []


def test_a_pod_that_its_cluster_lost_is_no_mere_notice(tmp_path: Path) -> None:
    class Lost(FakeDeployment):
        def observe(self, instance: Any) -> Any:
            raise PodLost(f"the node of {instance.task.name} is lost")

    class Unreadable(FakeDeployment):
        def observe(self, instance: Any) -> Any:
            raise RunFailed(f"{instance.task.name} has ended")

    instance: Any = SimpleNamespace(task=SimpleNamespace(name="tare-a-sut"))
    host, ledger = FakeHost(), SqliteLedger(tmp_path / "ledger")
    notices: list[str] = []
    with pytest.raises(PodLost, match="the node of tare-a-sut is lost"):
        observation(Lost(host, ledger), instance, notices)
    assert observation(Unreadable(host, ledger), instance, notices) is None
    assert notices == ["what is in force around tare-a-sut could not be read: tare-a-sut has ended"]


def test_a_host_that_cannot_be_asked_what_is_in_force_fails_the_run(tmp_path: Path) -> None:
    class Silent(FakeDeployment):
        def observe(self, instance: Any) -> Any:
            raise HostSilent("find cannot be started on local: Resource temporarily unavailable")

    notices: list[str] = []
    instance: Any = SimpleNamespace(task=SimpleNamespace(name="tare-a-sut"))
    with pytest.raises(HostSilent, match=r"^find cannot be started"):
        observation(Silent(FakeHost(), SqliteLedger(tmp_path / "ledger")), instance, notices)
    assert notices == []
