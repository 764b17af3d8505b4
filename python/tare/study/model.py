"""The study: a question with its factors, workload and protocol, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from tare.errors import StudyError
from tare.study.metrics import COMPARED_METRIC, PUBLISHED_METRIC
from tare.study.protocol_spec import ProtocolSpec
from tare.study.values import (
    CgroupPlace,
    Count,
    CpuList,
    EngineName,
    NetworkKind,
    PublishedBy,
    Qos,
    Quantities,
    RequestSize,
    Seconds,
    Strict,
    size_bytes,
)

FORMAT = 1
"""Version of the study file; a file of a newer format is refused."""

Scalar = str | int | float | bool
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
"""Names become parts of container, cgroup and directory names, so they are plain."""


Sysctl = Annotated[str, Field(pattern=r"^net(\.[a-z0-9_-]+)+$")]


class Source(Strict):
    """The publication that a study replays."""

    title: str
    authors: str
    year: int
    url: str


_LEAST_MEMORY_BYTES = 6 << 20  # Docker starts no container below it (`linuxMinMemory` in its daemon)


class LimitsSpec(Strict):
    """Limits of one side. `memory`: bytes, or with K, M, G (powers of 1024). `cpu_weight`: 100 by default.

    `disk_iops`: reads a second, and as many writes, on each disk of the host. `shm`: size of /dev/shm; by default,
    the host's own for bare, half of the memory in a virtual machine, 64M in a container. `memlock`: memory that may
    be locked; by default, as much as the host allows. `swap`: swap beside the memory; none by default. `mems`: NUMA
    nodes of its memory, a list. `pids`: most processes and threads.
    """

    cpus: CpuList | None = None
    cpu_quota: float | None = Field(
        default=None, ge=0.01, le=8192
    )  # 1 ms of a period of 100 ms: the kernel's least
    cpu_weight: int | None = Field(default=None, ge=1, le=10_000)
    memory: str | None = Field(default=None, pattern=r"^[1-9]\d*[KMG]?$")
    nofile: int = Field(default=65536, gt=0, le=1 << 30)
    disk_iops: Count | None = Field(default=None, gt=0)
    shm: str | None = Field(default=None, pattern=r"^[1-9]\d*[KMG]?$")
    memlock: str | None = Field(default=None, pattern=r"^[1-9]\d*[KMG]?$")
    swap: str | None = Field(default=None, pattern=r"^(0|[1-9]\d*[KMG]?)$")
    mems: CpuList | None = None
    pids: Count | None = Field(default=None, gt=0)

    @property
    def in_cgroups(self) -> bool:
        """Whether a control group enforces any of the limits."""
        return any(
            limit is not None
            for limit in (
                *(self.cpus, self.cpu_quota, self.cpu_weight, self.memory, self.disk_iops),
                *(self.swap, self.mems, self.pids),
            )
        )

    @field_validator("memory")
    @classmethod
    def _memory_can_be(cls, memory: str | None) -> str | None:
        if memory is not None and size_bytes(memory) < _LEAST_MEMORY_BYTES:
            raise ValueError(f"must be at least 6M, got {memory!r}")
        return memory


class ConfinementSpec(Strict):
    """Restrictions on a container's program; `default` leaves them to the engine."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    seccomp: Annotated[
        str, Field(pattern=r"^(default|unconfined|[^\x00-\x1f]*/[^\x00-\x1f]+|[^\x00-\x1f]+\.json)$")
    ] = "default"
    """System call filter: the engine's, none, or a JSON profile by its path, relative to the study file."""
    capabilities: Literal["default", "all", "none"] = "default"
    """Capabilities. A program that is not root uses them only through files that have them."""
    no_new_privileges: bool = False
    """No program gains rights by what it executes: no set-user-ID, no file capabilities."""

    @property
    def profile(self) -> str | None:
        """Path of the profile that filters system calls; `None` without one."""
        return None if self.seccomp in {"default", "unconfined"} else self.seccomp


class Placement(Strict):
    """Where one side of the benchmark runs."""

    image: str
    """`NAME` (a recipe), the path of a recipe (`.yaml`), `docker://REF`, `oci:PATH` or `tar:PATH`."""
    deployment: str
    engine: EngineName | None = None
    """Engine of containers; `None`: the one at DOCKER_HOST, else Docker's."""
    runtime: Name | None = None
    """OCI runtime of containers, by the engine's name for it; `None`: the engine's default."""
    confinement: ConfinementSpec = ConfinementSpec()
    network: NetworkKind = NetworkKind.HOST
    limits: LimitsSpec = LimitsSpec()
    cgroup: CgroupPlace = CgroupPlace.RUN


class ClientSpec(Placement):
    """The load generator and what the arm puts around it."""

    own_host: bool = False
    """The client must run on another host than the SUT, which takes a site of two hosts; else the site decides."""


class StorageSpec(Strict):
    """What the SUT's data directory lies on, and the state of the page cache when a run starts."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    kind: str = "bind"
    cache: Literal["dropped", "warmed"] = "dropped"
    """State of the data files: dropped from the page cache, or each read once."""
    copy_up: bool | None = None
    """`layer`: the data lie in an image layer, so that the first write to each file copies it up; by default, they
    lie in the writable layer."""
    size: str | None = Field(default=None, pattern=r"^[1-9]\d*[KMG]?$")
    """`tmpfs`, `block`, `claim`: size in bytes, or with K, M, G; `None`: twice the data plus 256M."""
    file_system: Literal["ext4", "xfs", "btrfs"] | None = None
    """`block`: file system on the device; `None`: ext4."""
    device: str | None = Field(default=None, pattern=r"^/dev/[^\s]+$")
    """`block`: a device that tare may overwrite, empty or labelled `tare`; `None`: a loop device."""
    sync: bool | None = None
    """`nfs`: the server writes to disk before each answer; by default, only when asked to."""
    rsize: RequestSize | None = None
    """`nfs`: largest read request, 4K to 1M; `None`: as client and server negotiate."""
    wsize: RequestSize | None = None
    """`nfs`: largest write request, 4K to 1M; `None`: as client and server negotiate."""
    storage_class: str | None = Field(default=None, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)
    """`claim`: storage class of the cluster."""


class VmSpec(Strict):
    """How QEMU provides disks and CPUs to the virtual machine of `deployment: vm` and `vm-container`."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    cache: Literal["none", "writeback", "writethrough", "directsync", "unsafe"] = "none"
    """Cache mode of the disks with data, in QEMU's terms: `none` bypasses the host's page cache."""
    aio: Literal["threads", "native", "io_uring"] = "threads"
    """Host interface by which QEMU reads and writes the disks."""
    disk: str = Field(default="16G", pattern=r"^[1-9]\d*[KMG]?$")
    """Size of each disk: bytes, or with K, M, G. A sparse file, so that only written data take space."""
    pin: bool = False
    """Pin each virtual CPU to one CPU of `limits.cpus`, in order; else each may run on any of them."""


class PodSpec(Strict):
    """A pod around a container, as kubelet, a CNI plug-in and kube-proxy make it, without Kubernetes.

    For `deployment: pod`, only QoS class and requests apply: the cluster decides everything else.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    sandbox: Literal["pause"] = "pause"
    """Holder of the pod's network and IPC namespaces: a container of its own whose program sleeps."""
    cni: Literal["bridge", "macvlan"] = "bridge"
    """CNI plug-in that attaches the pod, with host-local addresses; for the networks `pod`, `host-port`,
    `cluster-ip` and `node-port`."""
    proxy: Literal["iptables", "nftables"] = "iptables"
    """kube-proxy mode in which the rules of Services are written; for `cluster-ip` and `node-port`."""
    services: int = Field(default=1, ge=1, le=16_000)
    """Number of Services in the kernel's rules, with the SUT's in the middle; for `cluster-ip` and `node-port`."""
    qos: Qos | None = None
    """QoS class, with control groups as kubelet makes them; `None`: beside the run's other tasks."""
    cpu_request: float | None = Field(default=None, ge=0.01, le=8192)
    """CPUs requested, which determine the CPU weight; for `burstable`. `None`: as many as the limit."""
    memory_request: str | None = Field(default=None, pattern=r"^[1-9]\d*[KMG]?$")
    """Memory requested in bytes, or with K, M, G, which determines oom_score_adj; for `burstable`. `None`: as the
    limit."""


class SutSpec(Placement):
    """The database and what the arm puts around it; without a database, the workload's own program is the SUT."""

    database: str | None = None
    nodes: int = Field(default=1, ge=1, le=32)
    """Number of nodes of a cluster; each has the same placement, limits, storage and settings."""
    tls: bool = False
    """The server accepts connections over TLS only, with a certificate made for the run."""
    bind: Literal["127.0.0.1", "::1"] | None = None
    """Loopback address that a SUT on the host's network listens at; `None`: 127.0.0.1."""
    log_driver: Literal["json-file", "local", "none", "journald"] = "json-file"
    """What the engine does with the output of the SUT's container; with Podman, `json-file` is its `k8s-file`."""
    log_target: Literal["stderr", "file"] = "stderr"
    """Where the server writes its own log: its output, or a file that no engine sees."""
    storage: StorageSpec = StorageSpec()
    vm: VmSpec | None = None
    """Virtual machine of the SUT, always set in a study that was read; `None` for other deployments."""
    pod: PodSpec | None = None
    """Pod of the SUT's container; `None` for a container without a pod."""
    sysctls: Mapping[Sysctl, Annotated[str, Field(pattern=r"^[!-~ \t]+$")] | int] = Field(default_factory=dict)
    """Settings of the network namespace of a container that has its own (`net.core.somaxconn`)."""
    settings: Mapping[str, Scalar] = Field(default_factory=dict)


class MonitorSpec(Strict):
    """How one monitor watches an arm's runs."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    interval_s: Seconds | None = Field(default=None, gt=0)
    """Seconds between two samples. `None`: 1 s; for the probe ten samples a second, fewer in long runs."""
    drop_first: Count = Field(default=0, ge=0)
    """Samples at the beginning that are marked as not to be used."""
    drop_last: Count = Field(default=0, ge=0)
    """Samples at the end that are marked as not to be used."""
    optional: bool = False
    """If the host lacks the monitor, runs continue without it, and their records say so."""
    options: Mapping[str, Scalar] = Field(default_factory=dict)
    """Options specific to this monitor: docs/reference/monitors.md."""


class ArmSettings(Strict):
    """Everything that one arm fixes, after its levels have been applied to the study's template.

    `workload`: the workload's own parameters, validated and dumped; `workload_name`: its key. `monitors`: monitors
    in addition to the probe of every run; the probe too if its interval is set. `client`: `None` if the workload
    needs no database and its program is itself the SUT.
    """

    sut: SutSpec
    client: ClientSpec | None = None
    workload_name: str
    workload: Mapping[str, Any]
    monitors: Mapping[str, MonitorSpec] = Field(default_factory=dict)

    @property
    def sides(self) -> Mapping[str, Placement]:
        """`sut`, and `client` if there is one."""
        return {"sut": self.sut} if self.client is None else {"sut": self.sut, "client": self.client}


PublishedMetric = Annotated[str, Field(pattern=PUBLISHED_METRIC)]
"""A metric of publications, over all operations or of one kind: `read_latency_mean`."""
MarginMetric = Annotated[str, Field(pattern=COMPARED_METRIC)]
"""A metric that can have a margin: any that is compared."""
Margin = Annotated[float, Field(gt=0, lt=1)]
"""A relative effect that would not matter, as a fraction: 0.05 is from 1/1.05 to 1.05 times the baseline."""


MaxOverhead = Annotated[float, Field(gt=0, le=100)]
"""Highest overhead that `tare check` allows, as a fraction."""


class Published(Strict):
    """One published figure of an arm (`levels`): absolute (`value`, `unit`) and relative to the baseline."""

    levels: Mapping[str, str]
    metric: PublishedMetric
    value: float | None = None
    unit: str | None = None
    relative: float | None = None
    """Relative effect as a fraction: -0.69 for -69 %. By default derived from `value` and the baseline's
    `value`."""
    where: str
    """Page, table or section of the source."""


class Arm(Strict):
    """One combination of levels. `name` is unique in the study."""

    model_config = ConfigDict(serialize_by_alias=True)

    name: str
    levels: Mapping[str, str]
    placed: ArmSettings | None = Field(alias="settings")
    """`None` for imported arms, whose surroundings are unknown."""
    control: bool = False
    """A second instance of the baseline: any difference from the baseline is noise of the machine."""

    @property
    def settings(self) -> ArmSettings:
        """The settings of an arm that tare runs. Raises `StudyError` for an imported arm."""
        if self.placed is None:
            raise StudyError(f"arm {self.name!r} was imported: it cannot be run", hint="`tare report` shows it")
        return self.placed

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Arm:
        """Copy as pydantic does, and accept `settings` by that name."""
        named = {"placed" if key == "settings" else key: value for key, value in (update or {}).items()}
        return super().model_copy(update=named, deep=deep)


class Imported(Strict):
    """Source of results that others measured. `files`: how many files `parser` read.

    `primary`: the metric that reports answer by, where the results have no throughput.
    """

    origin: str
    parser: str
    files: int
    primary: PublishedMetric = "throughput"


class NamedFile(Strict):
    """Content of a file that a study names. `text`: `None` if it is long, or no text."""

    sha256: str
    text: str | None = None


class Study(Strict):
    """A study at one scale: every arm resolved, every name known to a plug-in."""

    name: Name
    scale: str
    question: str
    source: Source | None
    arms: tuple[Arm, ...]
    baseline: str
    """Name of the baseline arm; if there are several, of the first."""
    baseline_levels: Mapping[str, str] = Field(default_factory=dict)
    """Levels that make an arm a baseline: each arm is compared with the arm that has these and otherwise its own
    levels.

    Empty if all arms share one baseline.
    """
    factors: Mapping[str, tuple[str, ...]]
    """Factor → its levels."""
    varies: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Factor → dotted keys that its levels vary; in all other keys, arms must be alike."""
    protocol: ProtocolSpec
    published: tuple[Published, ...]
    quantities: Quantities | None = None
    """Quantities that the source defines and reports."""
    margins: Mapping[MarginMetric, Margin] = Field(default_factory=dict)
    """Metric → effect that would not matter; a metric without a margin gets no verdict."""
    max_overhead: Mapping[MarginMetric, MaxOverhead] = Field(default_factory=dict)
    """Metric → highest overhead that `tare check` allows; what has no limit is not checked."""
    deviations: tuple[str, ...]
    """How this study differs from the published one, in sentences (the scale's own included)."""
    text: str
    """Text of the study file, kept with the results."""
    conditions: tuple[str, ...] = ()
    """Factors whose levels are constant within a block and vary between blocks."""
    strata: tuple[str, ...] = ()
    """Conditions by whose levels findings are also shown separately."""
    stages: str | None = None
    """Factor whose levels follow each other on one server and its data; `None`: each arm has its own server."""
    published_by: PublishedBy | None = None
    """The publication's own method for its figures, shown beside tare's."""
    disk_bound: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Factor → levels of arms whose rate the disk is meant to limit; empty: no arm."""
    imported: Imported | None = None
    """Set for results that others measured."""
    files: Mapping[str, NamedFile] = Field(default_factory=dict)
    """Files that the arms name (recipes with the files that they add, seccomp profiles), by absolute path."""

    def is_disk_bound(self, name: str) -> bool:
        """Whether the disk is meant to limit the rate of an arm."""
        arm = next(arm for arm in self.arms if arm.name == name)
        return bool(self.disk_bound) and all(arm.levels[key] in some for key, some in self.disk_bound.items())

    def baseline_of(self, name: str) -> str:
        """Return the name of the arm that an arm is compared with; a baseline is its own."""
        arm = next((arm for arm in self.arms if arm.name == name and not arm.control), None)
        if arm is None or not self.baseline_levels:
            return self.baseline
        wanted = {**arm.levels, **self.baseline_levels}
        return next(other.name for other in self.arms if not other.control and dict(other.levels) == wanted)
