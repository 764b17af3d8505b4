"""Deployments: how a SUT or a client is placed on a host.

A `Task` says what to run from which image; a `Deployment` puts it on a host. Everything that must not differ
between arms by accident (user, environment, limits, cgroup parent, data path) is in the `Task`. Two deployments
that are given the same task therefore differ only in the kind of deployment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

from tare.record.observation import Observation
from tare.requirements import Requirement
from tare.sites import Completed, Output, Process
from tare.study.values import CgroupPlace, NetworkKind, Qos

if TYPE_CHECKING:
    from tare.images import Image


MACHINES = frozenset({"vm", "vm-container"})
"""Deployments that run each task in a virtual machine of its own."""
POD = "pod"
"""The deployment that runs tasks as pods of a cluster, in control groups made by kubelet."""
CONTAINERD = "containerd"
"""The deployment that makes containers through containerd itself, without an engine."""
SOCKET_DIR = "/run/tare-socket"
"""Where a task sees the directory with the Unix socket between server and client. It holds nothing else."""
IN_TREE = frozenset({"bare"})
"""Deployments whose tasks run in the unpacked tree of the image; a task of root could write to this tree."""


@dataclass(frozen=True)
class Limits:
    """Resource limits, under the same names for every deployment. `None`: not limited.

    `cpus`: CPU list as in cpuset.cpus (`"0-1,3"`). `cpu_quota`: CPU time in CPUs (1.5 = 150 ms in each 100 ms).
    `cpu_weight`: share of CPU time under contention; the kernel's default is 100. `memory_bytes`: hard limit.
    `nofile`, `nproc`: resource limits, soft = hard. `disk_iops`: limit of reads per second, and the same limit of
    writes per second, on each disk of the host. `shm_bytes`: size of /dev/shm; `None`: the host's own for a bare
    task, the guest's own in a virtual machine, the engine's 64 MiB in a container. `memlock_bytes`: memory that may
    be locked, soft = hard. `swap_bytes`: swap beside `memory_bytes`; `None`: none. `mems`: list of NUMA nodes as in
    cpuset.mems. `pids`: most processes and threads.
    """

    cpus: str | None = None
    cpu_quota: float | None = None
    cpu_weight: int | None = None
    memory_bytes: int | None = None
    nofile: int = 65536
    nproc: int | None = None
    disk_iops: int | None = None
    shm_bytes: int | None = None
    memlock_bytes: int | None = None
    swap_bytes: int | None = None
    mems: str | None = None
    pids: int | None = None

    @property
    def memory_and_swap_bytes(self) -> int:
        """Limit of memory and swap together, as v1 and engines count; `memory_bytes` must be set."""
        return (self.memory_bytes or 0) + (self.swap_bytes or 0)


@dataclass(frozen=True)
class Bind:
    """A directory or file of the host that a task sees at `target`; both paths are absolute."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Volume:
    """A named volume of the engine that a task sees at the absolute path `target`."""

    name: str
    target: str


@dataclass(frozen=True)
class Claim:
    """A named PersistentVolumeClaim of a cluster, mounted at `target`.

    `below`: mount only this directory of the volume.
    """

    name: str
    target: str
    below: str | None = None


@dataclass(frozen=True)
class Layer:
    """A directory of the host whose content is copied into the container's own layers at `target` before it starts.

    `copy_up`: copy into a layer of the image, so that the first write to each file copies it up; otherwise into the
    writable layer. `warmed`: read the data once afterwards; otherwise drop it from the page cache.
    """

    source: str
    target: str
    copy_up: bool = False
    warmed: bool = False


@dataclass(frozen=True)
class MachineSetting:
    """Setup of a virtual machine.

    `cache`, `aio`: QEMU's settings of its disks. `disk_bytes`: size of each disk. `pin`: pin each virtual CPU to
    one CPU of the task.
    """

    cache: str = "none"
    aio: str = "threads"
    disk_bytes: int = 16 << 30
    pin: bool = False


@dataclass(frozen=True)
class Confinement:
    """Restrictions on a container's program; `default` leaves the engine's own setting.

    `seccomp` also takes `unconfined` or the path of a profile, whose content then has the digest `seccomp_sha256`;
    `capabilities` also takes `all` and `none`.
    """

    seccomp: str = "default"
    capabilities: str = "default"
    no_new_privileges: bool = False
    seccomp_sha256: str | None = None


@dataclass(frozen=True)
class Lan:
    """The network between hosts, for a container with an address of its own there.

    `device`: the host's interface.
    """

    device: str
    address: str
    subnet: str


@dataclass(frozen=True)
class PodSetting:
    """The pod around a container. `cni`, `proxy`, `services`: as in a study.

    `qos`: `None` puts it in the run's cgroup.
    """

    cni: str = "bridge"
    proxy: str = "iptables"
    services: int = 1
    qos: Qos | None = None
    cpu_request: float | None = None
    memory_request_bytes: int | None = None


@dataclass(frozen=True)
class Task:
    """One program to run from an image, independent of where it runs.

    `name` is unique on the host and names the container, the cgroup and the host inside. `cgroup_parent`, relative
    to the cgroup root (`"tare/RUN"`), is the parent of all tasks of a run. `port`: port that the program will
    listen on; 0 for none. `beside`: instance whose network namespace a `shared` network joins. `listen`: address of
    the host at which the task is reached if it runs in the host's namespace. `publish_at`: address of the host at
    which a port is published for other hosts; `None` publishes it on tare's bridge, for this host only.
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
    """Only for pods of a cluster."""
    limits: Limits = field(default_factory=Limits)
    network: NetworkKind = NetworkKind.HOST
    beside: Instance | None = None
    port: int = 0
    listen: str = "127.0.0.1"
    publish_at: str | None = None
    lan: Lan | None = None
    """Only for `macvlan` and `ipvlan`."""
    cgroup: CgroupPlace = CgroupPlace.RUN
    machine: MachineSetting = field(default_factory=MachineSetting)
    """Only for virtual machines."""
    runtime: str | None = None
    """Only for containers of an engine: the engine's name of the OCI runtime; `None`: the engine's default."""
    confinement: Confinement = field(default_factory=Confinement)
    """Only for containers of an engine."""
    pod: PodSetting | None = None
    """For containers of an engine and pods of a cluster; a cluster uses only the QoS class and the requests."""
    sysctls: Mapping[str, str] = field(default_factory=dict)
    """Settings of the task's own network namespace. Only for containers of an engine."""
    log_driver: str = "json-file"
    """What an engine does with the task's output. Only for containers of an engine."""
    socket: str | None = None
    """Path of the Unix socket at which the task serves clients, as the task sees it; `None`: they use `port`."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Paths inside the task at which something of the host, the engine or the cluster is mounted."""
        given: tuple[Bind | Volume | Layer | Claim, ...] = (*self.binds, *self.volumes, *self.layers, *self.claims)
        return tuple(each.target for each in given)


@dataclass(frozen=True)
class Endpoint:
    """Address and port at which a client reaches a server."""

    address: str
    """IP address."""
    port: int
    """TCP port."""

    def __str__(self) -> str:
        """Write both as in a URL: `127.0.0.1:3306`, `[::1]:3306`."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


@dataclass(frozen=True)
class Guest:
    """How tare communicates with a virtual machine.

    `line`: path of its FIFOs. `script`: path of the script that talks through them. `pid`: the task's process ID
    inside the machine. `status`: file to which the machine writes the task's exit code.
    """

    line: str
    script: str
    pid: int
    status: str


@dataclass(frozen=True)
class Instance:
    """A started task. `process` is the task's first process as the host sees it."""

    task: Task
    deployment: str
    process: Process
    container_id: str | None
    address: str
    """Address of the task: where it listens in the host's namespace, otherwise its address on tare's bridge."""
    published: Endpoint | None
    """The host's side of a published port."""
    emulated: bool = False
    """Whether the CPU is emulated in software (QEMU's TCG), as the started machine reports; its results are
    marked."""
    log_driver: str | None = None
    """Log driver of the task's container, by its engine's word."""
    guest: Guest | None = None
    """The virtual machine around the task; `process` is then QEMU, which lives as long as the task."""


class Deployment(Protocol):
    """Puts tasks on one host. Every method can safely be called again after a failure."""

    needs: ClassVar[tuple[Requirement, ...]]
    """What the host of each task must have."""
    isolates_network: ClassVar[bool]
    """Whether a task of this deployment can have a network namespace of its own."""
    own_root: ClassVar[bool]
    """Whether a task sees the image's root and its binds; otherwise it sees the paths of the host."""

    def start(self, task: Task) -> Instance:
        """Start the task; `RunFailed` if its program cannot be started.

        A task that was started but has already ended is returned like any other: `wait` returns its exit code.
        """
        ...

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str = "", stdin: bytes = b""
    ) -> Completed:
        """Run a program inside the instance, as `user` (default: the task's user)."""
        ...

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """Wait for the task's end and return its exit code; `TimedOut` after `timeout_s`."""
        ...

    def observe(self, instance: Instance) -> Observation:
        """Read what is really in force around the instance."""
        ...

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """End the task (SIGTERM, then SIGKILL after `grace_s`) and remove everything that `start` made."""
        ...
