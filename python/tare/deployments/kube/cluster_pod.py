"""`pod`: the image in a pod of a real cluster, on the node that is the task's host.

The cluster makes, ends and describes the pod; what is in force around it is read on its node, as for any task.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from tare.deployments import POD, Endpoint, Instance, Task
from tare.deployments.bare.bare import LAUNCHER
from tare.deployments.cgroup.hierarchy import Cgroups, cgroups_of, parse_proc_cgroup
from tare.deployments.cgroup.removal import warden
from tare.deployments.directories import remove_tree
from tare.deployments.enter import run_inside
from tare.deployments.kube.api import Cluster, Tree, connect
from tare.deployments.kube.claims import Claims
from tare.deployments.kube.gate import FIFO, PROGRAM, gate_program
from tare.deployments.kube.manifest import pod_of, refused, service_of
from tare.deployments.kube.namespaces import Namespaces
from tare.deployments.kube.node import Node, node_of, printed_by, process_of, why_not_ready
from tare.deployments.kube.node_image import NodeImages
from tare.deployments.kube.requirement import CLUSTER
from tare.deployments.kube.states import CONTAINER, ended, qos_of, running, why_not_started, why_removed
from tare.deployments.observe import observe, parse_status
from tare.deployments.rlimits import ceilings, rlimits
from tare.errors import EngineSilent, PodLost, RunFailed, TareError, TimedOut
from tare.record.made_by import PodFacts
from tare.record.observation import Observation
from tare.requirements import Requirement
from tare.requirements.rights import ROOT
from tare.sites import Completed, Host
from tare.sites.ledger import Kind, Ledger
from tare.sites.local import own_process
from tare.sites.process import alive, identify
from tare.study.values import SERVICE_NETWORKS, NetworkKind, Qos

if TYPE_CHECKING:
    from docker import DockerClient

_CALL_S = 30.0
_START_S, _PENDING_S = 180.0, 45.0
"""Time for a pod to start, and time for it to stay pending: a pod that has just ended may still hold its
resources."""
_REPORTED_S, _GONE_S = 20.0, 60.0
_LOOK_S = 2.0
"""Interval of checks of the node while a pod does not start."""
_POLL_S = 0.1
_TELLS_END_S = "0.1"
_BY_KUBELET_S, _BY_FORCE_S = 1, 0
"""Grace of a pod whose program has already ended. With no grace, the API forgets the pod before its node does."""


class ClusterPod:
    """Runs each task in a pod, behind a Service if the network has one."""

    needs: ClassVar[tuple[Requirement, ...]] = (ROOT, CLUSTER)
    isolates_network: ClassVar[bool] = True
    own_root: ClassVar[bool] = True

    def __init__(
        self,
        host: Host,
        ledger: Ledger,
        engine: DockerClient | None = None,  # noqa: ARG002 - the signature of every deployment
        reach: Callable[[], Cluster] = connect,
    ) -> None:
        """`reach`: connects to the cluster; called with the first task."""
        self._host = host
        self._reach = reach
        self._ledger = ledger
        self._pods: dict[str, Tree] = {}
        """Name of a task → its pod, as it was when it began to run."""

    def start(self, task: Task) -> Instance:
        """Start the pod; what was made is removed if the start fails."""
        if problems := tuple(refused(task)):
            raise RunFailed(f"{task.name}: {'; '.join(problems)}")
        try:
            return self._start(task)
        except BaseException:
            with suppress(TareError):  # what cannot be removed stays in the ledger
                self._remove(task)
            raise

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str = "", stdin: bytes = b""
    ) -> Completed:
        """Run a program in the container's namespaces and control groups, on the node.

        Any exit code is returned.
        """
        task = instance.task
        if not alive(self._host, instance.process):
            raise RunFailed(f"{task.name} has ended")
        launcher = f"{_scratch(task)}/launcher.py"
        return run_inside(
            self._host,
            self._cgroups,
            instance,
            argv,
            launcher=launcher,
            timeout_s=timeout_s,
            user=user,
            stdin=stdin,
        )

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """Wait on the node, then for kubelet's report.

        Raises `PodLost` with the reason if the cluster ended the pod.
        """
        process, name = instance.process, instance.task.name
        if alive(self._host, process):
            argv = ["tail", f"--pid={process.pid}", f"--sleep-interval={_TELLS_END_S}", "-f", "/dev/null"]
            try:
                self._host.run(argv, timeout_s=timeout_s, check=False)
            except TimedOut as error:
                raise TimedOut(f"{name} did not end within {timeout_s:g} s") from error
        deadline = time.monotonic() + _REPORTED_S
        while True:
            pod = self._pod(instance.task)
            if pod is None:
                raise PodLost(f"the pod {name} is gone: someone else deleted it")
            if (why := why_removed(pod)) is not None:
                self._collect(instance.task, pod)
                raise PodLost(why)
            if (how := ended(pod)) is not None:
                self._collect(instance.task, pod)
                return how.code
            if time.monotonic() > deadline:
                raise PodLost(self._why_silent(name))
            time.sleep(_POLL_S)

    def observe(self, instance: Instance) -> Observation:
        """Read /proc and the control groups on the node, and the API's description of pod and node.

        Raises `PodLost` if the cluster ended the pod or lost its node: the program may live on, with nobody in
        charge.
        """
        seen = observe(self._host, self._cgroups, instance.process.pid, instance.task.targets)
        with suppress(EngineSilent):  # without an answer, the pod is not known to be lost
            self._must_be_kept(instance.task)
        return replace(seen, pod=self._facts(instance))

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """End the program on the node, as with a bare task; fetch its output before the pod is removed."""
        task, process = instance.task, instance.process
        try:
            if alive(self._host, process):
                words = ("end", str(process.pid), str(process.started_ticks), f"{grace_s:g}")
                warden(self._host, *words, timeout_s=grace_s + _CALL_S)
            if (pod := self._pod(task)) is not None:
                self._collect(task, self._pod_at_end(task, pod))
        finally:
            self._remove(task)

    @cached_property
    def _cluster(self) -> Cluster:
        return self._reach()

    @cached_property
    def _node(self) -> Node:
        return node_of(self._cluster, self._host)

    @cached_property
    def _cgroups(self) -> Cgroups:
        return cgroups_of(self._host)

    @cached_property
    def _namespace(self) -> str:
        return Namespaces(self._cluster, self._host, self._ledger, own_process()).ensure()

    def _start(self, task: Task) -> Instance:
        node, scratch = self._node, _scratch(task)
        namespace = self._namespace
        image = NodeImages(self._host, self._ledger, node.socket).ensure(task.image, f"{scratch}.image")
        self._ledger.note(Kind.PATH, scratch, host=self._host.name)
        gate = self._put_gate(scratch)
        published = self._publish(task, namespace)
        pods = f"/api/v1/namespaces/{namespace}/pods"
        self._cluster.post(pods, pod_of(task, namespace, node, image, gate))
        pod, container = self._started(task)
        pid = process_of(self._host, self._cgroups, container)
        process = identify(self._host, pid)
        if process is None:
            raise RunFailed(f"{task.name} ended before its program started")
        self._limit(task, pid)
        self._host.run(["tee", "--", f"{gate}/{FIFO}"], timeout_s=_CALL_S, stdin=b"\n")
        self._pods[task.name] = pod
        address = task.listen if task.network is NetworkKind.HOST else str(pod["status"]["podIP"])
        if task.network is NetworkKind.HOST_PORT and task.port:
            published = Endpoint(node.address, task.port)
        return Instance(task, POD, process, container_id=None, address=address, published=published)

    def _put_gate(self, scratch: str) -> str:
        """Make the directory that the pod mounts first; it holds only the gate program and the FIFO."""
        gate, machine = f"{scratch}/gate", self._host.run(["uname", "-m"], timeout_s=_CALL_S).text.strip()
        program = gate_program(machine)
        remove_tree(self._host, scratch)
        self._host.run(["install", "-d", "-m", "0711", "--", scratch], timeout_s=_CALL_S)
        self._host.run(["install", "-d", "-m", "0755", "--", gate], timeout_s=_CALL_S)
        self._host.put(program, f"{gate}/{PROGRAM}", mode=0o755)
        self._host.run(["mkfifo", "--mode=0644", "--", f"{gate}/{FIFO}"], timeout_s=_CALL_S)
        self._host.put(LAUNCHER, f"{scratch}/launcher.py")
        return gate

    def _publish(self, task: Task, namespace: str) -> Endpoint | None:
        """Publish the task's port; return the address for clients if it is not the pod's own."""
        if task.network not in SERVICE_NETWORKS:
            return None
        made = self._cluster.post(f"/api/v1/namespaces/{namespace}/services", service_of(task, namespace))
        if task.network is NetworkKind.NODE_PORT:
            return Endpoint(self._node.address, int(made["spec"]["ports"][0]["nodePort"]))
        return Endpoint(str(made["spec"]["clusterIP"]), task.port)

    def _started(self, task: Task) -> tuple[Tree, str]:
        """Wait until the pod runs; return it and its container's ID. Raises as soon as waiting cannot help."""
        began, looks = time.monotonic(), 0
        while True:
            pod = self._pod(task)
            if pod is None:
                raise PodLost(f"the pod {task.name} is gone: someone else deleted it while it was started")
            if (container := running(pod)) is not None:
                return pod, container
            stuck, waited_s = why_not_started(pod), time.monotonic() - began
            if waited_s > (looks + 1) * _LOOK_S:
                looks += 1
                if (why := self._why_lost()) is not None:
                    raise PodLost(
                        f"the node {self._node.name} is lost, so the pod {task.name} does not start: {why}"
                    )
            late_s = _PENDING_S if "pending" in stuck.why else _START_S
            if stuck.at_once or waited_s > late_s:
                after = "" if stuck.at_once else f" (for {waited_s:.0f} s)"
                raise RunFailed(f"{stuck.why}{after}", hint=stuck.hint)
            time.sleep(_POLL_S)

    def _must_be_kept(self, task: Task) -> None:
        pod = self._pod(task)
        if pod is None:
            raise PodLost(f"the pod {task.name} is gone: someone else deleted it")
        if (why := why_removed(pod)) is not None:
            raise PodLost(why)
        if (why := self._why_lost()) is not None:
            raise PodLost(f"the node {self._node.name} is lost, and with it the pod {task.name}: {why}")

    def _why_lost(self) -> str | None:
        """Why nobody is in charge of the node's pods; `None` while kubelet reports."""
        tree = self._cluster.get(f"/api/v1/nodes/{self._node.name}")
        return "it is no longer in the cluster" if tree is None else why_not_ready(tree)

    def _limit(self, task: Task, pid: int) -> None:
        """Set what a pod's manifest cannot ask for but every other task has: resource limits and the CPU list.

        Without CAP_SYS_RESOURCE only the process's own user may lower its limits, so prlimit(2) is called as that
        user.
        """
        status = parse_status((self._host.read(f"/proc/{pid}/status") or b"").decode(errors="replace"))
        if "Uid" not in status:
            raise RunFailed(f"{task.name} ended before its resource limits were set")
        ids = [status[name].split()[0] for name in ("Uid", "Gid")]
        limits = ceilings(self._host)
        as_user = ["setpriv", f"--reuid={ids[0]}", f"--regid={ids[1]}", "--clear-groups"] if limits else []
        wanted = [
            f"--{name}={_number(limit.soft)}:{_number(limit.hard)}"
            for name, limit in rlimits(task.limits, limits).items()
        ]
        try:
            self._host.run([*as_user, "prlimit", f"--pid={pid}", *wanted], timeout_s=_CALL_S)
        except RunFailed as error:
            raise RunFailed(
                f"the resource limits of {task.name} cannot be set: {error.what}",
                hint="containerd's own limits must be as high: see LimitNOFILE of its unit",
            ) from error
        own = task.pod is not None and task.pod.qos is Qos.GUARANTEED and self._node.cpu_manager == "static"
        if task.limits.cpus is not None and not own:
            paths = parse_proc_cgroup((self._host.read(f"/proc/{pid}/cgroup") or b"").decode(errors="replace"))
            path = next((path for names, path in paths.items() if "cpuset" in names.split(",")), paths.get("", ""))
            if not path.strip("/"):  # an ended process is listed in the root cgroup, which is not the pod's
                raise RunFailed(f"{task.name} ended before its CPUs were set")
            mount = self._cgroups.mount_of("cpuset")
            self._host.put(task.limits.cpus.encode(), f"{mount}/{path.strip('/')}/cpuset.cpus")

    def _facts(self, instance: Instance) -> PodFacts:
        pod, node = self._pods.get(instance.task.name) or {}, self._node
        qos = qos_of(pod)
        return PodFacts(
            qos=None if qos is None else qos.value,
            node=node.name,
            kubelet=node.kubelet,
            runtime=node.runtime,
            cpu_manager=node.cpu_manager,
            storage_class=self._classes(instance.task),
        )

    def _classes(self, task: Task) -> str | None:
        """Storage classes of the volumes that the task claims; `None` if it claims none."""
        claims = Claims(self._cluster, self._namespace) if task.claims else None
        seen = [] if claims is None else [claims.storage_class_of(each.name) or "unknown" for each in task.claims]
        return ", ".join(seen) or None

    def _pod_at_end(self, task: Task, pod: Tree) -> Tree:
        """Wait until kubelet has reported the pod's end; return the latest pod, even if that takes too long."""
        deadline = time.monotonic() + _REPORTED_S
        while ended(pod) is None and time.monotonic() < deadline and (latest := self._pod(task)) is not None:
            pod = latest
            time.sleep(_POLL_S)
        return pod

    def _collect(self, task: Task, pod: Tree) -> None:
        out = printed_by(self._host, self._node, pod, CONTAINER)
        if (
            out.stdout or out.stderr or self._host.read(task.output.stdout) is None
        ):  # fetched once, before the pod is removed
            self._host.put(out.stdout, task.output.stdout)
            self._host.put(out.stderr, task.output.stderr)

    def _pod(self, task: Task) -> Tree | None:
        return self._cluster.get(f"/api/v1/namespaces/{self._namespace}/pods/{task.name}")

    def _why_silent(self, name: str) -> str:
        tree = self._cluster.get(f"/api/v1/nodes/{self._node.name}")
        if tree is None:
            return (
                f"the node {self._node.name} is no longer in the cluster, so it is unknown how the pod {name} ended"
            )
        if (why := why_not_ready(tree)) is not None:
            return f"the node {self._node.name} is lost, so it is unknown how the pod {name} ended: {why}"
        return f"kubelet on {self._node.name} reported no end of the pod {name} within {_REPORTED_S:g} s"

    def _remove(self, task: Task) -> None:
        """Remove pod, Service and directory. If the cluster does not answer, its namespace stays in the ledger."""
        self._pods.pop(task.name, None)
        try:
            if "_namespace" in vars(self):
                self._delete("services", task)
                self._delete("pods", task)
        finally:
            remove_tree(self._host, _scratch(task))
            self._ledger.forget(Kind.PATH, _scratch(task), host=self._host.name)

    def _delete(self, kind: str, task: Task) -> None:
        """Delete through kubelet; if it is silent, delete by force, and the node clears up once it is back."""
        path = f"/api/v1/namespaces/{self._namespace}/{kind}/{task.name}"
        if (tree := self._cluster.get(path)) is None:
            return
        uid = tree["metadata"]["uid"]
        for grace_s in (_BY_KUBELET_S, _BY_FORCE_S):
            self._cluster.delete(path, uid=uid, grace_s=grace_s)
            deadline = time.monotonic() + _GONE_S
            while time.monotonic() < deadline:
                left = self._cluster.get(path)
                if left is None or left["metadata"]["uid"] != uid:
                    return
                time.sleep(_POLL_S)
        raise TimedOut(f"{path} stays, even by force", hint="is the cluster's controller manager running?")


def _number(limit: int) -> str:
    return "unlimited" if limit < 0 else str(limit)


def _scratch(task: Task) -> str:
    """Directory beside the task's raw files: programs must run from it, and /run is often mounted noexec."""
    return f"{task.output.stdout.rpartition('/')[0]}.{task.name}"
