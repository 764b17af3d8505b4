"""A deployment for calibration: a bare program that the kernel lets read from its disk so often a second only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tare.calibrate.around_bare import BareWith
from tare.deployments import Instance, Observation, Task
from tare.deployments.cgroup.hierarchy import CgroupKind, Cgroups, parse_proc_cgroup
from tare.deployments.cgroup.placement import Placement, leaf, placement_of
from tare.deployments.mounts import covering, parse_mountinfo
from tare.errors import EnvironmentLacks
from tare.sites import Host


def reads_limited(reads_per_s: int) -> BareWith:
    """Makes the deployment. `reads_per_s`: of the device that the task's first bind lies on."""
    return BareWith(lambda host, ledger, engine: ReadLimit(host, placement_of(host, ledger, engine), reads_per_s))


@dataclass(frozen=True)
class ReadLimit:
    """A limit on a task's reads (cgroup-v1/blkio-controller.rst; `io.max` in cgroup-v2.rst)."""

    host: Host
    placement: Placement
    reads_per_s: int

    def prepare(self, task: Task) -> None:
        """The limit first, so that no read escapes it."""
        self.placement.make(task)
        try:
            self._limit(task, f"/{leaf(task)}")
        except BaseException:
            self.placement.remove(task)
            raise

    def begin(self, instance: Instance) -> Instance:
        """Again where the task is now: a group that systemd makes is there after the start only."""
        self._limit(instance.task, self._own(instance))
        return instance

    def without(self, seen: Observation) -> Observation:
        """No limit, where it is this one; any other is told."""
        return replace(seen, disk_iops=None) if seen.disk_iops == self.reads_per_s else seen

    def end(self, instance: Instance) -> None:
        """It went with the control group."""

    def _limit(self, task: Task, path: str) -> None:
        """Write the rule into the task's control group, where it is there already."""
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
