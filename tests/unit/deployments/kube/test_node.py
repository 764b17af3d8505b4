"""A node is the host that has its boot; its directories are kubelet's own; both outputs come from its log files."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from tests.unit.deployments.kube.cluster import NODE, a_cluster, failure

from tare.deployments.cgroup.hierarchy import parse_cgroups
from tare.deployments.kube.node import (
    Node,
    address_in_cluster,
    node_of,
    parse_log,
    printed_by,
    process_of,
    why_not_ready,
)
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Completed
from tare.sites.fake import FakeHost

LOG = (
    b"2026-11-26T01:00:00.1Z stdout F ready\n"
    b"2026-11-26T01:00:00.2Z stderr P a long li\n"
    b"2026-11-26T01:00:00.3Z stdout F \n"
    b"2026-11-26T01:00:00.4Z stderr F ne\n"
)


def test_the_node_with_the_hosts_boot_is_the_hosts() -> None:
    cluster, _ = a_cluster()
    assert node_of(cluster, FakeHost()) == Node(
        "node-1", "10.0.0.1", "containerd://1.6.20~ds1", "v1.34.4", "/run/c/containerd.sock", "/logs", "none"
    )


def test_kubelets_defaults_hold_where_its_configuration_may_not_be_asked_for() -> None:
    cluster, client = a_cluster()
    client.refusals["GET", "/api/v1/nodes/node-1/proxy"] = failure(403, "forbidden")
    node = node_of(cluster, FakeHost())
    assert (node.logs, node.cpu_manager) == ("/var/log/pods", None)


def test_a_host_that_is_no_node_is_told_with_the_nodes_that_are() -> None:
    cluster, _ = a_cluster()
    with pytest.raises(EnvironmentLacks, match=r"elsewhere is not a node of the cluster .* \(its nodes: node-1\)"):
        node_of(cluster, FakeHost(name="elsewhere", boot_id="another"))


def test_a_node_that_is_not_ready_is_refused_before_its_kubelet_is_asked() -> None:
    cluster, client = a_cluster()
    lost = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
    client.objects["/api/v1/nodes"] = {"items": [{**NODE, "status": {**NODE["status"], "conditions": [lost]}}]}
    with pytest.raises(
        EnvironmentLacks, match="the node node-1 starts no pods: Kubelet stopped posting node status"
    ):
        node_of(cluster, FakeHost())
    assert not [path for _, path in client.asked if "configz" in path]


def test_pods_find_what_listens_on_the_node_at_its_address_in_the_cluster() -> None:
    cluster, client = a_cluster()
    assert address_in_cluster(FakeHost(), lambda: cluster) == "10.0.0.1"
    client.objects["/api/v1/nodes"] = {"items": [{**NODE, "status": {**NODE["status"], "addresses": []}}]}
    with pytest.raises(EnvironmentLacks, match="the node node-1 has no address in its cluster"):
        address_in_cluster(FakeHost(), lambda: cluster)


def test_a_node_without_containerd_is_refused() -> None:
    cluster, client = a_cluster()
    info = {**NODE["status"]["nodeInfo"], "containerRuntimeVersion": "cri-o://1.34"}
    client.objects["/api/v1/nodes"] = {"items": [{**NODE, "status": {**NODE["status"], "nodeInfo": info}}]}
    with pytest.raises(EnvironmentLacks, match=r"runs pods with cri-o://1\.34"):
        node_of(cluster, FakeHost())


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        ([{"type": "Ready", "status": "True"}], None),
        ([{"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}],
         "Kubelet stopped posting node status."),
        ([], "it never reported"),
    ],
)  # fmt: skip
def test_a_node_that_is_not_ready_says_why(conditions: list[dict[str, Any]], why: str | None) -> None:
    assert why_not_ready({"status": {"conditions": conditions}}) == why


def test_the_outputs_of_a_container_are_told_apart_and_cut_lines_joined() -> None:
    both = parse_log([LOG])
    assert (both.stdout, both.stderr) == (b"ready\n\n", b"a long line\n")


def test_files_that_kubelet_turned_over_come_first_packed_or_not() -> None:
    directory = "/logs/ns_p_u/task"
    host = FakeHost(
        answers={("find", directory): Completed((), 0, b"0.log\n0.log.1.gz\n0.log.2\n")},
        files={
            f"{directory}/0.log": b"t stdout F 3\n",
            f"{directory}/0.log.1.gz": gzip.compress(b"t stdout F 1\n"),
            f"{directory}/0.log.2": b"t stdout F 2\n",
        },
    )
    node = Node("n", "10.0.0.1", "containerd://1", "v1.34.4", logs="/logs")
    pod = {"metadata": {"namespace": "ns", "name": "p", "uid": "u"}}
    assert printed_by(host, node, pod, "task").stdout == b"1\n2\n3\n"


def test_a_containers_process_is_found_by_its_control_group() -> None:
    cgroups = parse_cgroups("30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    place = f"/sys/fs/cgroup/kubepods/podx/{'ab' * 32}"
    host = FakeHost(
        answers={("find", "/sys/fs/cgroup"): Completed((), 0, place.encode())},
        files={f"{place}/cgroup.procs": b"4711\n"},
    )
    assert process_of(host, cgroups, "ab" * 32) == 4711
    host.files.clear()
    with pytest.raises(RunFailed, match="no process of the container abababababab"):
        process_of(host, cgroups, "ab" * 32)
