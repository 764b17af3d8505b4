"""A container that containerd makes itself: what is around its program, that no dockerd has it, what is left."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from docker import DockerClient
from tests.integration.cgroups import groups_called
from tests.integration.deployments.conftest import forget_images
from tests.integration.deployments.test_network_path import free_port, wait_until_listening
from tests.integration.hosts import reached as reached_by
from tests.integration.hosts.reached import Reached

from tare.deployments import CONTAINERD, Bind, Deployment, Endpoint, Instance, Limits, Task
from tare.deployments.containerd.client import NAMESPACE
from tare.deployments.containerd.ctr import ctr, find_socket
from tare.deployments.network.path import observe_path
from tare.deployments.pod.cni import links_of, scratch_of
from tare.deployments.sweep import sweep
from tare.errors import RunFailed
from tare.record.network_path import Hop
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger
from tare.sites.local import own_process
from tare.study.values import NetworkKind

pytestmark = pytest.mark.engine

MakeTask = Callable[..., Task]
Started = Callable[[Deployment, Task], Instance]
DOCKERS = "moby"
"""Of containerd's namespaces, that of dockerd's containers."""


def names_in(host: Host, namespace: str) -> list[str]:
    return ctr(host, find_socket(host), "containers", "ls", "-q", namespace=namespace).split()


def test_no_dockerd_has_a_part_in_it(
    containerd: Deployment, make_task: MakeTask, started: Started, host: Host, engine: DockerClient
) -> None:
    instance = started(containerd, make_task("sleep", "1000"))
    name = instance.task.name
    assert name in names_in(host, NAMESPACE)
    assert name not in names_in(host, DOCKERS)
    assert name not in [each.name for each in engine.containers.list(all=True, ignore_removed=True)]
    facts = containerd.observe(instance).containerd
    assert facts is not None
    assert (facts.shim or "").startswith("containerd-shim")
    assert (facts.namespace, facts.snapshotter) == (NAMESPACE, "overlayfs")
    assert Path(facts.socket or "").resolve() == Path(find_socket(host)).resolve()
    assert facts.containerd
    assert (facts.runtime or "").startswith("runc ")


def test_all_that_is_observed_is_as_in_dockers_container(
    containerd: Deployment, container: Deployment, make_task: MakeTask, started: Started, tmp_path: Path
) -> None:
    limits = Limits(cpus="0", cpu_quota=0.5, memory_bytes=64 << 20, nofile=1000, nproc=500)
    data = (Bind(str(tmp_path), "/data"),)
    seen = [
        each.observe(started(each, make_task("sleep", "1000", name=name, limits=limits, binds=data)))
        for name, each in (("own", containerd), ("docker", container))
    ]
    own, docker = seen
    for key in (
        *("cpu_weight", "cpus_allowed", "cpu_quota", "memory_bytes", "limits", "seccomp", "capabilities"),
        *("no_new_privileges", "binary_digest", "scheduler", "oom_score_adj", "mounts", "disk_iops", "id_map"),
    ):
        assert getattr(own, key) == getattr(docker, key), key
    assert (own.root_mount or "").split()[0] == (docker.root_mount or "").split()[0] == "overlay"
    assert {path.rpartition("/")[0] for path in own.cgroups.values()} == {
        path.rpartition("/")[0] for path in docker.cgroups.values()
    }
    names = dict.fromkeys(("HOSTNAME",), "")
    assert {**(own.environment or {}), **names} == {**(docker.environment or {}), **names}


def test_a_client_shares_the_network_of_a_container_of_dockers(
    containerd: Deployment, container: Deployment, make_task: MakeTask, started: Started
) -> None:
    server = started(container, make_task("sleep", "1000", name="server", network=NetworkKind.BRIDGE))
    client = started(
        containerd, make_task("sleep", "1000", name="client", network=NetworkKind.SHARED, beside=server)
    )
    inside = [each.observe(one).namespaces["net"] for each, one in ((container, server), (containerd, client))]
    assert inside[0] == inside[1]


def bridge_of(task: Task) -> Path:
    return Path("/sys/class/net") / links_of(task.name, own_process()).bridge


@pytest.mark.parametrize(
    ("client_in", "client_net", "hop"),
    [
        ("bare", NetworkKind.HOST, Hop.BRIDGE),
        ("container", NetworkKind.HOST, Hop.BRIDGE),
        (CONTAINERD, NetworkKind.HOST, Hop.BRIDGE),
        ("bare", NetworkKind.SHARED, Hop.LOOPBACK),
        (CONTAINERD, NetworkKind.SHARED, Hop.LOOPBACK),
    ],
)
def test_a_server_on_a_bridge_is_reached_at_an_address_that_cni_gave_it(  # noqa: PLR0917 - a row, and fixtures
    containerd: Deployment,
    bare: Deployment,
    container: Deployment,
    make_task: MakeTask,
    started: Started,
    host: Host,
    client_in: str,
    client_net: NetworkKind,
    hop: Hop,
) -> None:
    port = free_port(host)
    serve = ("httpd", "-f", "-p", f"0.0.0.0:{port}", "-h", "/tmp")
    server = started(containerd, make_task(*serve, name="server", network=NetworkKind.BRIDGE, port=port))
    wait_until_listening(host, server, port)
    facts = containerd.observe(server).containerd
    assert facts is not None
    assert facts.interface == "veth"
    assert bridge_of(server.task).exists()
    inside = containerd.exec(server, ("sh", "-c", "hostname; cat /etc/hosts; ip link show lo"), timeout_s=10).text
    assert inside.startswith(server.task.name)
    assert f"{server.address}\t{server.task.name}" in inside
    assert "UP" in inside
    shared = client_net is NetworkKind.SHARED
    place = "127.0.0.1" if shared else server.address
    call = f"sleep 1000 | nc {place} {port}"
    beside = server if shared else None
    places = {"bare": bare, "container": container, CONTAINERD: containerd}
    asked = make_task("sh", "-c", call, name="client", network=client_net, beside=beside)
    client = started(places[client_in], asked)
    deadline = time.monotonic() + 60
    while (path := observe_path(host, client, server)) is None or path.hop is None:
        assert time.monotonic() < deadline, path
        time.sleep(0.05)
    assert (path.hop, path.connections, path.client_dialled) == (hop, 1, Endpoint(place, port))
    assert (path.client_namespace == path.server_namespace) is shared


def test_a_bridge_goes_with_its_container(
    containerd: Deployment, make_task: MakeTask, started: Started, host: Host
) -> None:
    task = make_task("sleep", "1000", network=NetworkKind.BRIDGE)
    containerd.stop(started(containerd, task), grace_s=1)
    assert not bridge_of(task).exists()
    assert not Path(scratch_of(task.name)).exists()


def test_a_name_that_is_taken_is_told_by_containerd_and_nothing_starts(
    containerd: Deployment, make_task: MakeTask, started: Started
) -> None:
    task = make_task("sleep", "1000")
    started(containerd, task)
    with pytest.raises(RunFailed, match="already has a container of that name"):
        containerd.start(task)


@pytest.mark.parametrize("network", [NetworkKind.HOST, NetworkKind.BRIDGE])
def test_a_container_of_a_killed_tare_is_swept(  # noqa: PLR0917 - fixtures
    reached: Reached,
    make_task: MakeTask,
    ledger: Ledger,
    host: Host,
    tmp_path: Path,
    parent: str,
    network: NetworkKind,
    clean_containerd: None,
) -> None:
    task = make_task("sleep", "1000", network=network)
    reached_by.kill_a_tare(reached, CONTAINERD, task, tmp_path / "ledger.sqlite", None)
    assert task.name in names_in(host, NAMESPACE)
    swept = sweep(ledger.abandoned(), {host.name: host}, None, ledger)
    assert swept.failed == []
    assert any(line.startswith(f"containerd container {task.name}@") for line in swept.removed)
    assert task.name not in names_in(host, NAMESPACE)
    assert not bridge_of(task).exists()
    assert not groups_called(f"*_{parent.partition('_')[2]}")


@pytest.mark.parametrize("network", [NetworkKind.HOST, NetworkKind.BRIDGE])
@pytest.mark.parametrize("after_s", [0.3, 0.6, 0.9, 1.2, 1.6])
def test_a_tare_killed_while_containerd_starts_leaves_nothing_after_the_sweep(  # noqa: PLR0917 - fixtures
    reached: Reached,
    make_task: MakeTask,
    ledger: Ledger,
    host: Host,
    tmp_path: Path,
    after_s: float,
    network: NetworkKind,
    clean_containerd: None,
) -> None:
    task = make_task("sleep", "1000", network=network)
    reached_by.kill_a_tare(reached, CONTAINERD, task, tmp_path / "ledger.sqlite", after_s)
    swept = sweep(ledger.abandoned(), {host.name: host}, None, ledger)
    assert swept.failed == []
    assert task.name not in names_in(host, NAMESPACE)
    assert not bridge_of(task).exists()


def test_the_namespace_goes_with_the_last_image(
    containerd: Deployment, make_task: MakeTask, host: Host, ledger: Ledger
) -> None:
    others = ctr_lines(host, "--namespace", NAMESPACE, "images", "ls", "-q")  # of a tare with another home
    containerd.stop(containerd.start(make_task("sleep", "1000")), grace_s=1)
    assert [entry.keep for entry in ledger.entries() if entry.kind is Kind.NODE_IMAGE] == [True]
    forget_images(host, ledger)
    assert (NAMESPACE in ctr_lines(host, "namespaces", "ls", "-q")) is bool(others)
    assert ctr_lines(host, "--namespace", NAMESPACE, "images", "ls", "-q") == others


def ctr_lines(host: Host, *argv: str) -> list[str]:
    words = ["ctr", "--address", find_socket(host), *argv]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
