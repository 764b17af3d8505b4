"""What a SUT of several nodes is refused for, at the keys that clash, with what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from tare.study.model import ArmSettings, ClientSpec, MonitorSpec, StorageSpec, SutSpec
from tare.study.registry import installed
from tare.study.rules.placement import refuse_cluster
from tare.study.rules.refusal import Refusal
from tare.study.values import NetworkKind
from tare.workloads.registry import WORKLOADS

CLUSTERS = installed().clusters


def asked(workload: dict[str, Any] | None = None, client: str = "host", **sut: Any) -> Refusal | None:
    given = {"image": "i", "deployment": "container", "database": "cassandra", "nodes": 3, **sut}
    settings = ArmSettings(
        sut=SutSpec(**{key: value for key, value in given.items() if key != "monitors"}),
        client=ClientSpec(image="i", deployment="bare", network=NetworkKind(client)),
        workload_name="cassandra-stress",
        workload={},
        monitors=given.get("monitors", {}),
    )
    parameters = WORKLOADS["cassandra-stress"].parameters.model_validate({"measure_s": 5.0, **(workload or {})})
    return refuse_cluster(settings, parameters, CLUSTERS)


@pytest.mark.parametrize("network", ["host", "bridge"])
def test_nodes_on_addresses_of_their_own_are_taken(network: str) -> None:
    assert asked(network=NetworkKind(network)) is None


@pytest.mark.parametrize(
    ("sut", "why", "hint"),
    [
        ({"database": "mariadb"}, "as one server", "cassandra"),
        ({"database": None}, "the program of", "cassandra"),
        ({"network": NetworkKind.PUBLISHED_LOOPBACK}, "each other's own addresses", "bridge"),
        ({"network": NetworkKind.PUBLISHED_ADDRESS}, "each other's own addresses", "host"),
        ({"storage": StorageSpec(kind="block", device="/dev/sdz")}, "/dev/sdz", "loop device"),
        ({"monitors": {"docker-stats": MonitorSpec()}}, "one container", "probe"),
        ({"monitors": {"cadvisor": MonitorSpec()}}, "one container", "probe"),
    ],
)
def test_what_makes_no_sense_for_several_is_refused(sut: dict[str, Any], why: str, hint: str) -> None:
    refusal = asked(**sut)
    assert refusal is not None
    assert why in refusal.why
    assert hint in refusal.hint
    alone = asked(**{**sut, "nodes": 1})
    assert alone is None


def test_a_client_cannot_share_the_namespace_of_several() -> None:
    refusal = asked(client="shared", network=NetworkKind.BRIDGE)
    assert refusal is not None
    assert refusal.keys[0] == ("client", "network")


@pytest.mark.parametrize("nodes", [1, 2])
def test_more_replicas_than_nodes_are_refused(nodes: int) -> None:
    refusal = asked({"replication": 3}, nodes=nodes)
    assert refusal is not None
    assert "sut.nodes: 3" in refusal.hint
    assert asked({"replication": nodes}, nodes=nodes) is None


def test_ycsb_tells_its_replicas_where_it_makes_a_keyspace() -> None:
    model = WORKLOADS["ycsb"].parameters
    result = model.model_validate({"measure_s": 5.0, "properties": {"cassandra.replicationfactor": 3}})
    assert result.replicas == 3
    assert model.model_validate({"measure_s": 5.0}).replicas is None
