"""`containerd`: the image in a container that containerd makes through `ctr`, without dockerd.

A baseline below Docker: the same shim, runtime and kind of root file system, but no engine. Everything that is not
part of a container is set as for every other task. docs/concepts/deployments.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tare.deployments import CONTAINERD, Instance, Task
from tare.deployments.bare.bare import LAUNCHER, resolver_files
from tare.deployments.cgroup.placement import set_cpu_weight
from tare.deployments.cgroup.removal import warden
from tare.deployments.containerd import network
from tare.deployments.containerd.accounts import account
from tare.deployments.containerd.client import NAMESPACE, SNAPSHOTTER, Client, remove_container, root_of, scratch_of
from tare.deployments.containerd.ctr import find_socket
from tare.deployments.containerd.requirement import CONTAINERD_SERVICE
from tare.deployments.containerd.spec import Place, spec_of
from tare.deployments.defaults import user
from tare.deployments.directories import remove_tree
from tare.deployments.disks import disks
from tare.deployments.enter import run_inside
from tare.deployments.kube.node_image import NodeImages
from tare.deployments.observe import observe
from tare.deployments.pod import cni
from tare.deployments.rlimits import ceilings, rlimits
from tare.deployments.shared_resources import SharedResources
from tare.errors import EnvironmentLacks, RunFailed, TareError, TimedOut
from tare.record.made_by import ContainerdFacts
from tare.record.observation import Observation
from tare.requirements import Requirement
from tare.requirements.rights import ROOT
from tare.sites import Completed, Host, Process
from tare.sites.ledger import Kind, Ledger, noting
from tare.sites.marks import make_marked
from tare.sites.process import alive, boot_id, identify, to_ident
from tare.sites.reading import ending, last_line_of
from tare.study.values import NetworkKind

if TYPE_CHECKING:
    from docker import DockerClient

SUPERVISOR = Path(__file__).with_name("supervisor.py")
_CALL_S, _START_S = 30.0, 60.0
_FLUSH_S = 10.0
"""How long `ctr` may take to write the last output of a program that has ended."""
_POLL_S = 0.02
_INIT = b"runc\0init\0"
"""Command line of a first process that has not yet become the program."""
_OWN_WORDS = "ctr: "
"""Beginning of messages of `ctr` itself."""
_LAST_WORDS_BYTES = 1000


class Containerd:
    """Runs each task in a container that is removed with the task."""

    needs: ClassVar[tuple[Requirement, ...]] = (ROOT, CONTAINERD_SERVICE)
    isolates_network: ClassVar[bool] = True
    own_root: ClassVar[bool] = True

    def __init__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> None:
        """`engine`: only decides where control groups lie: where those of its own containers do."""
        self._host = host
        self._ledger = ledger
        self._shared = SharedResources(host, ledger, engine)
        self._supervisors: dict[str, Process] = {}
        """Name of a task → process that waits for its `ctr`."""

    def start(self, task: Task) -> Instance:
        """Start the container.

        Everything is noted in the ledger before it is made, and removed if the start fails.
        """
        if task.network not in (NetworkKind.HOST, NetworkKind.BRIDGE, NetworkKind.SHARED):
            raise EnvironmentLacks(
                f"{task.name}: containerd alone cannot publish ports, so it cannot use {task.network.value}",
                hint="use network: host or bridge, or deployment: container",
            )
        if task.volumes or task.layers:
            raise RunFailed(f"{task.name}: a container of containerd has no engine, so no volumes or layers")
        if self._client.has(task.name):
            raise RunFailed(f"{task.name} cannot be started: containerd already has a container of that name")
        try:
            return self._start(task)
        except BaseException:
            with suppress(TareError):  # what cannot be removed stays in the ledger; raise the first error
                self._remove(task)
            raise

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str = "", stdin: bytes = b""
    ) -> Completed:
        """Run a program in the container's namespaces and control groups; any exit code is returned."""
        task = instance.task
        if not alive(self._host, instance.process):
            raise RunFailed(f"{task.name} has ended: {self._last_words(task)}")
        launcher, cgroups = f"{scratch_of(task.name)}/launcher.py", self._shared.placement.cgroups
        return run_inside(
            self._host, cgroups, instance, argv, launcher=launcher, timeout_s=timeout_s, user=user, stdin=stdin
        )

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """Wait without polling until the task and its `ctr` have ended: the host sleeps in the kernel."""
        name = instance.task.name
        status = _status(name)
        if code := self._host.read(status):
            return int(code)
        waiting = self._supervisors.get(name, instance.process)
        words = ("wait", str(waiting.pid), str(waiting.started_ticks), status)
        try:
            return int(warden(self._host, *words, timeout_s=timeout_s))
        except TimedOut as error:
            raise TimedOut(f"{name} did not end within {timeout_s:g} s") from error

    def observe(self, instance: Instance) -> Observation:
        """Read /proc and the task's cgroups.

        The parent process, a shim, shows which containerd made the container.
        """
        cgroups = self._shared.placement.cgroups
        seen = observe(self._host, cgroups, instance.process.pid, instance.task.targets)
        return replace(seen, containerd=self._facts(instance))

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """Terminate the first process, kill it after `grace_s`, and remove the container with everything in it."""
        process, task = instance.process, instance.task
        try:
            if alive(self._host, process):
                words = ("end", str(process.pid), str(process.started_ticks), f"{grace_s:g}")
                warden(self._host, *words, timeout_s=grace_s + _CALL_S)
            if task.name in self._supervisors:
                with suppress(RunFailed):  # the last output is optional
                    self.wait(instance, _FLUSH_S)
        finally:
            self._remove(task)

    @cached_property
    def _client(self) -> Client:
        return Client(self._host, find_socket(self._host))

    @cached_property
    def _runtime(self) -> str | None:
        printed = self._host.run(["runc", "--version"], timeout_s=_CALL_S, check=False).text.splitlines()
        return printed[0] if printed else None

    def _ident(self, task: Task) -> str:
        return f"{task.name}@{self._client.socket}"

    def _start(self, task: Task) -> Instance:
        scratch, client = scratch_of(task.name), self._client
        images = NodeImages(self._host, self._ledger, client.socket, NAMESPACE)
        image = images.ensure(task.image, f"{scratch}.image")
        self._ledger.note(Kind.PATH, scratch, host=self._host.name)
        make_marked(self._host, scratch, "0711")
        self._host.run(["mkdir", "-m", "0711", "--", root_of(task.name)], timeout_s=_CALL_S)
        self._shared.placement.make_parent(task.cgroup_parent)
        self._ledger.note(Kind.CONTAINERD, self._ident(task), host=self._host.name)
        default = client.default_of(image, task.name)
        client.mount(task.name, default.layer, root_of(task.name))
        own = network.attach(self._host, self._ledger, task.name) if task.network is NetworkKind.BRIDGE else None
        self._put_files(task, default.spec, own)
        supervised = ["python3", "-I", "-S", f"{scratch}/supervisor.py", _status(task.name)]
        cgroup = self._shared.placement.runc_cgroup(task)
        argv = client.run_argv(task.name, f"{scratch}/config.json", f"{scratch}/pid", cgroup)
        announce = noting(self._ledger, self._host)
        self._supervisors[task.name] = self._host.start([*supervised, *argv], output=task.output, announce=announce)
        process = self._first_process(task)
        if task.limits.cpu_weight is not None:
            set_cpu_weight(self._host, self._shared.placement.cgroups, process.pid, task.limits)
        address = own or (task.beside.address if task.beside is not None else task.listen)
        return Instance(task, CONTAINERD, process, container_id=None, address=address, published=None)

    def _put_files(self, task: Task, default: Mapping[str, Any], own: str | None) -> None:
        """Put the configuration, the files for name resolution, and the scripts that start programs on the host.

        `own`: the task's address if it has a network namespace of its own.
        """
        scratch, rootfs = scratch_of(task.name), task.image.rootfs
        names = resolver_files(self._host)
        joined = None if task.beside is None else f"/proc/{task.beside.process.pid}/ns/net"
        if own is not None:
            names = network.names(task.name, own, names["resolv.conf"])
            joined = network.namespace_of(task.name)
        place = Place(
            root=root_of(task.name),
            cgroup=self._shared.placement.runc_cgroup(task).path,
            hostname=names["hostname"].decode().strip(),
            names={f"/etc/{name}": f"{scratch}/{name}" for name in names},
            network=joined,
            disks=disks(self._host.read) if task.limits.disk_iops is not None else (),
        )
        try:
            who = account(user(task), self._text(f"{rootfs}/etc/passwd"), self._text(f"{rootfs}/etc/group"))
        except RunFailed as error:
            raise RunFailed(f"{task.name} cannot be started: {error.what}") from error
        config = spec_of(default, task, place, who, rlimits(task.limits, ceilings(self._host)))
        for script in (LAUNCHER, SUPERVISOR):
            self._host.put(script, f"{scratch}/{script.name}")
        for name, content in {**names, "config.json": json.dumps(config).encode()}.items():
            self._host.put(content, f"{scratch}/{name}")

    def _first_process(self, task: Task) -> Process:
        """First process of the task, once it has become the program; also if it has already ended."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            code = self._host.read(_status(task.name))
            pid = (self._host.read(f"{scratch_of(task.name)}/pid") or b"").decode().strip()
            if code and (not pid or self._last_words(task).startswith(_OWN_WORDS)):
                raise RunFailed(f"{task.name} cannot be started: {self._last_words(task)}")
            running = self._host.read(f"/proc/{pid}/cmdline") if pid else None
            if code or (running is not None and not running.startswith(_INIT)):
                return identify(self._host, int(pid)) or Process(int(pid), 0, boot_id(self._host))
            time.sleep(_POLL_S)
        raise TimedOut(f"{task.name} cannot be started: containerd did not start it within {_START_S:g} s")

    def _facts(self, instance: Instance) -> ContainerdFacts:
        """Facts from the command line of the task's parent, the shim: its containerd and namespace."""
        stat = self._host.read(f"/proc/{instance.process.pid}/stat")
        shim = int(stat[stat.rindex(b")") + 2 :].split()[1]) if stat else 0
        words = self._text(f"/proc/{shim}/cmdline").split("\0")
        held = {
            words[at].lstrip("-"): words[at + 1] for at in range(1, len(words) - 1) if words[at].startswith("-")
        }
        return ContainerdFacts(
            shim=Path(words[0]).name or None,
            namespace=held.get("namespace"),
            socket=held.get("address"),
            snapshotter=SNAPSHOTTER,
            containerd=self._client.version(),
            runtime=self._runtime,
            interface=self._interface(instance),
        )

    def _interface(self, instance: Instance) -> str | None:
        """Kind of interface that CNI put into the task's own network namespace; `None` for other networks."""
        if instance.task.network is not NetworkKind.BRIDGE:
            return None
        return cni.interface_kind(self._host, f"/proc/{instance.process.pid}/ns/net")

    def _remove(self, task: Task) -> None:
        """Remove container, supervisor and directory, and the run's control group with its last task."""
        supervisor = self._supervisors.get(task.name)
        if "_client" in vars(self):
            remove_container(self._host, self._ident(task))
            self._ledger.forget(Kind.CONTAINERD, self._ident(task), host=self._host.name)
        if supervisor is not None:
            if alive(self._host, supervisor):
                words = ("end", str(supervisor.pid), str(supervisor.started_ticks), "1")
                warden(self._host, *words, timeout_s=_CALL_S)
            self._ledger.forget(Kind.PROCESS, to_ident(supervisor), host=self._host.name)
        if task.network is NetworkKind.BRIDGE:
            network.detach(self._host, self._ledger, task.name)
        remove_tree(self._host, scratch_of(task.name))
        self._ledger.forget(Kind.PATH, scratch_of(task.name), host=self._host.name)
        self._supervisors.pop(task.name, None)
        self._shared.leave(task.cgroup_parent)

    def _last_words(self, task: Task) -> str:
        raw = (ending(self._host, task.output.stderr) or ending(self._host, task.output.stdout)).strip()
        return last_line_of(raw[-_LAST_WORDS_BYTES:]) or "it printed nothing"

    def _text(self, path: str) -> str:
        return (self._host.read(path) or b"").decode(errors="replace")


def _status(name: str) -> str:
    return f"{scratch_of(name)}/status"
