"""A pod of a real cluster has what every task has, is reached as its network promises, and leaves nothing."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.kube.conftest import STATE, Started

from tare.deployments import Bind, Deployment, Endpoint, Instance, Limits, PodSetting, Task
from tare.deployments.kube.api import Cluster, connect
from tare.deployments.kube.namespaces import name_of
from tare.deployments.kube.node import address_in_cluster
from tare.deployments.kube.requirement import CLUSTER, usable_node
from tare.deployments.network.path import namespace, observe_path
from tare.deployments.rlimits import ceilings
from tare.deployments.sweep import sweep
from tare.errors import EngineSilent, PodLost, RunFailed
from tare.record.network_path import Hop
from tare.requirements import HostPlan
from tare.run.attempt.death import death_of, oom_kills
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.process import identify
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.values import NetworkKind, Qos

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]

MakeTask = Callable[..., Task]


def test_a_pod_runs_the_tasks_program_with_its_user_words_variables_and_binds(
    started: Started, pods: Deployment, make_task: MakeTask, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, 900, 901)
    words = (
        'id -u; id -g; echo "$FROM_IMAGE $MINE $1" >/data/x; cat /data/x; touch /x || echo no >&2; exec sleep 1000'
    )
    argv = ("sh", "-c", words, "sh", "a b")
    instance = started(
        make_task(*argv, env={"MINE": "1"}, binds=(Bind(str(data), "/data"),), limits=Limits(nofile=1000, cpus="1"))
    )
    pid = instance.process.pid
    wait_for(lambda: Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x001000\x00")
    seen = pods.observe(instance)
    assert (data / "x").read_text() == "yes 1 a b\n"
    assert seen.limits["Max open files"] == "1000 1000"
    assert seen.cpus_allowed == "1"
    assert seen.pod is not None
    assert seen.pod.qos == "best-effort"
    assert seen.environment is not None
    assert seen.environment["MINE"] == "1"
    assert any("kubepods" in path and "besteffort" in path for path in seen.cgroups.values())
    done = pods.exec(
        instance, ["sh", "-c", "id -u; hostname; echo $$; cat; exit 7"], timeout_s=20, stdin=b"given\n"
    )
    uid, hostname, inner, given = done.text.split()
    assert (uid, hostname, given, done.code) == ("900", instance.task.name, "given", 7)
    assert int(inner) < 100  # in the pod's own process namespace
    assert pods.exec(instance, ["id", "-u"], timeout_s=20, user="root").text == "0\n"
    os.kill(pid, signal.SIGKILL)
    assert pods.wait(instance, 30) == 137
    assert Path(instance.task.output.stdout).read_text() == "900\n901\nyes 1 a b\n"
    assert "no\n" in Path(instance.task.output.stderr).read_text()


@pytest.mark.parametrize(
    ("network", "hop"),
    [
        (NetworkKind.HOST, Hop.LOOPBACK),
        (NetworkKind.POD, Hop.BRIDGE),
        (NetworkKind.HOST_PORT, Hop.DNAT),
        (NetworkKind.CLUSTER_IP, Hop.DNAT),
        (NetworkKind.NODE_PORT, Hop.DNAT),
    ],
)
def test_a_client_on_the_node_reaches_it_as_its_network_promises(  # noqa: PLR0917 - a row
    started: Started, pods: Deployment, make_task: MakeTask, host: LocalHost, network: NetworkKind, hop: Hop
) -> None:
    port = 6399
    at = "127.0.0.1" if network is NetworkKind.HOST else "0.0.0.0"
    server = started(make_task("httpd", "-f", "-p", f"{at}:{port}", "-h", "/tmp", network=network, port=port))
    place = server.published
    address, at_port = (place.address, place.port) if place else (server.address, port)
    client = subprocess.Popen([sys.executable, "-c", CONNECT, address, str(at_port)])
    try:
        deadline = time.monotonic() + 60
        while (path := observe_path(host, as_client(host, client.pid, server), server)) is None or path.hop is None:
            assert time.monotonic() < deadline, path
            time.sleep(0.1)
        assert path.hop is hop
        assert path.client_dialled == Endpoint(address, at_port)
    finally:
        client.kill()
        client.wait(60)


@pytest.mark.parametrize(
    ("network", "hop"),
    [
        (NetworkKind.HOST, Hop.BRIDGE),
        (NetworkKind.POD, Hop.BRIDGE),
        (NetworkKind.HOST_PORT, Hop.DNAT),
        (NetworkKind.CLUSTER_IP, Hop.DNAT),
        (NetworkKind.NODE_PORT, Hop.DNAT),
    ],
)
def test_a_client_in_a_pod_reaches_a_server_in_another(
    started: Started, make_task: MakeTask, host: LocalHost, network: NetworkKind, hop: Hop
) -> None:
    port, node = 6399, address_in_cluster(host)
    at = node if network is NetworkKind.HOST else "0.0.0.0"
    serve = ("httpd", "-f", "-p", f"{at}:{port}", "-h", "/tmp")
    server = started(make_task(*serve, network=network, port=port, listen=node))
    place = server.published or Endpoint(server.address, port)
    words = f"until tail -f /dev/null | nc {place.address} {place.port}; do sleep 0.2; done"
    client = started(make_task("sh", "-c", words, network=NetworkKind.POD))
    deadline = time.monotonic() + 60
    while (path := observe_path(host, client, server)) is None or path.hop is None:
        assert time.monotonic() < deadline, path
        time.sleep(0.1)
    assert path.hop is hop
    assert path.client_dialled == place
    assert path.client_namespace not in {path.server_namespace, namespace(host, os.getpid())}


@pytest.mark.parametrize(
    ("limits", "setting", "qos", "score"),
    [
        (Limits(cpu_quota=0.5, memory_bytes=64 << 20), PodSetting(qos=Qos.GUARANTEED), "guaranteed", -997),
        (Limits(cpu_quota=0.5), PodSetting(qos=Qos.BURSTABLE, cpu_request=0.25), "burstable", None),
        (Limits(), PodSetting(qos=Qos.BEST_EFFORT), "best-effort", 1000),
    ],
)
def test_a_class_of_service_is_in_force(  # noqa: PLR0917 - a row
    started: Started,
    pods: Deployment,
    make_task: MakeTask,
    host: LocalHost,
    limits: Limits,
    setting: PodSetting,
    qos: str,
    score: int | None,
) -> None:
    seen = pods.observe(started(make_task("sleep", "1000", limits=limits, pod=setting)))
    assert seen.pod is not None
    assert seen.pod.qos == qos
    assert (seen.cpu_quota, seen.memory_bytes) == (limits.cpu_quota, limits.memory_bytes)
    if score is not None:
        assert seen.oom_score_adj == (max(score, 0) if ceilings(host) else score)


def test_a_pod_that_no_node_can_take_is_pending_with_the_schedulers_reason(
    pods: Deployment, make_task: MakeTask
) -> None:
    with pytest.raises(
        RunFailed, match=r"is pending, as no node takes it: 0/1 nodes are available: 1 Insufficient cpu"
    ):
        pods.start(make_task("sleep", "1000", limits=Limits(cpu_quota=64.0)))


def test_a_program_that_is_not_there_ends_as_in_a_shell(
    started: Started, pods: Deployment, make_task: MakeTask
) -> None:
    assert pods.wait(started(make_task("no-such-program")), 30) == 127


def test_a_server_out_of_memory_was_killed_by_the_kernel(
    started: Started, pods: Deployment, make_task: MakeTask, host: LocalHost
) -> None:
    before = oom_kills(host)
    instance = started(make_task("tail", "/dev/zero", limits=Limits(memory_bytes=64 << 20)))
    wait_for(lambda: not Path(f"/proc/{instance.process.pid}").exists())
    why = death_of(host, pods, instance, before)
    assert why == "the kernel killed the server, out of memory (its limit is 64 MiB)"


def test_a_pod_that_someone_deletes_is_told(
    started: Started, pods: Deployment, make_task: MakeTask, cluster: Cluster, ledger: SqliteLedger
) -> None:
    instance = started(make_task("sleep", "1000"))
    path = f"/api/v1/namespaces/{name_of(ledger.owner)}/pods/{instance.task.name}"
    cluster.delete(path, uid=cluster.must_get(path)["metadata"]["uid"], grace_s=1)
    with pytest.raises(PodLost, match="deleted"):
        pods.wait(instance, 60)


def test_a_pod_that_is_evicted_is_told(
    started: Started, pods: Deployment, make_task: MakeTask, cluster: Cluster, ledger: SqliteLedger
) -> None:
    instance = started(make_task("sleep", "1000"))
    space, name = name_of(ledger.owner), instance.task.name
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": space}}
    cluster.post(f"/api/v1/namespaces/{space}/pods/{name}/eviction", eviction)
    with pytest.raises(
        PodLost, match=r"taken away by the cluster \(EvictionByEvictionAPI\)|someone else deleted it"
    ):
        pods.wait(instance, 60)


def test_the_pods_of_a_killed_tare_are_swept_with_their_namespace(
    cluster: Cluster, host: LocalHost, make_task: MakeTask, tmp_path: Path
) -> None:
    program = (
        "import pickle, sys, time; from tare.deployments.registry import DEPLOYMENTS\n"
        "from tare.sites.local import LocalHost; from tare.sites.sqlite_ledger import SqliteLedger\n"
        "from pathlib import Path; task = pickle.loads(Path(sys.argv[2]).read_bytes())\n"
        "DEPLOYMENTS['pod'](LocalHost(), SqliteLedger(Path(sys.argv[1]))).start(task)\n"
        "print('started', flush=True); time.sleep(1000)\n"
    )
    task = make_task("sleep", "1000", network=NetworkKind.CLUSTER_IP, port=1234)
    (tmp_path / "task").write_bytes(pickle.dumps(task))
    argv = [sys.executable, "-c", program, str(tmp_path / "theirs"), str(tmp_path / "task")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        line = killed.stdout.readline()
        killed.kill()
    assert line == b"started\n"
    ledger = SqliteLedger(tmp_path / "theirs")
    (space,) = [entry.ident for entry in ledger.abandoned() if entry.kind is Kind.NAMESPACE]
    path = f"/api/v1/namespaces/{space.partition('@')[0]}"
    assert cluster.get(f"{path}/pods/{task.name}") is not None
    swept = sweep(ledger.entries(), {host.name: host}, None, ledger)
    assert swept.failed == []
    assert cluster.get(path) is None
    assert ledger.entries() == ()
    assert not list(tmp_path.parent.glob(f"{tmp_path.name}.*"))


def test_a_user_without_rights_is_told_which_are_missing(
    kubeconfig: str, host: LocalHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(STATE / "stranger.kubeconfig"))
    why = CLUSTER.why_not(HostPlan(host))
    assert why is not None
    assert "may not create namespaces" in why


def test_a_cluster_out_of_reach_is_told(
    kubeconfig: str, host: LocalHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    server = next(word for word in Path(kubeconfig).read_text().split('"') if word.startswith("https://"))
    away.write_text(Path(kubeconfig).read_text().replace(server, "https://127.0.0.1:1"))
    monkeypatch.setenv("KUBECONFIG", str(away))
    with pytest.raises(EngineSilent, match=r"the cluster at https://127\.0\.0\.1:1 does not answer"):
        usable_node(host)


def test_the_administrator_can_use_the_node(cluster: Cluster, host: LocalHost) -> None:
    assert CLUSTER.why_not(HostPlan(host)) is None
    assert usable_node(host).kubelet.startswith("v1.")
    assert connect().server == cluster.server


CONNECT = """
import socket, sys, time
while True:
    try:
        held = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
        break
    except OSError:
        time.sleep(0.1)
time.sleep(1000)
"""


def as_client(host: LocalHost, pid: int, server: Instance) -> Instance:
    """A process of the test's own, as the observer of paths looks at a client."""
    process = identify(host, pid)
    assert process is not None
    return replace(server, process=process, deployment="bare")


def wait_for(there: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.05)
