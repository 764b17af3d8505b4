"""`vm`: the image in a virtual machine of its own, whose first program is tare's.

The machine ends with its task, so a live machine means a live task. docs/concepts/deployments.md,
docs/decisions/0017-process-1-of-our-own.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from tare.deployments import Bind, Guest, Instance, Task
from tare.deployments.cgroup.hierarchy import cgroups_of
from tare.deployments.cgroup.removal import warden
from tare.deployments.defaults import SCRATCH
from tare.deployments.directories import remove_tree
from tare.deployments.observe import observe
from tare.deployments.shared_resources import SharedResources
from tare.deployments.vm.accelerator import MACHINE, Verdict, accelerator_of
from tare.deployments.vm.command import Disk, Hardware, Wiring, qemu_argv
from tare.deployments.vm.disks import data_disk, root_disk, take_back
from tare.deployments.vm.guest import SCRIPT, GuestHost, guest_end, words_of
from tare.deployments.vm.inside import Inside, Plain
from tare.deployments.vm.kernel import Kernel
from tare.deployments.vm.network import Attachment, attach, detach
from tare.deployments.vm.qemu import below, cpu_threads, cpus_of, disk_aio, disk_cache
from tare.errors import EndedAtOnce, RunFailed, TareError, TimedOut
from tare.record.made_by import GuestFacts
from tare.record.observation import Observation
from tare.requirements import Requirement
from tare.requirements.rights import ROOT
from tare.sites import Completed, Host, Output, Process
from tare.sites.layout import default_layout
from tare.sites.ledger import Kind, Ledger, noting
from tare.sites.marks import make_marked
from tare.sites.process import alive, to_ident

if TYPE_CHECKING:
    from docker import DockerClient

BOOT_S = 240.0
"""Time limit from QEMU's start to the guest's first answer; it takes some 3 s under TCG on an idle machine."""
START_S = 120.0
_CALL_S, _OFF_S = 30.0, 20.0
_DEFAULT_MEMORY_BYTES = 2 << 30
KERNEL_BYTES = 256 << 20
"""Memory for the machine's kernel beyond the task's limit, so that the task gets as much as in every deployment."""
_QEMU_BYTES = 768 << 20
"""Memory that QEMU may use beyond the machine's: devices and, under TCG, translated code."""


class Vm:
    """Runs each task in a virtual machine of its own."""

    needs: ClassVar[tuple[Requirement, ...]] = (ROOT, MACHINE)
    isolates_network: ClassVar[bool] = True
    own_root: ClassVar[bool] = True

    def __init__(
        self,
        host: Host,
        ledger: Ledger,
        engine: DockerClient | None = None,
        inside: Callable[[Host, Ledger], Inside] = Plain,
    ) -> None:
        self._host = host
        self._inside = inside(host, ledger)
        self._ledger = ledger
        self._shared = SharedResources(host, ledger, engine)
        self._layout = default_layout()

    @cached_property
    def _kernel(self) -> Kernel:
        return self._inside.kernel()

    @cached_property
    def _verdict(self) -> Verdict:
        return accelerator_of(self._host, self._layout, self._kernel)

    def start(self, task: Task) -> Instance:
        """Start the machine and its task.

        Everything is noted in the ledger before it is made, and removed on failure.
        """
        self._inside.must_take(task)
        instance: Instance | None = None
        try:
            attachment = attach(self._host, self._ledger, task)
            disks = self._disks(task)
            process = self._launch(task, attachment, disks)
            instance = self._instance(task, attachment, process)
            guest = self._guest(instance)
            hello = self._must_answer(task, lambda: guest.ask({"verb": "hello"}, BOOT_S))
            spec = self._spec(task, attachment, disks)
            answer = self._started(task, lambda: guest.ask({"verb": "start", **spec}, START_S))
            return self._with_task(instance, answer, hello["hypervisor"])
        except BaseException:
            if instance is not None:
                self._end(instance.process)
            self._remove(task)
            raise

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str = "", stdin: bytes = b""
    ) -> Completed:
        """Run a program in the task's root, cgroup and network, under its limits; any exit code is returned."""
        if not alive(self._host, instance.process):
            raise RunFailed(f"{instance.task.name} has ended: {self._last_words(instance.task)}")
        guest = self._guest(instance)
        return guest.execute(argv, timeout_s=timeout_s, stdin=stdin, inside=True, user=user)

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """Wait without polling until the machine ends, then return the task's exit code from the status file."""
        process, status = instance.process, f"{_scratch(instance.task)}/status"
        if alive(self._host, process):
            words = ("wait", str(process.pid), str(process.started_ticks), status)
            try:
                warden(self._host, *words, timeout_s=timeout_s)
            except TimedOut as error:
                raise TimedOut(f"{instance.task.name} did not end within {timeout_s:g} s") from error
        end = guest_end(self._host, status)
        if end is None:
            raise RunFailed(
                f"the virtual machine of {instance.task.name} ended before its task did: "
                f"{self._machine_words(instance.task)}"
            )
        return end.code

    def observe(self, instance: Instance) -> Observation:
        """Read cgroups and CPUs of QEMU's process, everything else inside; disks are those that QEMU has open."""
        host, process, guest, scratch = self._host, instance.process, self._guest(instance), _scratch(instance.task)
        copied = _copied(instance.task)
        assert instance.guest is not None  # noqa: S101 - made by `start`
        outside = observe(host, self._shared.placement.cgroups, process.pid, ())
        inner_cgroups = cgroups_of(guest)
        inside = observe(guest, inner_cgroups, instance.guest.pid, instance.task.targets)
        files = below(host, process.pid, {bind.target: _disk_path(bind.source) for bind in copied})
        return replace(
            inside,
            cgroups=outside.cgroups,
            cpu_weight=outside.cpu_weight,
            cpus_allowed=outside.cpus_allowed,
            cpu_quota=outside.cpu_quota,
            disk_iops=outside.disk_iops,
            namespaces=outside.namespaces,
            mounts={**files, **{layer.target: inside.mounts[layer.target] for layer in instance.task.layers}},
            guest=GuestFacts(
                accelerator=self._verdict.accelerator.value,
                why_not_kvm=self._verdict.why,
                kernel=self._kernel.version,
                clock=guest.clock(),
                cpus=_cpus_online(guest),
                memory_bytes=_memory(guest),
                mounts=dict(inside.mounts),
                disk_files=files,
                disk_cache=disk_cache(host, scratch, [f"disk{n}" for n in range(len(copied))]),
                disk_aio=disk_aio(host, process.pid),
                cpu_threads=tuple(cpus_of(host, process.pid, cpu_threads(host, scratch))),
                container=self._inside.container(guest, instance.guest.pid),
            ),
        )

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """Terminate the task, kill it after `grace_s`, and end its machine, by force if needed."""
        if alive(self._host, instance.process):
            try:
                self._guest(instance).ask({"verb": "stop", "grace_s": grace_s}, grace_s + _OFF_S)
                self.wait(instance, _OFF_S)
            except TareError:
                pass  # a machine that hangs or has ended is killed below, and its console is kept
            self._end(instance.process)
        self._ledger.forget(Kind.PROCESS, to_ident(instance.process), host=self._host.name)
        try:
            for bind in instance.task.binds:
                take_back(self._host, bind, _disk_path(bind.source))
        finally:
            self._remove(instance.task)

    def _disks(self, task: Task) -> tuple[Disk, ...]:
        """Make the disks: the image's, read-only and shared by all runs, and a copy of each given directory."""
        host, machine = self._host, task.machine
        root = root_disk(host, self._ledger, task.image)
        # Every run reads the root in the same way, so it may be served from the host's cache.
        disks = [Disk(root, "root", "/", read_only=True, cache="writeback", aio="threads")]
        for n, bind in enumerate(_copied(task)):
            path = _disk_path(bind.source)
            self._ledger.note(Kind.PATH, path, host=host.name)
            data_disk(host, bind, path, machine)
            disks.append(Disk(path, f"disk{n}", bind.target, bind.read_only, machine.cache, machine.aio))
        return tuple(disks)

    def _launch(self, task: Task, attachment: Attachment, disks: tuple[Disk, ...]) -> Process:
        scratch, host = _scratch(task), self._host
        self._ledger.note(Kind.PATH, scratch, host=host.name)
        make_marked(host, scratch, "0700")
        host.put(SCRIPT, f"{scratch}/line.py")
        host.run(["mkfifo", "-m", "0600", "--", f"{scratch}/line.in", f"{scratch}/line.out"], timeout_s=_CALL_S)
        for path in (task.output.stdout, task.output.stderr):
            host.put(b"", path)
        hardware = self._hardware(task, attachment, disks)
        limit = task.limits.memory_bytes
        outer = None if limit is None else hardware.memory_bytes + _QEMU_BYTES
        placed = replace(task, limits=replace(task.limits, memory_bytes=outer))
        procs = self._shared.placement.make(placed)
        argv = qemu_argv(task.name, hardware, self._wiring(task))
        become = ("python3", "-I", "-S", f"{scratch}/line.py", "become", *procs, "--", *argv)
        output = Output(f"{scratch}/qemu.stdout", f"{scratch}/qemu.stderr")
        return host.start(
            [*self._shared.placement.prefix(placed), *become], output=output, announce=noting(self._ledger, host)
        )

    def _hardware(self, task: Task, attachment: Attachment, disks: tuple[Disk, ...]) -> Hardware:
        memory = _machine_bytes(task)
        digits = hashlib.sha256(task.name.encode()).hexdigest()
        mac = f"52:54:00:{digits[:2]}:{digits[2:4]}:{digits[4:6]}"
        cpus = _cpu_count(self._host, task)
        return Hardware(self._verdict.accelerator, cpus, memory, disks, attachment.netdev, mac)

    def _wiring(self, task: Task) -> Wiring:
        scratch = _scratch(task)
        kept = task.output.stderr.removesuffix(".stderr")
        return Wiring(
            kernel=self._kernel.image,
            initramfs=self._kernel.initramfs,
            line=f"{scratch}/line",
            monitor=f"{scratch}/qmp",
            console=f"{kept}.console",
            stdout=task.output.stdout,
            stderr=task.output.stderr,
            status=f"{scratch}/status",
            counters=f"{kept}.guest.jsonl",
        )

    def _spec(self, task: Task, attachment: Attachment, disks: tuple[Disk, ...]) -> dict[str, Any]:
        names = {
            "/etc/hosts": f"127.0.0.1\tlocalhost {task.name}\n::1\tlocalhost ip6-localhost ip6-loopback\n",
            "/etc/hostname": f"{task.name}\n",
            "/etc/resolv.conf": (self._host.read("/etc/resolv.conf") or b"").decode(errors="replace"),
        }
        return {
            "hostname": task.name,
            "network": {
                "address": attachment.address,
                "prefix": attachment.prefix,
                "gateway": attachment.gateway,
            },
            "memory_bytes": task.limits.memory_bytes,
            "disks": [
                {"serial": each.serial, "target": each.target, "read_only": each.read_only} for each in disks
            ],
            "scratch": [asdict(place) for place in SCRATCH],
            "shm_bytes": _machine_bytes(task) // 2 if task.limits.shm_bytes is None else task.limits.shm_bytes,
            "names": names,
            **self._inside.request(task, disks, names),
        }

    def _instance(self, task: Task, attachment: Attachment, process: Process) -> Instance:
        scratch = _scratch(task)
        return Instance(
            task=task,
            deployment=self._inside.deployment,
            process=process,
            container_id=None,
            address=attachment.reached,
            published=None,
            emulated=True,
            guest=Guest(f"{scratch}/line", f"{scratch}/line.py", 0, f"{scratch}/status"),
        )

    def _with_task(self, instance: Instance, answer: Any, signature: str) -> Instance:
        """Complete the instance with the task's pid and the CPU's hypervisor signature.

        Only the running machine knows them.
        """
        assert instance.guest is not None  # noqa: S101 - made above
        inner = replace(instance.guest, pid=int(answer["pid"]))
        whole = replace(instance, guest=inner, emulated=signature != "KVMKVMKVM")
        if instance.task.machine.pin and inner.pid:
            self._pin(whole)
        return whole

    def _pin(self, instance: Instance) -> None:
        """Pin each virtual CPU to one CPU of the task's set, in order."""
        allowed = sorted(_cpus(self._host, instance.task))
        for thread, cpu in zip(cpu_threads(self._host, _scratch(instance.task)), allowed, strict=True):
            self._host.run(["taskset", "--cpu-list", "--pid", str(cpu), str(thread)], timeout_s=_CALL_S)

    def _guest(self, instance: Instance) -> GuestHost:
        return GuestHost.of(self._host, instance)

    def _must_answer(self, task: Task, ask: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        try:
            return ask()
        except RunFailed as error:
            kind = TimedOut if isinstance(error, TimedOut) else RunFailed
            raise kind(f"{task.name} cannot be started: {error.what}: {self._last_words(task)}") from error

    def _started(self, task: Task, ask: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Get the answer to `start`.

        If the task and its machine end before it can be read, the status file says how.
        """
        try:
            return self._must_answer(task, ask)
        except RunFailed:
            end = guest_end(self._host, f"{_scratch(task)}/status")
            if end is None:
                raise
            if end.code != 0:
                raise EndedAtOnce(task.name, str(end.code), self._last_words(task)) from None
            return {"pid": 0}

    def _end(self, process: Process) -> None:
        """End QEMU, which obeys SIGTERM at once."""
        if alive(self._host, process):
            words = ("end", str(process.pid), str(process.started_ticks), "5")
            warden(self._host, *words, timeout_s=2 * _CALL_S)
        self._ledger.forget(Kind.PROCESS, to_ident(process), host=self._host.name)

    def _remove(self, task: Task) -> None:
        self._shared.placement.remove(task)
        for path in (*(_disk_path(bind.source) for bind in _copied(task)), _scratch(task)):
            remove_tree(self._host, path)
            self._ledger.forget(Kind.PATH, path, host=self._host.name)
        detach(self._host, self._ledger, task)
        self._shared.leave(task.cgroup_parent)

    def _last_words(self, task: Task) -> str:
        """Last output of the task, else of its machine."""
        return words_of(self._host, self._wiring(task).stderr) or self._machine_words(task)

    def _machine_words(self, task: Task) -> str:
        """Last output of QEMU, which prints nothing unless something is wrong, and of the console."""
        paths = (f"{_scratch(task)}/qemu.stderr", self._wiring(task).console)
        return "; ".join(filter(None, (words_of(self._host, path) for path in paths))) or "it printed nothing"


def _scratch(task: Task) -> str:
    """As for a bare task, no directory above it belongs to tare.

    Short, since a socket's path has at most 107 characters.
    """
    return f"/run/tare-task.{task.name}"


def _disk_path(source: str) -> str:
    """Path beside the source directory, on the storage that the study names."""
    return f"{source.rstrip('/')}.disk"


def _copied(task: Task) -> tuple[Bind, ...]:
    """Directories of the host that the machine gets copies of."""
    return (*task.binds, *(Bind(layer.source, layer.target) for layer in task.layers))


def _machine_bytes(task: Task) -> int:
    """Memory of a task's machine: its limit, and what the guest's kernel needs."""
    limit = task.limits.memory_bytes
    return _DEFAULT_MEMORY_BYTES if limit is None else limit + KERNEL_BYTES


def _cpus(host: Host, task: Task) -> frozenset[int]:
    from tare.sites.reading import cpu_list

    online = (host.read("/sys/devices/system/cpu/online") or b"0").decode().strip()
    return frozenset(cpu_list(task.limits.cpus or online) or ())


def _cpu_count(host: Host, task: Task) -> int:
    """Number of virtual CPUs: as many as the task may use, but fewer if its quota allows only fewer."""
    count = len(_cpus(host, task)) or 1
    quota = task.limits.cpu_quota
    return count if quota is None or task.machine.pin else min(count, ceil(quota))


def _cpus_online(guest: GuestHost) -> str | None:
    raw = guest.read("/sys/devices/system/cpu/online")
    return None if raw is None else raw.decode().strip()


def _memory(guest: GuestHost) -> int | None:
    lines = (guest.read("/proc/meminfo") or b"").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b"MemTotal:")), None)
