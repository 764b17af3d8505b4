"""A deployment for calibration: a bare program that the kernel lets read from its disk so often a second only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tare.deployments import Instance, Observation, Right, Task
from tare.deployments.bare import Bare
from tare.deployments.cgroups import CgroupKind, Cgroups, parse_proc_cgroup
from tare.deployments.mountinfo import covering, parse_mountinfo
from tare.deployments.placement import Placement, leaf, placement_of
from tare.errors import EnvironmentLacks
from tare.sites import Completed, Host
from tare.sites.ledger import Ledger

if TYPE_CHECKING:
    from docker import DockerClient


@dataclass(frozen=True)
class ReadsLimited:
    """Makes the deployment. `reads_per_s`: of the device that the task's first bind lies on."""

    reads_per_s: int

    @property
    def needs(self) -> frozenset[Right]:
        """As `bare`."""
        return Bare.needs

    @property
    def isolates_network(self) -> bool:
        """As `bare`."""
        return Bare.isolates_network

    @property
    def own_root(self) -> bool:
        """As `bare`."""
        return Bare.own_root

    def __call__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> Throttled:
        """On one host."""
        return Throttled(Bare(host, ledger, engine), host, placement_of(host, ledger, engine), self.reads_per_s)


@dataclass(frozen=True)
class Throttled:
    """A bare task with a limit on its reads (cgroup-v1/blkio-controller.rst; `io.max` in cgroup-v2.rst)."""

    inner: Bare
    host: Host
    placement: Placement
    reads_per_s: int
    needs: ClassVar[frozenset[Right]] = Bare.needs
    isolates_network: ClassVar[bool] = Bare.isolates_network
    own_root: ClassVar[bool] = Bare.own_root

    def start(self, task: Task) -> Instance:
        """The limit first, so that no read escapes it; a group that systemd makes is there after the start only."""
        self.placement.make(task)
        try:
            before = self._limit(task, f"/{leaf(task)}")
        except BaseException:
            self.placement.remove(task)
            raise
        instance = self.inner.start(task)
        if not before:
            try:
                self._limit(task, self._own(instance))
            except BaseException:
                self.inner.stop(instance)
                raise
        return instance

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str = "", stdin: bytes = b""
    ) -> Completed:
        """As `bare`."""
        return self.inner.exec(instance, argv, timeout_s=timeout_s, user=user, stdin=stdin)

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """As `bare`."""
        return self.inner.wait(instance, timeout_s)

    def observe(self, instance: Instance) -> Observation:
        """As `bare`."""
        return self.inner.observe(instance)

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """As `bare`."""
        self.inner.stop(instance, grace_s)

    def _limit(self, task: Task, path: str) -> bool:
        """Write the rule into the task's control group; `False` where there is no such group yet."""
        cgroups = self.placement.cgroups
        directory = f"{io_mount(cgroups)}{path}"
        if self.host.read(f"{directory}/cgroup.procs") is None:
            return False
        device = whole_disk(self.host, task.binds[0].source)
        if cgroups.kind is CgroupKind.V2:
            self.host.put(f"{device} riops={self.reads_per_s}".encode(), f"{directory}/io.max")
        else:
            rule = f"{device} {self.reads_per_s}".encode()
            self.host.put(rule, f"{directory}/blkio.throttle.read_iops_device")
        return True

    def _own(self, instance: Instance) -> str:
        paths = parse_proc_cgroup((self.host.read(f"/proc/{instance.process.pid}/cgroup") or b"").decode())
        return next((path for names, path in paths.items() if "blkio" in names.split(",")), paths.get("", "/"))


def io_mount(cgroups: Cgroups) -> str:
    """The hierarchy that limits I/O."""
    mount = cgroups.mount_of("io" if cgroups.kind is CgroupKind.V2 else "blkio")
    if mount is None:
        raise EnvironmentLacks(
            "this host's kernel offers no control group that limits I/O", hint="see /proc/cgroups"
        )
    return mount


def whole_disk(host: Host, path: str) -> str:
    """`"major:minor"` of the disk below `path`: rules are for disks, not for their partitions."""
    mount = covering(parse_mountinfo((host.read("/proc/self/mountinfo") or b"").decode()), path)
    device = "" if mount is None else mount.device
    if host.read(f"/sys/dev/block/{device}/partition") is not None:
        device = (host.read(f"/sys/dev/block/{device}/../dev") or b"").decode().strip()
    if host.read(f"/sys/dev/block/{device}/dev") is None:
        raise EnvironmentLacks(
            f"{path} lies on no block device of its own, so reads cannot be limited",
            hint="set TARE_HOME to a file system on a disk, or leave the kind `io` out",
        )
    return device
