"""A pod is one task: what fails is one sentence and leaves nothing, what ends is told as the cluster tells it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.deployments.kube.cluster import FakeClient, a_cluster, failure
from tests.unit.deployments.kube.test_manifest import a_task
from urllib3.exceptions import HTTPError

from tare.deployments import Instance, Limits, PodSetting
from tare.deployments.kube import cluster_pod
from tare.deployments.kube.cluster_pod import ClusterPod
from tare.errors import PodLost, RunFailed, TimedOut
from tare.record.made_by import PodFacts
from tare.run.attempt.death import death_of
from tare.sites import Completed
from tare.sites.fake import FakeHost
from tare.sites.ledger import Kind
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.values import NetworkKind, Qos

CONTAINER = "cd" * 32
GROUP = f"/sys/fs/cgroup/memory/kubepods/pod1/{CONTAINER}"
PID = 1000
SCHEDULED = {"type": "PodScheduled", "status": "True"}


def state(kind: str, **more: Any) -> dict[str, Any]:
    one = {"name": "task", "state": {kind: more}, "containerID": f"containerd://{CONTAINER}"}
    return {"conditions": [SCHEDULED], "containerStatuses": [one], "podIP": "10.1.0.5", "qosClass": "Burstable"}


class Bench:
    """A node, a cluster and a ledger; a pod has the `status` as soon as it is made."""

    def __init__(self, home: Path) -> None:
        self.cluster, self.client = a_cluster()
        self.client.on_post = self._made
        self.ledger = SqliteLedger(home / "ledger")
        self.status: dict[str, Any] = state("running")
        self.host = FakeHost(
            next_pid=PID,
            answers={
                ("uname", "-m"): Completed((), 0, b"x86_64\n"),
                ("find", "/sys/fs/cgroup/memory"): Completed((), 0, f"{GROUP}\n".encode()),
                ("sha256sum",): Completed((), 0, b"ab  layer\n"),
            },
            files={
                "/proc/self/mountinfo": b"31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                b"32 25 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
                f"{GROUP}/cgroup.procs": f"{PID}\n".encode(),
                f"/proc/{PID}/status": b"Uid:\t999\t999\t999\t999\nGid:\t998\t998\t998\t998\n",
                f"/proc/{PID}/cgroup": b"5:cpuset:/kubepods/pod1/c\n4:memory:/kubepods/pod1/c\n",
                "/proc/self/status": b"CapEff:\t000001ffffffffff\n",
            },
        )
        self.process = self.host.spawn("gate")
        self.deployment = ClusterPod(self.host, self.ledger, None, lambda: self.cluster)

    def _made(self, place: str, tree: dict[str, Any]) -> None:
        if tree["kind"] == "Pod":
            tree["status"] = self.status
        if tree["kind"] == "Service":
            tree["spec"] |= {"clusterIP": "10.2.0.7"}
            tree["spec"]["ports"][0]["nodePort"] = 30_123

    def tell(self, status: dict[str, Any], **meta: Any) -> None:
        (path,) = (each for each in self.client.objects if "/pods/" in each)
        tree = self.client.objects[path]
        self.client.objects[path] = {**tree, "status": status, "metadata": {**tree["metadata"], **meta}}

    @property
    def left(self) -> set[str]:
        """What of a task still stands, in the cluster and in the ledger; namespace and image outlive it."""
        inside = {path for path in self.client.objects if "/pods/" in path or "/services/" in path}
        kept = {Kind.NAMESPACE, Kind.NODE_IMAGE}
        return inside | {str(entry) for entry in self.ledger.entries() if entry.kind not in kept}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for limit in ("_START_S", "_PENDING_S", "_REPORTED_S", "_GONE_S"):
        monkeypatch.setattr(cluster_pod, limit, 0.3)
    return Bench(tmp_path)


def started(bench: Bench, **given: Any) -> Instance:
    return bench.deployment.start(a_task(network=NetworkKind.POD, port=6379, **given))


def test_a_pod_is_let_in_after_its_limits_and_cpus_are_set(bench: Bench) -> None:
    instance = started(bench, limits=Limits(cpus="1", nofile=1000))
    assert instance.process == bench.process
    assert (instance.address, instance.published) == ("10.1.0.5", None)
    ran = bench.host.ran()
    limited = next(at for at, argv in enumerate(ran) if "prlimit" in argv)
    opened = next(at for at, argv in enumerate(ran) if argv[0] == "tee")
    assert limited < opened
    assert "--nofile=1000:1000" in ran[limited]
    assert bench.host.files["/sys/fs/cgroup/cpuset/kubepods/pod1/c/cpuset.cpus"] == b"1"


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [("status", b"", "its resource limits"), ("cgroup", b"5:cpuset:/\n4:memory:/\n", "its CPUs")],
)
def test_a_pod_that_ends_before_its_limits_are_set_is_said_to_have_ended(
    bench: Bench, file: str, content: bytes, what: str
) -> None:
    bench.host.files[f"/proc/{PID}/{file}"] = content
    with pytest.raises(RunFailed, match=f"ended before {what} were set"):
        started(bench, limits=Limits(cpus="1"))
    assert not [path for path in bench.host.files if path.endswith("/cpuset//cpuset.cpus")]


def test_without_the_capability_limits_are_lowered_by_the_programs_own_user(bench: Bench) -> None:
    bench.host.files |= {
        "/proc/self/status": b"CapEff:\t0000000000000000\n",
        "/proc/sys/kernel/pid_max": b"32768\n",
    }
    started(bench)
    limited = next(argv for argv in bench.host.ran() if "prlimit" in argv)
    assert limited[:3] == ("setpriv", "--reuid=999", "--regid=998")


def test_cpus_are_kubelets_where_its_static_manager_gives_them(bench: Bench) -> None:
    bench.client.objects["/api/v1/nodes/node-1/proxy/configz"] = {"kubeletconfig": {"cpuManagerPolicy": "static"}}
    started(bench, limits=Limits(cpus="1", memory_bytes=1 << 24), pod=PodSetting(qos=Qos.GUARANTEED))
    assert not [path for path in bench.host.files if path.endswith("cpuset.cpus")]


@pytest.mark.parametrize(
    ("network", "published"),
    [
        (NetworkKind.CLUSTER_IP, ("10.2.0.7", 6379)),
        (NetworkKind.NODE_PORT, ("10.0.0.1", 30_123)),
        (NetworkKind.HOST_PORT, ("10.0.0.1", 6379)),
    ],
)
def test_a_client_dials_the_service_or_the_node(bench: Bench, network: NetworkKind, published: Any) -> None:
    instance = bench.deployment.start(a_task(network=network, port=6379))
    assert instance.published is not None
    assert (instance.published.address, instance.published.port) == published
    bench.host.end(bench.process)
    bench.tell(state("terminated", exitCode=0))
    bench.deployment.stop(instance)
    assert bench.left == set()


def test_a_pod_of_the_nodes_network_is_found_where_it_listens(bench: Bench) -> None:
    assert bench.deployment.start(a_task(network=NetworkKind.HOST, port=1)).address == "127.0.0.1"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                          "message": "0/1 nodes are available: 1 Insufficient memory."}]},
         r"is pending, as no node takes it: 0/1 nodes .* \(for 0 s\)"),
        (state("waiting", reason="ErrImageNeverPull", message="not present"), "cannot start, ErrImageNeverPull"),
        (state("waiting", reason="CreateContainerError", message="no such device"), "CreateContainerError: no"),
        (state("waiting", reason="ContainerCreating"), "does not start: ContainerCreating"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "was evicted from its node"),
    ],
)  # fmt: skip
def test_a_pod_that_does_not_start_is_one_failed_run_and_leaves_nothing(
    bench: Bench, status: dict[str, Any], why: str
) -> None:
    bench.status = status
    with pytest.raises(RunFailed, match=why) as raised:
        started(bench)
    assert "tee" not in [argv[0] for argv in bench.host.ran()]
    assert bench.left == set()
    assert raised.value.what.count(".\n") == 0


def test_a_pod_that_the_api_refuses_leaves_nothing(bench: Bench) -> None:
    namespaces = "/api/v1/namespaces/tare-"
    bench.client.refusals["POST", namespaces] = failure(403, "violates PodSecurity")
    with pytest.raises(RunFailed, match=r"does not permit POST .*: violates PodSecurity"):
        started(bench)
    assert bench.left == set()


def test_an_image_is_brought_to_the_node_once(bench: Bench) -> None:
    def imports() -> int:
        return sum("import" in argv for argv in bench.host.ran())

    instance = started(bench)
    assert imports() == 1
    assert [entry.keep for entry in bench.ledger.entries() if entry.kind is Kind.NODE_IMAGE] == [True]
    name = next(argv for argv in bench.host.ran() if "import" in argv)
    assert name[:3] == ("ctr", "--address", "/run/c/containerd.sock")
    bench.host.end(bench.process)
    bench.tell(state("terminated", exitCode=0))
    bench.deployment.stop(instance)
    bench.host.answers["ctr",] = Completed((), 0, f"tare.invalid/image:{'d' * 24}\n".encode())
    bench.host.files[f"/proc/{PID}/stat"] = b"1000 (gate) S " + b"0 " * 18 + b"10000 " + b"0 " * 30
    started(bench)
    assert imports() == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda bench: bench.tell({"reason": "Evicted", "message": "The node was low on resource: memory."}),
         "the pod tare-0123456789ab-sut was evicted from its node: The node was low on resource: memory"),
        (lambda bench: bench.tell(state("running"), deletionTimestamp="now"),
         "the pod tare-0123456789ab-sut was deleted by someone else"),
        (lambda bench: [bench.client.objects.pop(path) for path in list(bench.client.objects) if "/pods/" in path],
         "the pod tare-0123456789ab-sut is gone: someone else deleted it"),
        (lambda bench: bench.client.objects.pop("/api/v1/nodes/node-1"),
         "the node node-1 is no longer in the cluster, so it is unknown how"),
        (lambda bench: None, "kubelet on node-1 reported no end of the pod"),
        (lambda bench: bench.tell(state("terminated", exitCode=139, reason="Error")),
         "the server was ended by SIGSEGV"),
    ],
)  # fmt: skip
def test_how_a_server_in_a_pod_ended_is_what_its_cluster_tells(
    bench: Bench, change: Callable[[Bench], object], why: str
) -> None:
    instance = started(bench)
    bench.host.end(bench.process)
    change(bench)
    assert death_of(bench.host, bench.deployment, instance, None).startswith(why)


def test_a_node_that_is_lost_is_named_with_its_reason(bench: Bench) -> None:
    instance = started(bench)
    bench.host.end(bench.process)
    lost = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
    bench.client.objects["/api/v1/nodes/node-1"] = {"status": {"conditions": [lost]}}
    with pytest.raises(PodLost, match=r"the node node-1 is lost, .*: Kubelet stopped posting node status"):
        bench.deployment.wait(instance, 1)


LOST = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}


def test_a_pod_does_not_start_on_a_node_that_is_lost_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_pod, "_LOOK_S", 0.05)
    bench.status = {"conditions": [SCHEDULED]}
    bench.client.objects["/api/v1/nodes/node-1"] = {"status": {"conditions": [LOST]}}
    with pytest.raises(PodLost, match=r"the node node-1 is lost, so the pod .* does not start: Kubelet stopped"):
        started(bench)
    assert bench.left == set()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda bench: bench.client.objects.update({"/api/v1/nodes/node-1": {"status": {"conditions": [LOST]}}}),
         r"the node node-1 is lost, and with it the pod .*: Kubelet stopped posting node status"),
        (lambda bench: bench.client.objects.pop("/api/v1/nodes/node-1"), "it is no longer in the cluster"),
        (lambda bench: bench.tell(state("running"), deletionTimestamp="now"), "was deleted by someone else"),
        (lambda bench: [bench.client.objects.pop(path) for path in list(bench.client.objects) if "/pods/" in path],
         "is gone: someone else deleted it"),
    ],
)  # fmt: skip
def test_a_server_that_lives_on_is_lost_with_its_pod_or_node(
    bench: Bench, change: Callable[[Bench], object], why: str
) -> None:
    instance = started(bench)
    change(bench)
    with pytest.raises(PodLost, match=why):
        bench.deployment.observe(instance)


def test_a_cluster_that_is_silent_for_a_moment_loses_no_pod(bench: Bench) -> None:
    instance = started(bench)
    bench.client.refusals["GET", "/api/v1/n"] = HTTPError("refused")
    assert bench.deployment.observe(instance).pod is not None


def test_a_pod_that_does_not_go_stays_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = started(bench)
    bench.host.end(bench.process)
    bench.tell(state("terminated", exitCode=0))
    monkeypatch.setattr(FakeClient, "_delete", lambda *_: failure(409, "being deleted"))
    with pytest.raises(TimedOut, match="stays, even by force"):
        bench.deployment.stop(instance)
    assert any(entry.kind is Kind.NAMESPACE for entry in bench.ledger.entries())


def test_the_output_of_a_pod_is_fetched_before_it_goes(bench: Bench) -> None:
    instance = started(bench)
    bench.host.end(bench.process)
    bench.tell(state("terminated", exitCode=3))
    directory = next(f"/logs/{path.split('/')[4]}_tare-0123456789ab-sut_uid-2/task"
                     for path in bench.client.objects if "/pods/" in path)  # fmt: skip
    bench.host.answers["find", directory] = Completed((), 0, b"0.log\n")
    bench.host.files[f"{directory}/0.log"] = b"t stdout F out\nt stderr F err\n"
    assert bench.deployment.wait(instance, 1) == 3
    bench.deployment.stop(instance)
    assert (bench.host.files["/w/raw/o"], bench.host.files["/w/raw/e"]) == (b"out\n", b"err\n")
    assert bench.left == set()


def test_stopping_twice_is_no_error(bench: Bench) -> None:
    instance = started(bench)
    bench.host.end(bench.process)
    bench.tell(state("terminated", exitCode=0))
    bench.deployment.stop(instance)
    bench.deployment.stop(instance)


def test_what_the_cluster_gave_a_pod_is_observed(bench: Bench) -> None:
    instance = started(bench)
    seen = bench.deployment.observe(instance).pod
    assert seen == PodFacts(
        qos="burstable",
        node="node-1",
        kubelet="v1.34.4",
        runtime="containerd://1.6.20~ds1",
        cpu_manager="none",
    )
