"""Values in study files: the strict base model, networks, control groups, CPU lists and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


class Strict(BaseModel):
    """Frozen model that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class NetworkKind(StrEnum):
    """How a task is attached to a network, and so how a client on the same host reaches it."""

    HOST = "host"
    """The host's network namespace; listens on 127.0.0.1."""
    BRIDGE = "bridge"
    """A namespace of its own on tare's bridge; reached at its own address."""
    PUBLISHED_LOOPBACK = "published-loopback"
    """Like `bridge`, with a port published on 127.0.0.1."""
    PUBLISHED_ADDRESS = "published-address"
    """Like `bridge`, with a port published on the host's own address on that bridge."""
    SOCKET = "socket"
    """The host's network namespace; the client connects to a Unix socket in a directory that both sides see."""
    SHARED = "shared"
    """The namespace of another instance (a client in the SUT's)."""
    USER = "user"
    """A virtual machine on QEMU's user-mode network, with its port forwarded from 127.0.0.1."""
    TAP = "tap"
    """A virtual machine on a bridge of the run's own; reached at its own address."""
    MACVLAN = "macvlan"
    """A namespace with an IP and a link-layer address of its own on the measured network between two hosts."""
    IPVLAN = "ipvlan"
    """Like `macvlan`, with its host's link-layer address."""
    ROOTLESSPORT = "rootlessport"
    """Rootless Podman: outgoing by slirp4netns, with a port on 127.0.0.1 by RootlessKit's port driver."""
    SLIRP4NETNS = "slirp4netns"
    """Rootless Podman: outgoing by slirp4netns, which also forwards the port."""
    PASTA = "pasta"
    """Rootless Podman: pasta carries outgoing traffic and forwards the port."""
    UNTRACKED = "untracked"
    """For bare: a network namespace with a loopback device only, without rules and connection tracking."""
    POD = "pod"
    """A pod attached by a CNI plug-in; reached at its own address."""
    HOST_PORT = "host-port"
    """Like `pod`, with a port that CNI's portmap publishes on the node's address."""
    CLUSTER_IP = "cluster-ip"
    """Like `pod`, behind a Service's own address, with the rules that kube-proxy writes."""
    NODE_PORT = "node-port"
    """Like `cluster-ip`, behind a port of the node's address."""


IN_HOST = frozenset({NetworkKind.HOST, NetworkKind.SOCKET})
"""Networks of a SUT in its host's network namespace."""
OWN_ADDRESS = frozenset({NetworkKind.MACVLAN, NetworkKind.IPVLAN})
"""Networks that give a container an address for other hosts; its own host never reaches it there."""
ROOTLESS_NETWORKS = frozenset({NetworkKind.ROOTLESSPORT, NetworkKind.SLIRP4NETNS, NetworkKind.PASTA})
"""Networks that an engine makes for a user without root."""
SERVICE_NETWORKS = frozenset({NetworkKind.CLUSTER_IP, NetworkKind.NODE_PORT})
"""Networks of a pod behind a Service."""
POD_NETWORKS = SERVICE_NETWORKS | {NetworkKind.POD, NetworkKind.HOST_PORT}
"""Networks that CNI plug-ins make."""


class Qos(StrEnum):
    """kubelet's QoS classes, determined by a pod's requests and limits."""

    BEST_EFFORT = "best-effort"
    """No requests and no limits."""
    BURSTABLE = "burstable"
    """Anything between the other two."""
    GUARANTEED = "guaranteed"
    """Requests and limits of CPU and memory, equal to each other."""


class CgroupPlace(StrEnum):
    """The control group of a task."""

    RUN = "run"
    """A group of its own below the run's, beside all other tasks of the run."""
    ROOT = "root"
    """The root of every hierarchy, as for a program started by hand; bare tasks only, and without limits."""


EngineName = Literal["docker", "podman", "podman-rootless"]
"""Engines that a study may name."""

LONGEST_S = 366 * 24 * 3600.0
"""The longest duration that a study may ask for: a year."""
MOST = 10**12
"""The largest count that a study may ask for; more is a typing error, and breaks arithmetic later."""

Seconds = Annotated[float, Field(le=LONGEST_S)]
Count = Annotated[int, Field(le=MOST)]

_LAST_CPU = 8191
"""Linux supports 8192 CPUs at most (NR_CPUS in arch/x86/Kconfig)."""
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size_bytes(text: str) -> int:
    """Convert a size to bytes: `"512M"` → 536870912."""
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1] in _UNITS else int(text)


def cpu_set(text: str) -> frozenset[int]:
    """Parse a CPU list as in cpuset.cpus: `"0-1,3"` → {0, 1, 3}."""
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
"""Whole pages, up to the limit of the kernel's NFS client (include/linux/nfs_xdr.h, NFS_MAX_FILE_IO_SIZE)."""


def _can_be_one_request(size: str) -> str:
    if size_bytes(size) not in _REQUEST_BYTES:
        raise ValueError(f"must be a multiple of 4K, at most 1M, got {size!r}")
    return size


CpuList = Annotated[str, Field(pattern=r"^\d+(-\d+)?(,\d+(-\d+)?)*$"), AfterValidator(_cpus_can_be)]
"""A CPU list such as `"0-1,3"`."""

RequestSize = Annotated[str, Field(pattern=r"^[1-9]\d*[KM]?$"), AfterValidator(_can_be_one_request)]
"""Size of a request to an NFS server, such as `"64K"`."""


PublishedBy = Literal["relative-change-of-averages", "min-max-mean"]
"""A publication's method for its figures; `min-max-mean`: of its repetitions, with the standard deviation."""

QuantityName = Literal["e_ovh", "cpu_ovh", "io_ovh_r", "io_ovh_w"]


class PublishedRange(Strict):
    """Range that a source reports for a quantity, as fractions: 0.1 is 10 %. `when`: under which condition."""

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
    """Quantities that a source defines and reports, shown beside tare's estimates.

    `wanted`: quantity → the published ranges. A tool's figure is from one sample every `every_s` seconds, without
    the first and the last `trim` samples of each run.
    """

    every_s: Seconds = Field(default=1.0, gt=0)
    trim: Count = Field(default=5, ge=0)
    wanted: Mapping[QuantityName, tuple[PublishedRange, ...]] = Field(min_length=1)
