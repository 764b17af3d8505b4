"""The study: a question with its factors, workload and protocol, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from tare.errors import StudyError
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


class Source(Strict):
    """The publication that a study replays."""

    title: str
    authors: str
    year: int
    url: str


_LEAST_MEMORY_BYTES = 6 << 20  # Docker starts no container below it (`linuxMinMemory` in its daemon)


class LimitsSpec(Strict):
    """Limits of one side. `memory`: bytes, or with K, M, G (powers of 1024). `cpu_weight`: 100 is the kernel's own.

    `disk_iops`: reads, and as many writes, a second on each disk of the host.
    """

    cpus: CpuList | None = None
    cpu_quota: float | None = Field(
        default=None, ge=0.01, le=8192
    )  # 1 ms of a period of 100 ms: the kernel's least
    cpu_weight: int | None = Field(default=None, ge=1, le=10_000)
    memory: str | None = Field(default=None, pattern=r"^[1-9]\d*[KMG]?$")
    nofile: int = Field(default=65536, gt=0, le=1 << 30)
    disk_iops: Count | None = Field(default=None, gt=0)

    @property
    def in_cgroups(self) -> bool:
        """Whether any of them is one that a control group holds."""
        return any(
            limit is not None for limit in (self.cpus, self.cpu_quota, self.cpu_weight, self.memory, self.disk_iops)
        )

    @field_validator("memory")
    @classmethod
    def _memory_can_be(cls, memory: str | None) -> str | None:
        if memory is not None and size_bytes(memory) < _LEAST_MEMORY_BYTES:
            raise ValueError(f"must be at least 6M, got {memory!r}")
        return memory


class ConfinementSpec(Strict):
    """What a container's program may not do; `default` is as its engine has it."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    seccomp: Annotated[str, Field(pattern=r"^(default|unconfined|/\S+)$")] = "default"
    """The filter of system calls: the engine's, none, or a JSON profile of the host by its absolute path."""
    capabilities: Literal["default", "all", "none"] = "default"
    """Of which a program that is not root makes use only through files that have them."""
    no_new_privileges: bool = False
    """No program gains rights by what it executes: no set-user-ID, no capabilities of files."""


class Placement(Strict):
    """Where one side of the benchmark runs."""

    image: str
    """`NAME` (a recipe), `docker://REF`, `oci:PATH` or `tar:PATH`."""
    deployment: str
    engine: EngineName | None = None
    """Of containers; `None`: the one that answers at DOCKER_HOST, else Docker's."""
    runtime: Name | None = None
    """Of containers: the OCI runtime by the engine's name for it; `None`: the engine's default."""
    confinement: ConfinementSpec = ConfinementSpec()
    network: NetworkKind = NetworkKind.HOST
    limits: LimitsSpec = LimitsSpec()
    cgroup: CgroupPlace = CgroupPlace.RUN


class ClientSpec(Placement):
    """The load generator and what the arm puts around it."""

    own_host: bool = False
    """It must stand on another host than the SUT, so that a site of two is needed; else where the site has it."""


class StorageSpec(Strict):
    """On what the SUT's data directory lies, and the page cache's state when a run begins."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    kind: str = "bind"
    cache: Literal["dropped", "warmed"] = "dropped"
    """Of the data files: out of the page cache, or each read once."""
    copy_up: bool | None = None
    """`layer`: the data stand in a layer of the image, so that the first write to each file copies it up; else they
    are in the writable layer already, as without a word."""
    size: str | None = Field(default=None, pattern=r"^[1-9]\d*[KMG]?$")
    """`tmpfs`, `block`, `claim`: bytes, or with K, M, G; `None`: twice the data and 256M."""
    file_system: Literal["ext4", "xfs", "btrfs"] | None = None
    """`block`: what is made on it; `None`: ext4."""
    device: str | None = Field(default=None, pattern=r"^/dev/[^\s]+$")
    """`block`: a device that tare may write over, empty or labelled `tare`; `None`: a loop device."""
    sync: bool | None = None
    """`nfs`: the server has each write on disk before it answers; else when it is asked to, as without a word."""
    rsize: RequestSize | None = None
    """`nfs`: the most that one request reads, 4K to 1M; `None`: as client and server agree."""
    wsize: RequestSize | None = None
    """`nfs`: the same of one that writes."""
    storage_class: str | None = Field(default=None, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)
    """`claim`: the cluster's class of volumes."""


class VmSpec(Strict):
    """Of `deployment: vm` and `vm-container`: how QEMU is to give the machine its disks and CPUs."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    cache: Literal["none", "writeback", "writethrough", "directsync", "unsafe"] = "none"
    """Of the disks with data, in QEMU's words: `none` goes past the host's page cache."""
    aio: Literal["threads", "native", "io_uring"] = "threads"
    """By which of the host's interfaces QEMU reads and writes them."""
    disk: str = Field(default="16G", pattern=r"^[1-9]\d*[KMG]?$")
    """Size of each: bytes, or with K, M, G. A file with holes, so that only what is written takes room."""
    pin: bool = False
    """Each virtual CPU on one CPU of `limits.cpus`, in order; else on any of them."""


class PodSpec(Strict):
    """Of a container in a pod, as kubelet, a CNI plug-in and kube-proxy make it, without Kubernetes.

    Of `deployment: pod` only class of service and requests: the cluster decides all else.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    sandbox: Literal["pause"] = "pause"
    """What holds the pod's network and IPC namespaces: a container of its own, whose program sleeps."""
    cni: Literal["bridge", "macvlan"] = "bridge"
    """The plug-in that attaches it, with addresses by host-local; of the networks `pod`, `host-port`, `cluster-ip`
    and `node-port`."""
    proxy: Literal["iptables", "nftables"] = "iptables"
    """In which of kube-proxy's modes the rules of Services are written; of `cluster-ip` and `node-port`."""
    services: int = Field(default=1, ge=1, le=16_000)
    """How many Services the kernel's rules hold, the SUT's in their midst; of the same two."""
    qos: Qos | None = None
    """Control groups as kubelet makes them for this class; `None`: beside the run's other tasks."""
    cpu_request: float | None = Field(default=None, ge=0.01, le=8192)
    """CPUs, from which the weight follows; of `burstable`. `None`: as much as the limit."""
    memory_request: str | None = Field(default=None, pattern=r"^[1-9]\d*[KMG]?$")
    """Bytes, or with K, M, G, from which oom_score_adj follows; of `burstable`. `None`: as much as the limit."""


class SutSpec(Placement):
    """The database and what the arm puts around it; without one, the workload's own program is the SUT."""

    database: str | None = None
    nodes: int = Field(default=1, ge=1, le=32)
    """Of a cluster; each has the placement, limits, storage and settings that are said here."""
    tls: bool = False
    """The server speaks with its client over TLS alone, with a certificate that is made for the run."""
    storage: StorageSpec = StorageSpec()
    vm: VmSpec | None = None
    """Of a virtual machine, which a study that is read always has; `None` elsewhere."""
    pod: PodSpec | None = None
    """Of a container that stands in a pod; `None` of one that is alone."""
    settings: Mapping[str, Scalar] = Field(default_factory=dict)


class MonitorSpec(Strict):
    """How one monitor watches an arm's runs."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    interval_s: Seconds | None = Field(default=None, gt=0)
    """Between two samples. `None`: 1 s; of the probe ten a second, fewer in long runs."""
    drop_first: Count = Field(default=0, ge=0)
    """Samples at the beginning that are marked as not to be used."""
    drop_last: Count = Field(default=0, ge=0)
    """The same at the end."""
    optional: bool = False
    """Where the host lacks it, runs go on without, and their records say so."""
    options: Mapping[str, Scalar] = Field(default_factory=dict)
    """What only this monitor knows: docs/reference/monitors.md."""


class ArmSettings(Strict):
    """Everything that one arm fixes, after its levels have been applied to the study's template.

    `workload` is the workload's own parameter model, validated and dumped; `workload_name` its key. `monitors`:
    beside the probe, which every run has; the probe too where its interval is set.
    `client`: `None` where the workload needs no database, and its program is itself the SUT.
    """

    sut: SutSpec
    client: ClientSpec | None = None
    workload_name: str
    workload: Mapping[str, Any]
    monitors: Mapping[str, MonitorSpec] = Field(default_factory=dict)

    @property
    def sides(self) -> Mapping[str, Placement]:
        """`sut`, and `client` where there is one."""
        return {"sut": self.sut} if self.client is None else {"sut": self.sut, "client": self.client}


_LATENCY = r"([a-z][a-z0-9-]*_)?latency_(mean|p50|p95|p99)"
PUBLISHED_METRIC = rf"^(throughput|{_LATENCY})$"
PublishedMetric = Annotated[str, Field(pattern=PUBLISHED_METRIC)]
"""A metric that publications tell of: of all operations together, or of one kind: `read_latency_mean`."""
PER_OPERATION = ("cpu_per_operation", "io_per_operation")
"""Metrics that are no latency, beside the throughput: of `analyze.metrics.METRICS`, which a study cannot import."""
MARGIN_METRIC = rf"^(throughput|{'|'.join(PER_OPERATION)}|{_LATENCY})$"
MarginMetric = Annotated[str, Field(pattern=MARGIN_METRIC)]
"""A metric that may have a margin: any that is compared, `analyze.metrics.metric_named`."""
Margin = Annotated[float, Field(gt=0, lt=1)]
"""A relative effect that would not matter, a fraction: 0.05 is from 1/1.05 to 1.05 times the baseline."""


class Published(Strict):
    """One published figure: of an arm (`levels`), absolute (`value`, `unit`) and relative to the baseline."""

    levels: Mapping[str, str]
    metric: PublishedMetric
    value: float | None = None
    unit: str | None = None
    relative: float | None = None
    """A fraction: -0.69 for -69 %. Where absent it is derived from `value` and the baseline's `value`."""
    where: str
    """Page, table or section of the source."""


class Arm(Strict):
    """One combination of levels. `name` is unique in the study."""

    model_config = ConfigDict(serialize_by_alias=True)

    name: str
    levels: Mapping[str, str]
    placed: ArmSettings | None = Field(alias="settings")
    """`None` where somebody else ran it, so that nothing is known of what was around it."""
    control: bool = False
    """A second instance of the baseline: what it differs from the baseline is what the machine makes up."""

    @property
    def settings(self) -> ArmSettings:
        """The settings of an arm that tare runs; `StudyError` for one that was imported."""
        if self.placed is None:
            raise StudyError(f"arm {self.name!r} was imported: it cannot be run", hint="`tare report` shows it")
        return self.placed

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Arm:
        """As pydantic's, with `settings` by that name too."""
        named = {"placed" if key == "settings" else key: value for key, value in (update or {}).items()}
        return super().model_copy(update=named, deep=deep)


class Imported(Strict):
    """Where results come from that somebody else has measured. `files`: how many were read, by which `parser`."""

    origin: str
    parser: str
    files: int


class Study(Strict):
    """A study at one scale: every arm resolved, every name known to a plug-in."""

    name: Name
    scale: str
    question: str
    source: Source | None
    arms: tuple[Arm, ...]
    baseline: str
    """Name of the baseline arm; of the first one where there are several."""
    baseline_levels: Mapping[str, str] = Field(default_factory=dict)
    """Levels that make an arm a baseline: each arm is compared with the one that has these and else its own.

    Empty where there is one baseline for all arms.
    """
    factors: Mapping[str, tuple[str, ...]]
    """Factor → its levels."""
    varies: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Factor → the dotted keys in which its levels are meant to differ; in all others arms must be alike."""
    protocol: ProtocolSpec
    published: tuple[Published, ...]
    quantities: Quantities | None = None
    """What the source reports by definitions of its own."""
    margins: Mapping[MarginMetric, Margin] = Field(default_factory=dict)
    """Metric → the effect that would not matter; what has none gets no verdict."""
    deviations: tuple[str, ...]
    """In what this study differs from the published one, sentence by sentence (the scale's own included)."""
    text: str
    """The study file as it was read, kept with the results."""
    conditions: tuple[str, ...] = ()
    """Factors whose levels are the same in all runs of a block and differ from block to block."""
    strata: tuple[str, ...] = ()
    """Those conditions by whose levels findings are shown separately as well."""
    stages: str | None = None
    """The factor whose levels follow each other on one server and its data; `None`: each arm has its own."""
    published_by: PublishedBy | None = None
    """The publication's own way to its figures, which is then followed beside tare's."""
    disk_bound: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Factor → levels of arms whose rate the disk is meant to set; empty: of none."""
    imported: Imported | None = None
    """Set where somebody else ran it."""

    def is_disk_bound(self, name: str) -> bool:
        """Whether the disk is meant to set the rate of an arm."""
        arm = next(arm for arm in self.arms if arm.name == name)
        return bool(self.disk_bound) and all(arm.levels[key] in some for key, some in self.disk_bound.items())

    def baseline_of(self, name: str) -> str:
        """The arm that an arm is compared with; a baseline's is itself."""
        arm = next((arm for arm in self.arms if arm.name == name and not arm.control), None)
        if arm is None or not self.baseline_levels:
            return self.baseline
        wanted = {**arm.levels, **self.baseline_levels}
        return next(other.name for other in self.arms if not other.control and dict(other.levels) == wanted)
