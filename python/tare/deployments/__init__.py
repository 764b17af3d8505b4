"""Deployments: how a SUT or a client is placed.

A `Task` says what to run from which image; a `Deployment` puts it on a host. Everything an arm may not
differ in by accident (user, environment, limits, cgroup parent, data path) is in the `Task`, so that two
deployments given the same task differ only in what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tare.sites import Completed, Output, Process
from tare.study.values import CgroupPlace, NetworkKind, Qos

if TYPE_CHECKING:
    from tare.images import Image


class Right(StrEnum):
    """What a deployment needs of the user; checked when the plan is made."""

    ROOT = "root"
    ENGINE = "engine"


MACHINES = frozenset({"vm", "vm-container"})
"""Deployments whose tasks stand in a virtual machine of their own."""
POD = "pod"
"""The deployment whose tasks are pods of a cluster, in control groups that kubelet makes."""
CONTAINERD = "containerd"
"""The deployment whose containers are made by containerd itself, without an engine."""
IN_TREE = frozenset({"bare"})
"""Deployments whose tasks run in the image's own tree, and those of root could write to it."""


@dataclass(frozen=True)
class Limits:
    """Resource limits, the same words for every deployment. `None`: not limited.

    `cpus`: CPU list as in cpuset.cpus (`"0-1,3"`). `cpu_quota`: CPUs' worth of time (1.5 = 150 ms in each
    100 ms). `cpu_weight`: share of CPU time where others want it too; 100 is the kernel's own. `memory_bytes`: hard
    limit. `nofile`, `nproc`: soft = hard resource limits. `disk_iops`: reads, and as many writes, a second on each
    disk of the host.
    """

    cpus: str | None = None
    cpu_quota: float | None = None
    cpu_weight: int | None = None
    memory_bytes: int | None = None
    nofile: int = 65536
    nproc: int | None = None
    disk_iops: int | None = None


@dataclass(frozen=True)
class Bind:
    """A directory or file of the host made visible inside: absolute paths."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Volume:
    """A volume of the engine's, by name, made visible at an absolute path."""

    name: str
    target: str


@dataclass(frozen=True)
class Claim:
    """A cluster's PersistentVolumeClaim, by name, made visible at a path; `below`: only that directory in it."""

    name: str
    target: str
    below: str | None = None


@dataclass(frozen=True)
class Layer:
    """A directory of the host whose content is put into the container's own layers at `target`, before it starts.

    `copy_up`: into a layer of the image, so that the first write to each file copies it up; else into the writable
    one. `warmed`: read once afterwards; else out of the page cache.
    """

    source: str
    target: str
    copy_up: bool = False
    warmed: bool = False


@dataclass(frozen=True)
class MachineSetting:
    """How a virtual machine is set up. `cache`, `aio`: of its disks, in QEMU's words; `disk_bytes`: size of each.

    `pin`: each virtual CPU on one CPU of the task's.
    """

    cache: str = "none"
    aio: str = "threads"
    disk_bytes: int = 16 << 30
    pin: bool = False


@dataclass(frozen=True)
class Confinement:
    """What a container's program may not do, `default` being as the engine has it.

    `seccomp`: also `unconfined`, or the path of a profile. `capabilities`: also `all` and `none`.
    """

    seccomp: str = "default"
    capabilities: str = "default"
    no_new_privileges: bool = False


@dataclass(frozen=True)
class Lan:
    """The network between hosts, for a container that has an address of its own there. `device`: the host's."""

    device: str
    address: str
    subnet: str


@dataclass(frozen=True)
class PodSetting:
    """The pod around a container: `cni`, `proxy`, `services` as in a study. `qos`: `None`: in the run's group."""

    cni: str = "bridge"
    proxy: str = "iptables"
    services: int = 1
    qos: Qos | None = None
    cpu_request: float | None = None
    memory_request_bytes: int | None = None


@dataclass(frozen=True)
class Task:
    """One program to run from an image, apart from where it runs.

    `name` is unique on the host and becomes container, cgroup and host name. `cgroup_parent` is the one
    parent that all tasks of a run share, relative to the cgroup root (`"tare/RUN"`). `port` is what the
    program will listen on, 0 if nothing. `beside` is the instance whose namespace `shared` means. `listen`: at
    which of the host's addresses it is found in the host's namespace. `publish_at`: the host's address at which a
    port is published for other hosts; `None`: the one on tare's bridge, for this host alone.
    """

    name: str
    image: Image
    argv: tuple[str, ...]
    output: Output
    cgroup_parent: str
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    workdir: str = "/"
    binds: tuple[Bind, ...] = ()
    volumes: tuple[Volume, ...] = ()
    layers: tuple[Layer, ...] = ()
    claims: tuple[Claim, ...] = ()
    """Of a cluster's pods only."""
    limits: Limits = field(default_factory=Limits)
    network: NetworkKind = NetworkKind.HOST
    beside: Instance | None = None
    port: int = 0
    listen: str = "127.0.0.1"
    publish_at: str | None = None
    lan: Lan | None = None
    """Of `macvlan` and `ipvlan` only."""
    cgroup: CgroupPlace = CgroupPlace.RUN
    machine: MachineSetting = field(default_factory=MachineSetting)
    """Of virtual machines only."""
    runtime: str | None = None
    """Of an engine's containers: by its name for it; `None`: its default."""
    confinement: Confinement = field(default_factory=Confinement)
    """Of an engine's containers only."""
    pod: PodSetting | None = None
    """Of an engine's containers, and of a cluster's pods: there only class of service and requests say anything."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Paths inside at which something of the host or of the engine is given."""
        given: tuple[Bind | Volume | Layer | Claim, ...] = (*self.binds, *self.volumes, *self.layers, *self.claims)
        return tuple(each.target for each in given)


@dataclass(frozen=True)
class Endpoint:
    """Where a client finds a server."""

    address: str
    port: int


@dataclass(frozen=True)
class Guest:
    """How a virtual machine is spoken to. `line`: path of its FIFOs; `script`: what speaks there.

    `pid`: the task's, inside. `status`: the file in which the machine writes the task's end.
    """

    line: str
    script: str
    pid: int
    status: str


@dataclass(frozen=True)
class Instance:
    """A started task. `process` is its first process as the host sees it."""

    task: Task
    deployment: str
    process: Process
    container_id: str | None
    address: str
    """Its own address: that which its task listens at in the host's namespace, else the one on tare's bridge."""
    published: Endpoint | None
    """The host's side of a published port."""
    emulated: bool = False
    """Its CPU is emulated in software (QEMU's TCG), as what was started reports; results then bear a mark."""
    guest: Guest | None = None
    """The virtual machine around it; `process` is then QEMU, which lives as long as the task."""


@dataclass(frozen=True)
class Observation:
    """What is in force around an instance, read from the kernel and never from what was asked for.

    `None`: could not be read. Paths are as /proc/PID/cgroup prints them.
    """

    cgroups: Mapping[str, str]
    cpu_weight: int | None
    cpus_allowed: str | None
    cpu_quota: float | None
    memory_bytes: int | None
    limits: Mapping[str, str]
    """Lines of /proc/PID/limits: name → "soft hard"."""
    seccomp: str | None
    speculation: Mapping[str, str]
    namespaces: Mapping[str, str]
    """Kind → inode of /proc/PID/ns/*."""
    binary_digest: str | None
    """sha256 of /proc/PID/exe."""
    scheduler: str | None
    oom_score_adj: int | None
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Each of the task's targets → "fstype device", and a server's address, by its /proc/PID/mountinfo; of a
    target on a virtual machine's disk, where that disk's file lies."""
    disk_iops: int | None = None
    """Reads or writes a second on a disk, the lowest limit of any; `None`: none."""
    environment: Mapping[str, str] | None = None
    """The program's variables, of /proc/PID/environ; `None`: not readable, or written over by the program."""
    capabilities: str | None = None
    """CapBnd of /proc/PID/status: what the program and its children can ever have, in hexadecimal."""
    no_new_privileges: str | None = None
    """NoNewPrivs of /proc/PID/status."""
    id_map: str | None = None
    """Users of its namespace, of /proc/PID/uid_map: `INSIDE:OUTSIDE:COUNT`, joined by commas."""
    root_mount: str | None = None
    """"fstype major:minor" of its root: an overlay of the kernel's, fuse-overlayfs, or the host's file system."""
    containerd: Mapping[str, Any] | None = None
    """Of a container that containerd itself made: its shim, namespace, socket, snapshotter, versions."""
    pod: Mapping[str, Any] | None = None
    """Of a container in a pod: namespaces of its sandbox, interface, rules of Services, class of service."""
    guest: Mapping[str, Any] | None = None
    """Of a virtual machine: accelerator, kernel, CPUs, memory, mounts, disks, CPUs of its threads, container."""


class Deployment(Protocol):
    """Puts tasks on one host. All methods are safe to call again after a failure."""

    needs: ClassVar[frozenset[Right]]
    isolates_network: ClassVar[bool]
    """Whether a task of this deployment can have a network namespace of its own."""
    own_root: ClassVar[bool]
    """Whether a task sees the image's root and its binds; else paths are the host's own."""

    def start(self, task: Task) -> Instance:
        """Start the task; `RunFailed` where its program cannot be begun.

        One that was begun and has ended meanwhile is handed back as any other: `wait` returns its end.
        """
        ...

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str = "", stdin: bytes = b""
    ) -> Completed:
        """Run a program inside the instance, as `user` (default: the task's)."""
        ...

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """Wait for the task's end and return its exit code; `TimedOut` after `timeout_s`."""
        ...

    def observe(self, instance: Instance) -> Observation:
        """Read what is really in force around the instance."""
        ...

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """End the task (SIGTERM, then SIGKILL after `grace_s`) and remove all that `start` made."""
        ...
