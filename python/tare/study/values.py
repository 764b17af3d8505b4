"""Values that studies write: the strict base model, networks, control groups, CPU lists and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


class Strict(BaseModel):
    """Frozen, and no key that nobody reads."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class NetworkKind(StrEnum):
    """How a task is attached, and so how a client on the same host reaches it."""

    HOST = "host"
    """The host's network namespace; listens on 127.0.0.1."""
    BRIDGE = "bridge"
    """A namespace of its own on tare's bridge; reached by its own address."""
    PUBLISHED_LOOPBACK = "published-loopback"
    """As `bridge`, and a port published on 127.0.0.1."""
    PUBLISHED_ADDRESS = "published-address"
    """As `bridge`, and a port published on the host's own address on that bridge."""
    SHARED = "shared"
    """The namespace of another instance (a client in the SUT's)."""
    USER = "user"
    """A virtual machine on QEMU's own network stack, its port forwarded from 127.0.0.1."""
    TAP = "tap"
    """A virtual machine on a bridge of the run's own; reached by its own address."""
    MACVLAN = "macvlan"
    """A namespace with an IP and a link-layer address of its own on the measured network between two hosts."""
    IPVLAN = "ipvlan"
    """The same with its host's link-layer address."""
    ROOTLESSPORT = "rootlessport"
    """Of rootless Podman: out by slirp4netns, a port on 127.0.0.1 by RootlessKit's port driver."""
    SLIRP4NETNS = "slirp4netns"
    """Of rootless Podman: the same, with the port by slirp4netns itself."""
    PASTA = "pasta"
    """Of rootless Podman: both by pasta."""
    POD = "pod"
    """Of a pod, attached by a CNI plug-in; reached by its own address."""
    HOST_PORT = "host-port"
    """As `pod`, and a port that CNI's portmap publishes on the node's address."""
    CLUSTER_IP = "cluster-ip"
    """As `pod`, behind a Service's own address, by rules as kube-proxy writes them."""
    NODE_PORT = "node-port"
    """The same behind a port of the node's address."""


OWN_ADDRESS = frozenset({NetworkKind.MACVLAN, NetworkKind.IPVLAN})
"""Of a container that other hosts find by an address of its own on their network; its own host never does."""
ROOTLESS_NETWORKS = frozenset({NetworkKind.ROOTLESSPORT, NetworkKind.SLIRP4NETNS, NetworkKind.PASTA})
"""What a user may have an engine make without root."""
SERVICE_NETWORKS = frozenset({NetworkKind.CLUSTER_IP, NetworkKind.NODE_PORT})
"""Of a pod behind a Service."""
POD_NETWORKS = SERVICE_NETWORKS | {NetworkKind.POD, NetworkKind.HOST_PORT}
"""What CNI plug-ins make."""


class Qos(StrEnum):
    """kubelet's classes of service, by what a pod requests and what limits it."""

    BEST_EFFORT = "best-effort"
    """Neither."""
    BURSTABLE = "burstable"
    """Anything between."""
    GUARANTEED = "guaranteed"
    """Both, of CPU and memory, and as much of one as of the other."""


class CgroupPlace(StrEnum):
    """In which control group a task stands."""

    RUN = "run"
    """One of its own below the run's, beside all other tasks of the run."""
    ROOT = "root"
    """The root of every hierarchy, as a program started by hand; bare tasks only, and without limits."""


EngineName = Literal["docker", "podman", "podman-rootless"]
"""Engines that a study may name."""

LONGEST_S = 366 * 24 * 3600.0
"""The longest duration that a study may ask for: a year."""
MOST = 10**12
"""The largest count that a study may ask for; more is a slip of the keyboard, and breaks arithmetic later."""

Seconds = Annotated[float, Field(le=LONGEST_S)]
Count = Annotated[int, Field(le=MOST)]

_LAST_CPU = 8191
"""Linux is built for 8192 CPUs at most (NR_CPUS in arch/x86/Kconfig)."""
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size_bytes(text: str) -> int:
    """`"512M"` → 536870912."""
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1] in _UNITS else int(text)


def cpu_set(text: str) -> frozenset[int]:
    """A CPU list as in cpuset.cpus: `"0-1,3"` → {0, 1, 3}."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def _cpus_can_be(cpus: str) -> str:
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        if int(last or first) < int(first):
            raise ValueError(f"{part!r} ends before it begins")
        if int(last or first) > _LAST_CPU:
            raise ValueError(f"no machine has a CPU {last or first}")
    return cpus


_REQUEST_BYTES = range(4 << 10, (1 << 20) + 1, 4 << 10)
"""Whole pages, up to what the kernel's NFS client takes (include/linux/nfs_xdr.h, NFS_MAX_FILE_IO_SIZE)."""


def _can_be_one_request(size: str) -> str:
    if size_bytes(size) not in _REQUEST_BYTES:
        raise ValueError(f"must be a multiple of 4K, at most 1M, got {size!r}")
    return size


CpuList = Annotated[str, Field(pattern=r"^\d+(-\d+)?(,\d+(-\d+)?)*$"), AfterValidator(_cpus_can_be)]
"""A CPU list such as `"0-1,3"`."""

RequestSize = Annotated[str, Field(pattern=r"^[1-9]\d*[KM]?$"), AfterValidator(_can_be_one_request)]
"""What a request to an NFS server may carry, such as `"64K"`."""


PublishedBy = Literal["relative-change-of-averages", "min-max-mean"]
"""How a publication comes to its figures; `min-max-mean`: these of its repetitions, with the standard deviation."""

QuantityName = Literal["e_ovh", "cpu_ovh", "io_ovh_r", "io_ovh_w"]


class PublishedRange(Strict):
    """Between which values a source found a quantity, as fractions: 0.1 is 10 %. `when`: under which condition."""

    low: float = Field(ge=0, le=MOST)
    high: float = Field(ge=0, le=MOST)
    when: str | None = Field(default=None, pattern=r"\S")
    where: str = Field(pattern=r"\S")

    @model_validator(mode="after")
    def _in_order(self) -> PublishedRange:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Quantities(Strict):
    """What a source reports by definitions of its own, shown beside tare's estimates.

    `wanted`: quantity → the published ranges. A tool's view is of one sample each `every_s` seconds, the first and
    the last `trim` of each run dropped.
    """

    every_s: Seconds = Field(default=1.0, gt=0)
    trim: Count = Field(default=5, ge=0)
    wanted: Mapping[QuantityName, tuple[PublishedRange, ...]] = Field(min_length=1)
