"""`container`: the image runs in the host's engine, through the Docker API (Docker Engine, or Podman's socket).

Seccomp, AppArmor and capabilities stay as the engine sets them: they are part of what a container is. Everything
else (user, environment, limits, cgroup parent, scratch directories) is set as for a bare task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from docker.errors import APIError, DockerException, NotFound
from docker.types import LogConfig, Mount, Ulimit
from requests.exceptions import RequestException, Timeout

from tare.deployments import Endpoint, Instance, Task
from tare.deployments.cgroup.placement import set_cpu_weight
from tare.deployments.container.confinement import security_options
from tare.deployments.container.engine_exec import engine_exec
from tare.deployments.container.layers import drop_image, fill_layer, image_with, set_page_cache
from tare.deployments.container.overlay import must_be_root, overlay_of
from tare.deployments.container.printed import NO_LOG, last_words, log_driver, printed
from tare.deployments.container.rootless import NETWORKS, Rootless
from tare.deployments.defaults import CPU_PERIOD_US, SCRATCH, cpu_quota_us, environment, shm_bytes, user
from tare.deployments.disks import disks
from tare.deployments.observe import observe
from tare.deployments.pod.pod import Made, Pods
from tare.deployments.rlimits import ceilings, rlimits
from tare.deployments.shared_resources import SharedResources
from tare.errors import EngineSilent, EnvironmentLacks, RunFailed, TareError, TimedOut
from tare.record.observation import Observation
from tare.requirements import Requirement
from tare.requirements.engines import ENGINE, LOG_DRIVERS, RUNTIMES, SIDECAR
from tare.sites import Completed, Host, Process
from tare.sites.engine import in_words, is_no_answer, labels
from tare.sites.engines import ROOTLESS, address_of, service_at
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import RUN_LABEL
from tare.sites.process import boot_id, identify
from tare.study.values import OWN_ADDRESS, ROOTLESS_NETWORKS, NetworkKind

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container as EngineContainer

_BRIDGED = (NetworkKind.BRIDGE, NetworkKind.PUBLISHED_LOOPBACK, NetworkKind.PUBLISHED_ADDRESS)
_LOOPBACK = "127.0.0.1"


class Container:
    """Runs each task in a container that is removed with the task."""

    needs: ClassVar[tuple[Requirement, ...]] = (ENGINE, SIDECAR, RUNTIMES, LOG_DRIVERS)
    isolates_network: ClassVar[bool] = True
    own_root: ClassVar[bool] = True

    def __init__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> None:
        if engine is None:
            raise EnvironmentLacks("containers need a container engine", hint="start one, see `tare doctor`")
        self._host = host
        self._ledger = ledger
        self._engine = engine
        self._shared = SharedResources(host, ledger, engine)

    def start(self, task: Task) -> Instance:
        """Start the container, noted in the ledger first; a failed start removes what was made."""
        try:
            return self._start(task)
        except BaseException as error:
            with suppress(TareError):  # what cannot be removed stays in the ledger
                self._remove(task)
            if is_no_answer(error):
                raise self._no_answer(task, error) from error
            if isinstance(error, (DockerException, RequestException)):
                raise RunFailed(f"{task.name} cannot be started: {in_words(error)}") from error
            raise

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str = "", stdin: bytes = b""
    ) -> Completed:
        """Run a program as `docker exec` does; any exit code is returned."""
        container = self._container(instance.task)
        if container is None or container.status != "running":
            raise RunFailed(f"{instance.task.name} has ended{_how_of(container)}: {last_words(container)}")
        if self._rootless is not None:
            return self._rootless.exec(instance, argv, timeout_s=timeout_s, user=user, stdin=stdin)
        with self._answering(instance.task):
            return engine_exec(
                self._engine,
                self._host,
                str(container.id),
                argv,
                timeout_s=timeout_s,
                user=user or _user(instance.task),
                stdin=stdin,
            )

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """Wait in the engine until the task ends, then fetch its output."""
        container = self._container(instance.task)
        if container is None:
            raise RunFailed(f"{instance.task.name} is gone: somebody else removed its container")
        try:
            with self._answering(instance.task, or_late=timeout_s):
                code = int(container.wait(timeout=timeout_s)["StatusCode"])
            with self._answering(instance.task):
                self._collect(instance.task, container)
        except APIError as error:
            raise RunFailed(f"{instance.task.name} cannot be waited for: {in_words(error)}") from error
        return code

    def observe(self, instance: Instance) -> Observation:
        """Read /proc and the cgroups of the container's first process."""
        cgroups = self._shared.placement.cgroups
        task = instance.task
        seen = observe(self._host, cgroups, instance.process.pid, task.targets, task.sysctls)
        seen = replace(seen, log_driver=instance.log_driver)
        return seen if instance.task.pod is None else replace(seen, pod=self._pods.observe(instance))

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """Stop the container, fetch its output and remove it, by force if needed."""
        task = instance.task
        try:
            if (container := self._container(task)) is not None:
                self._end(task, container, grace_s)
        finally:
            self._remove(task)

    def _start(self, task: Task) -> Instance:
        if task.image.engine_id is None:
            raise EnvironmentLacks(
                f"the image {task.image.reference} is not in the engine", hint="build it with `tare images`"
            )
        rootless = self._rootless
        if rootless is not None:
            rootless.refuse(task)
        self._shared.placement.make_parent(task.cgroup_parent)
        pod = self._pod(task)
        network = self._network(task) if pod is None else _pod_namespaces(task, pod)
        self._ledger.note(Kind.CONTAINER, task.name, host=self._host.name)
        container = self._engine.containers.create(
            self._image(task),
            entrypoint=[task.argv[0]],
            command=list(task.argv[1:]),
            name=task.name,
            **network,
            **(self._resource_options(task, pod) if rootless is None else {}),
            **self._program_options(task),
        )
        overlay = overlay_of(self._engine, self._host, container) if task.layers else None
        if overlay is not None:
            for layer in task.layers:
                place = set_page_cache if layer.copy_up else fill_layer
                place(self._host, overlay, task, layer)
        if rootless is not None:
            rootless.give(task)
            rootless.place(task, container)
        container.start()
        container.reload()
        if overlay is not None:
            must_be_root(self._host, overlay, int(container.attrs["State"]["Pid"]), task.name)
        if task.limits.cpu_weight is not None and rootless is None:
            set_cpu_weight(
                self._host, self._shared.placement.cgroups, int(container.attrs["State"]["Pid"]), task.limits
            )
        return self._instance(task, container, pod)

    @cached_property
    def _pods(self) -> Pods:
        return Pods(self._host, self._ledger, self._engine, self._shared.placement)

    def _pod(self, task: Task) -> Made | None:
        """Make the pod around a container, before the container; `None` for a task without a pod."""
        if task.pod is None:
            return None
        bridged = task.network is NetworkKind.BRIDGE
        return self._pods.make(task, task.pod, self._shared.bridge(task.cgroup_parent) if bridged else None)

    @cached_property
    def _rootless(self) -> Rootless | None:
        """Helper for an engine that runs as a user; `None` for an engine that runs as root."""
        if not self._shared.rootless:
            return None
        service = service_at(address_of(ROOTLESS))
        return Rootless(self._host, self._ledger, self._engine, self._shared.placement, service, self._shared.facts)

    def _image(self, task: Task) -> str:
        """The task's image, or one derived from it with the data to copy up in a layer."""
        for layer in task.layers:
            if layer.copy_up:
                return image_with(self._engine, self._host, self._ledger, task, layer)
        return str(task.image.engine_id)

    def _network(self, task: Task) -> dict[str, Any]:
        """Network options. The engine picks the host port, so that no other program can take it first."""
        if task.network in _BRIDGED:
            bridge = self._shared.bridge(task.cgroup_parent)
            attached: dict[str, Any] = {"network": bridge.name, "hostname": task.name}
            if task.network is not NetworkKind.BRIDGE and task.port:
                loopback = task.network is NetworkKind.PUBLISHED_LOOPBACK
                address = _LOOPBACK if loopback else task.publish_at or bridge.gateway
                attached["ports"] = {f"{task.port}/tcp": (address, None)}
            return attached
        if task.network in OWN_ADDRESS:
            if task.lan is None:
                raise RunFailed(f"{task.name}: no address is known for its network `{task.network}`")
            return {**self._shared.lan(task.cgroup_parent, task.network, task.lan), "hostname": task.name}
        if task.network in ROOTLESS_NETWORKS:
            by_engine = task.port and task.network is not NetworkKind.PASTA
            ports = {f"{task.port}/tcp": (_LOOPBACK, None)} if by_engine else {}
            return {"network_mode": NETWORKS[task.network], "hostname": task.name, "ports": ports}
        if task.network is NetworkKind.SHARED:
            if task.beside is None:
                raise RunFailed(f"{task.name}: a shared network needs the instance to share with")
            if task.beside.container_id is not None:
                return {"network_mode": f"container:{task.beside.container_id}"}
        return {"network_mode": "host"}

    def _resource_options(self, task: Task, pod: Made | None) -> dict[str, Any]:
        """Options for cgroup parent and limits; the CPU weight stays the kernel's, as for a bare task."""
        limits = task.limits
        placed: dict[str, Any] = {"cgroup_parent": self._shared.placement.engine_parent(task.cgroup_parent)}
        if pod is not None and pod.groups is not None:
            placed = {
                "cgroup_parent": f"/{pod.groups.pod}",
                "cpu_shares": pod.groups.shares,
                "oom_score_adj": pod.groups.oom_score_adj,
            }
        if limits.cpus is not None:
            placed["cpuset_cpus"] = limits.cpus
        if (quota := cpu_quota_us(limits)) is not None:
            placed |= {"cpu_period": CPU_PERIOD_US, "cpu_quota": quota}
        if limits.memory_bytes is not None:
            placed |= {"mem_limit": limits.memory_bytes, "memswap_limit": limits.memory_and_swap_bytes}
        if limits.mems is not None:
            placed["cpuset_mems"] = limits.mems
        if limits.pids is not None:
            placed["pids_limit"] = limits.pids
        if limits.disk_iops is not None:
            rates = [{"Path": disk.path, "Rate": limits.disk_iops} for disk in disks(self._host.read)]
            placed |= {"device_read_iops": rates, "device_write_iops": rates}
        return placed

    def _program_options(self, task: Task) -> dict[str, Any]:
        """Options for everything around the program except cgroup, limits and network."""
        wanted = (
            rlimits(task.limits, ceilings(self._host)) if self._rootless is None else self._rootless.ulimits(task)
        )
        return {
            "environment": dict(environment(task)),
            "user": user(task),
            "working_dir": task.workdir,
            "mounts": [
                *(Mount(bind.target, bind.source, type="bind", read_only=bind.read_only) for bind in task.binds),
                *(Mount(volume.target, volume.name, type="volume", no_copy=True) for volume in task.volumes),
            ],
            "ulimits": [Ulimit(name=name, soft=limit.soft, hard=limit.hard) for name, limit in wanted.items()],
            "read_only": not task.layers,
            "tmpfs": {place.target: f"rw,exec,nosuid,nodev,mode={place.mode}" for place in SCRATCH},
            **({"shm_size": shm_bytes(task.limits)} if task.pod is None else {}),
            "init": False,
            "log_config": LogConfig(type=task.log_driver),
            "labels": labels(task.cgroup_parent, self._ledger.owner_on(self._host.name)),
            **({"runtime": task.runtime} if task.runtime else {}),
            **({"sysctls": dict(task.sysctls)} if task.sysctls else {}),
            **security_options(self._host, task.confinement, of_podman=self._shared.of_podman),
        }

    def _instance(self, task: Task, container: EngineContainer, pod: Made | None) -> Instance:
        attrs = container.attrs
        pid = int(attrs["State"]["Pid"])
        process = identify(self._host, pid) if pid else None
        networks = attrs["NetworkSettings"]["Networks"]
        addresses = [seen["IPAddress"] for seen in networks.values() if seen.get("IPAddress")]
        if task.network is NetworkKind.SHARED and task.beside is not None:
            address = task.beside.address
        else:
            own = task.network in _BRIDGED or task.network in OWN_ADDRESS
            address = addresses[0] if own and addresses else task.listen
        published = (attrs["NetworkSettings"]["Ports"] or {}).get(f"{task.port}/tcp")
        if task.network is NetworkKind.PASTA and task.port:
            published = [{"HostIp": _LOOPBACK, "HostPort": task.port}]
        endpoint = Endpoint(published[0]["HostIp"], int(published[0]["HostPort"])) if published else None
        if pod is not None:
            address, endpoint = pod.address or task.listen, pod.published
        return Instance(
            task=task,
            deployment="container",
            # A program that has already ended has no process any more.
            process=process or Process(pid, 0, boot_id(self._host)),
            container_id=str(container.id),
            address=address,
            published=endpoint,
            log_driver=log_driver(container),
        )

    def _container(self, task: Task) -> EngineContainer | None:
        """Find the task's container by name, and accept it only with the run's label."""
        try:
            with self._answering(task):
                container = self._engine.containers.get(task.name)
        except NotFound:
            return None
        return container if container.labels.get(RUN_LABEL) == task.cgroup_parent else None

    @contextmanager
    def _answering(self, task: Task, or_late: float | None = None) -> Iterator[None]:
        """Turn a broken connection, as after a restart of the engine, into an error that names host and task.

        `or_late`: if the call waits for the task's end, its time limit in seconds.
        """
        try:
            yield
        except APIError:  # an answer, although APIError is also a RequestException
            raise
        except RequestException as error:
            if or_late is not None and _is_timeout(error):
                raise TimedOut(f"{task.name} did not end within {or_late:g} s") from error
            raise self._no_answer(task, error) from error

    def _no_answer(self, task: Task, error: BaseException) -> EngineSilent:
        return EngineSilent(f"the engine on {self._host.name} does not answer for {task.name}: {in_words(error)}")

    def _end(self, task: Task, container: EngineContainer, grace_s: float) -> None:
        try:
            with suppress(NotFound):
                container.stop(timeout=round(grace_s))
                self._collect(task, container)
        except (DockerException, RequestException) as error:
            raise RunFailed(f"{task.name} cannot be stopped: {in_words(error)}") from error

    def _collect(self, task: Task, container: EngineContainer) -> None:
        """Write both outputs to where a bare task writes them. The log driver keeps them apart, or keeps none."""
        if task.log_driver == NO_LOG:
            return
        self._host.put(printed(container, stdout=True), task.output.stdout)
        self._host.put(printed(container, stdout=False), task.output.stderr)

    def _remove(self, task: Task) -> None:
        """Remove all that the task left. Raises `RunFailed` if something stays, and so does its ledger entry."""
        try:
            self._take_away(task)
        except (DockerException, RequestException) as error:
            raise RunFailed(f"the container {task.name} cannot be removed: {in_words(error)}") from error

    def _take_away(self, task: Task) -> None:
        if (container := self._container(task)) is not None:
            with suppress(NotFound):
                container.remove(v=True, force=True)
        self._ledger.forget(Kind.CONTAINER, task.name, host=self._host.name)
        if self._rootless is not None:
            self._rootless.disconnect(task)
            self._rootless.take_back(task)
            self._shared.placement.remove(task)
        if task.pod is not None:
            self._pods.remove(task)
        if any(layer.copy_up for layer in task.layers):
            drop_image(self._engine, self._host, self._ledger, task)
        self._shared.leave(task.cgroup_parent)


def _pod_namespaces(task: Task, pod: Made) -> dict[str, Any]:
    """Options that join the sandbox's namespaces. Docker joins no UTS namespace, but takes the host name."""
    network = "host" if task.network is NetworkKind.HOST else f"container:{pod.sandbox}"
    return {"network_mode": network, "ipc_mode": f"container:{pod.sandbox}"}


def _user(task: Task) -> str:
    return user(task)


def _how_of(container: EngineContainer | None) -> str:
    """Its exit code, as the engine keeps it: a server that an engine shut down does not say who did."""
    ended = container is not None and container.status in ("exited", "dead")
    return f" with exit code {container.attrs['State']['ExitCode']}" if container and ended else ""


def _is_timeout(error: RequestException) -> bool:
    """Whether the error is a timeout: within an answer, requests reports a broken connection (models.py)."""
    return isinstance(error, Timeout) or "timed out" in str(error).lower()
