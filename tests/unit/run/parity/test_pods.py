"""Pods and rootless networks: in force as declared, by namespaces, interfaces, rules, groups and who carries it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.run.parity.test_compare import TOKEN, parity, record, settings, study

from tare.record.network_path import Hop, NetworkPath
from tare.run.parity.compare import differences
from tare.run.parity.declared import promised_hops, undeclared
from tare.study.model import LimitsSpec, PodSpec
from tare.study.values import POD_NETWORKS, ROOTLESS_NETWORKS, NetworkKind, Qos

SERVED: dict[str, Any] = {
    "held_by_sandbox": "ipc,net",
    "interface": "veth",
    "proxy": "nftables v1.0.6",
    "services": 10,
    "rules": 61,
    "qos": None,
}
GUARANTEED = PodSpec(qos=Qos.GUARANTEED)


def pod_differences(
    network: str, pod: PodSpec, seen: dict[str, Any], hop: str | None = None, **more: Any
) -> tuple[str, ...]:
    in_force = parity(pod=seen, **more)
    path = None if hop is None else NetworkPath(Hop(hop))
    return undeclared(settings(network=NetworkKind(network), pod=pod), in_force, path, TOKEN)


@pytest.mark.parametrize(
    ("network", "pod", "changes", "hop"),
    [
        ("cluster-ip", PodSpec(services=10), {}, "dnat"),
        ("node-port", PodSpec(services=10, proxy="nftables"), {}, "dnat"),
        ("host-port", PodSpec(), {"services": None}, "dnat"),
        ("pod", PodSpec(cni="macvlan"), {"interface": "macvlan"}, "bridge"),
        ("bridge", PodSpec(), {"interface": None}, "bridge"),
        ("host", PodSpec(), {"held_by_sandbox": "ipc"}, "loopback"),
    ],
)
def test_a_pod_that_is_as_declared_is_no_mismatch(
    network: str, pod: PodSpec, changes: dict[str, Any], hop: str
) -> None:
    assert pod_differences(network, pod, {**SERVED, **changes}, hop) == ()


@pytest.mark.parametrize(
    ("network", "pod", "changes", "sentence"),
    [
        ("pod", PodSpec(), {"held_by_sandbox": "ipc"}, "SUT: a pod declared, but its sandbox holds ipc of it"),
        ("host", PodSpec(), {"held_by_sandbox": ""},
         "SUT: a pod declared, but its sandbox holds no namespace of it"),
        ("pod", PodSpec(cni="macvlan"), {},
         "SUT: cni macvlan declared (an interface of kind macvlan), veth in force"),
        ("cluster-ip", PodSpec(), {"interface": None, "services": 1},
         "SUT: cni bridge declared (an interface of kind veth), None in force"),
        ("cluster-ip", PodSpec(services=10_000), {},
         "SUT: 10000 Services declared, 10 in the kernel's rules"),
        ("pod", GUARANTEED, {}, "SUT: class guaranteed declared, its group is not in /kubepods/"),
    ],
)  # fmt: skip
def test_what_of_a_pod_is_not_as_declared_is_named(
    network: str, pod: PodSpec, changes: dict[str, Any], sentence: str
) -> None:
    assert pod_differences(network, pod, {**SERVED, **changes}) == (sentence,)


@pytest.mark.parametrize(
    ("qos", "place", "right"),
    [
        (Qos.GUARANTEED, "kubepods/podx", True),
        (Qos.GUARANTEED, "kubepods/burstable/podx", False),
        (Qos.BURSTABLE, "kubepods/burstable/podx", True),
        (Qos.BURSTABLE, "kubepods/podx", False),
        (Qos.BEST_EFFORT, "kubepods/besteffort/podx", True),
        (Qos.BEST_EFFORT, "kubepods/burstable/podx", False),
    ],
)
def test_a_class_of_service_stands_in_the_group_of_that_class(qos: Qos, place: str, *, right: bool) -> None:
    groups = {"cpu": f"/tare/{TOKEN}/{place}/c", "memory": f"/tare/{TOKEN}/{place}/c"}
    assert (pod_differences("pod", PodSpec(qos=qos), SERVED, cgroups=groups) == ()) is right


def test_every_network_of_a_pod_or_a_user_promises_one_hop() -> None:
    promised = {network: promised_hops(network, NetworkKind.HOST) for network in POD_NETWORKS | ROOTLESS_NETWORKS}
    assert promised == {
        NetworkKind.ROOTLESSPORT: {Hop.ROOTLESSPORT},
        NetworkKind.SLIRP4NETNS: {Hop.SLIRP4NETNS},
        NetworkKind.PASTA: {Hop.PASTA},
        NetworkKind.POD: {Hop.BRIDGE},
        NetworkKind.HOST_PORT: {Hop.DNAT},
        NetworkKind.CLUSTER_IP: {Hop.DNAT},
        NetworkKind.NODE_PORT: {Hop.DNAT},
    }


def test_a_client_in_a_pod_crosses_a_bridge_to_what_listens_on_its_node() -> None:
    assert promised_hops(NetworkKind.HOST, NetworkKind.POD) == {Hop.BRIDGE}
    assert promised_hops(NetworkKind.CLUSTER_IP, NetworkKind.POD) == {Hop.DNAT}


@pytest.mark.parametrize("network", sorted(ROOTLESS_NETWORKS))
@pytest.mark.parametrize("hop", ["rootlessport", "slirp4netns", "pasta", "loopback", "docker-proxy"])
def test_a_users_network_is_carried_by_the_program_of_its_name(network: NetworkKind, hop: str) -> None:
    placed = settings(network=network, engine="podman-rootless")
    in_force = parity()
    refusals = undeclared(placed, in_force, NetworkPath(Hop(hop)), TOKEN)
    wrong = f"network path: network {network.value} promises {network.value}, the connections take {hop}"
    assert refusals == (() if hop == network.value else (wrong,))


@pytest.mark.parametrize(
    ("changes", "keys", "name"),
    [
        ({"services": 1_000}, ("sut.pod.services",), "pod: services"),
        ({"rules": 71}, ("sut.pod.services",), "pod: rules"),
        ({"proxy": "iptables v1.8.9 (nf_tables)"}, ("sut.pod.proxy",), "pod: proxy"),
        ({"interface": "macvlan"}, ("sut.pod.cni",), "pod: interface"),
        ({"qos": "guaranteed"}, ("sut.pod.qos",), "pod: qos"),
        ({"held_by_sandbox": "ipc"}, ("sut.network",), "pod: held by sandbox"),
    ],
)
def test_two_arms_differ_in_a_piece_only_where_a_factor_sets_its_key(
    changes: dict[str, Any], keys: tuple[str, ...], name: str
) -> None:
    one, other = record("host", sut={"pod": SERVED}), record("bridge", sut={"pod": {**SERVED, **changes}})
    (difference,) = differences(study(varies=("sut.limits.nofile",)), one, other)
    assert str(difference).startswith(f"SUT: {name}: ")
    assert differences(study(varies=keys), one, other) == ()


def test_a_pod_beside_none_differs_unless_a_piece_of_it_is_varied() -> None:
    one, other = record("host"), record("bridge", sut={"pod": SERVED})
    assert "SUT: pod: no in host, yes in bridge" in map(
        str, differences(study(varies=("sut.limits.cpu_quota",)), one, other)
    )
    assert differences(study(varies=("sut.network", "sut.pod.sandbox")), one, other) == ()


def test_a_quota_is_held_in_a_pod_as_anywhere() -> None:
    placed = settings(network=NetworkKind.POD, pod=PodSpec(), limits=LimitsSpec(cpu_quota=0.5))
    in_force = parity(pod={**SERVED, "services": None})
    assert undeclared(placed, in_force, None, TOKEN) == ("SUT: CPU quota: 0.5 declared, none in force",)


def test_users_of_two_namespaces_differ_only_where_the_engine_is_varied() -> None:
    plain, mapped = {"id_map": "0:0:4294967295"}, {"id_map": "0:990:1,1:100000:65536"}
    one, other = record("host", sut=plain), record("bridge", sut=mapped)
    (difference,) = differences(study(varies=("sut.network",)), one, other)
    assert str(difference) == "SUT: user namespace: 0:0:4294967295 in host, 0:990:1,1:100000:65536 in bridge"
    assert differences(study(varies=("sut.engine",)), one, other) == ()
