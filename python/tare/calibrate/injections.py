"""Deployments for calibration: `bare`, with an injected effect of known size."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, ClassVar, Protocol

from tare.deployments import Instance, Task
from tare.deployments.bare.bare import Bare
from tare.deployments.cgroup.hierarchy import CgroupKind, Cgroups, cgroups_of, parse_proc_cgroup
from tare.deployments.cgroup.placement import Placement, leaf, placement_of
from tare.deployments.mounts import covering, parse_mountinfo
from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.record.observation import Observation
from tare.requirements import Requirement
from tare.sites import Completed, Host, Output, Process
from tare.sites.ledger import Kind, Ledger, noting
from tare.sites.process import to_ident

if TYPE_CHECKING:
    from docker import DockerClient


class Injection(Protocol):
    """An effect of known size, added to a bare task."""

    def prepare(self, task: Task) -> None:
        """Prepare the effect before the task starts. Cleans up after itself if it fails."""
        ...

    def begin(self, instance: Instance) -> Instance:
        """Start the effect once the task runs; return the instance for clients. A failure stops the task."""
        ...

    def without(self, seen: Observation) -> Observation:
        """Return the observation without the injection, which no study declares."""
        ...

    def end(self, instance: Instance) -> None:
        """Clean up once the task has ended and its control group is empty."""
        ...


PROGRAM = Path(__file__).with_name("delay_proxy.py")
LOG_NAME = "sut.proxy.jsonl"
"""The proxy's log among the raw files of a run."""
_START_S = 20.0
_POLL_S = 0.01


@dataclass(frozen=True)
class BareWith:
    """Factory of a bare deployment with an injection. `injection`: makes it for a host, ledger and engine."""

    injection: Callable[[Host, Ledger, DockerClient | None], Injection]

    @property
    def needs(self) -> tuple[Requirement, ...]:
        """Those of a bare task."""
        return Bare.needs

    @property
    def isolates_network(self) -> bool:
        """As a bare task."""
        return Bare.isolates_network

    @property
    def own_root(self) -> bool:
        """As a bare task."""
        return Bare.own_root

    def __call__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> AroundBare:
        """Make the deployment on one host."""
        return AroundBare(Bare(host, ledger, engine), self.injection(host, ledger, engine))


@dataclass(frozen=True)
class AroundBare:
    """A bare task with its injection; otherwise like `Bare`."""

    bare: Bare
    injection: Injection
    needs: ClassVar[tuple[Requirement, ...]] = Bare.needs
    isolates_network: ClassVar[bool] = Bare.isolates_network
    own_root: ClassVar[bool] = Bare.own_root

    def start(self, task: Task) -> Instance:
        """Start the task with the injection."""
        self.injection.prepare(task)
        instance = self.bare.start(task)
        try:
            return self.injection.begin(instance)
        except BaseException:
            self.stop(instance)
            raise

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str = "", stdin: bytes = b""
    ) -> Completed:
        """Run a program beside the task, as a bare one."""
        return self.bare.exec(instance, argv, timeout_s=timeout_s, user=user, stdin=stdin)

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """Wait for the program's end, as of a bare task."""
        return self.bare.wait(instance, timeout_s)

    def observe(self, instance: Instance) -> Observation:
        """Observe the task only, without the injection."""
        return self.injection.without(self.bare.observe(instance))

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """End the task and clear its control group, with everything of the injection in it."""
        self.bare.stop(instance, grace_s)
        self.injection.end(instance)


def reads_limited(reads_per_s: int) -> BareWith:
    """Return the factory for a read limit. `reads_per_s`: on the device of the task's first bind."""
    return BareWith(lambda host, ledger, engine: ReadLimit(host, placement_of(host, ledger, engine), reads_per_s))


@dataclass(frozen=True)
class ReadLimit:
    """A limit on a task's reads (cgroup-v1/blkio-controller.rst; `io.max` in cgroup-v2.rst)."""

    host: Host
    placement: Placement
    reads_per_s: int

    def prepare(self, task: Task) -> None:
        """Set the limit first, so that no read escapes it."""
        self.placement.make(task)
        try:
            self._limit(task, f"/{leaf(task)}")
        except BaseException:
            self.placement.remove(task)
            raise

    def begin(self, instance: Instance) -> Instance:
        """Set the limit again in the task's current group: a group made by systemd exists only after the start."""
        self._limit(instance.task, self._own(instance))
        return instance

    def without(self, seen: Observation) -> Observation:
        """Remove this limit from the observation; any other limit stays."""
        return replace(seen, disk_iops=None) if seen.disk_iops == self.reads_per_s else seen

    def end(self, instance: Instance) -> None:
        """Do nothing: the limit disappears with the control group."""

    def _limit(self, task: Task, path: str) -> None:
        """Write the rule into the task's control group, if the group exists already."""
        cgroups = self.placement.cgroups
        directory = f"{io_mount(cgroups)}{path}"
        if self.host.read(f"{directory}/cgroup.procs") is None:
            return
        device = whole_disk(self.host, task.binds[0].source)
        if cgroups.kind is CgroupKind.V2:
            self.host.put(f"{device} riops={self.reads_per_s}".encode(), f"{directory}/io.max")
        else:
            rule = f"{device} {self.reads_per_s}".encode()
            self.host.put(rule, f"{directory}/blkio.throttle.read_iops_device")

    def _own(self, instance: Instance) -> str:
        paths = parse_proc_cgroup((self.host.read(f"/proc/{instance.process.pid}/cgroup") or b"").decode())
        return next((path for names, path in paths.items() if "blkio" in names.split(",")), paths.get("", "/"))


def io_mount(cgroups: Cgroups) -> str:
    """Return the mount of the hierarchy that limits I/O."""
    mount = cgroups.mount_of("io" if cgroups.kind is CgroupKind.V2 else "blkio")
    if mount is None:
        raise EnvironmentLacks("this host's kernel has no control group that limits I/O", hint="see /proc/cgroups")
    return mount


def whole_disk(host: Host, path: str) -> str:
    """Return `"major:minor"` of the disk below `path`: rules apply to disks, not to their partitions."""
    mount = covering(parse_mountinfo((host.read("/proc/self/mountinfo") or b"").decode()), path)
    device = "" if mount is None else mount.device
    if host.read(f"/sys/dev/block/{device}/partition") is not None:
        device = (host.read(f"/sys/dev/block/{device}/../dev") or b"").decode().strip()
    if host.read(f"/sys/dev/block/{device}/dev") is None:
        raise EnvironmentLacks(
            f"{path} is not on a block device, so reads cannot be limited",
            hint="set TARE_HOME to a file system on a disk, or leave the kind `io` out",
        )
    return device


def behind_proxy(delay_us: float) -> BareWith:
    """Return the factory for a delay. `delay_us`: microseconds that each message to the server is delayed."""
    return BareWith(lambda host, ledger, _: DelayProxies(host, ledger, delay_us))


@dataclass(frozen=True)
class DelayProxies:
    """Delays messages by a proxy in front of each task's port."""

    host: Host
    ledger: Ledger
    delay_us: float
    _running: dict[str, Process] = field(default_factory=dict)

    def prepare(self, task: Task) -> None:
        """Do nothing: the proxy joins the task's control group later."""

    def begin(self, instance: Instance) -> Instance:
        """Start the proxy in the task's control group; clients get its port."""
        return replace(instance, task=replace(instance.task, port=self._start_proxy(instance)))

    def without(self, seen: Observation) -> Observation:
        """Return the observation unchanged: a proxy is not one of the task's properties."""
        return seen

    def end(self, instance: Instance) -> None:
        """Strike the proxy out of the ledger; it ended with the control group."""
        proxy = self._running.pop(instance.task.name, None)
        if proxy is not None:
            self.ledger.forget(Kind.PROCESS, to_ident(proxy), host=self.host.name)

    def _start_proxy(self, instance: Instance) -> int:
        """Start the proxy and return its port as soon as it prints it."""
        raw = PurePosixPath(instance.task.output.stdout)
        output = Output(stdout=str(raw.with_suffix(".proxy.port")), stderr=str(raw.with_suffix(".proxy.stderr")))
        program = str(raw.with_suffix(".proxy.py"))
        self.host.put(PROGRAM, program)
        spec = {
            "address": instance.task.listen,
            "port": instance.task.port,
            "delay_us": self.delay_us,
            "cgroup_procs": self._procs(instance),
            "log": str(raw.with_suffix(".proxy.jsonl")),
        }
        argv = ["python3", "-I", "-S", program, json.dumps(spec)]
        self._running[instance.task.name] = self.host.start(
            argv, output=output, announce=noting(self.ledger, self.host)
        )
        return self._port(output)

    def _procs(self, instance: Instance) -> list[str]:
        cgroups = cgroups_of(self.host)
        own = (self.host.read(f"/proc/{instance.process.pid}/cgroup") or b"").decode()
        return list(cgroups.procs_files(own))

    def _port(self, output: Output) -> int:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            text = (self.host.read(output.stdout) or b"").decode()
            if text.endswith("\n"):
                return int(text)
            if words := (self.host.read(output.stderr) or b"").decode(errors="replace").strip():
                raise RunFailed(f"the delaying proxy cannot be started: {words.splitlines()[-1]}")
            time.sleep(_POLL_S)
        raise TimedOut(f"the delaying proxy did not report its port within {_START_S:g} s")
