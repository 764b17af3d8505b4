"""What a record keeps of a program's container in containerd, of its pod, and of its virtual machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, final

from pydantic import AliasChoices, Field


def _earlier(own: str, earlier: str) -> AliasChoices:
    """Name a field, and its key in earlier records."""
    return AliasChoices(own, earlier)


@final
@dataclass(frozen=True, slots=True)
class ContainerdFacts:
    """A container that containerd itself made."""

    shim: str | None = None
    """Program of its shim, from the shim's command line, as are the next two."""
    namespace: str | None = None
    """Its namespace in containerd."""
    socket: str | None = None
    """Socket of its containerd."""
    snapshotter: str | None = None
    """What makes its root."""
    containerd: str | None = None
    """Version of containerd."""
    runtime: str | None = None
    """Version of the OCI runtime."""
    interface: str | None = None
    """Kind of the interface that CNI put into its network namespace; `null` without one."""


@final
@dataclass(frozen=True, slots=True)
class PodFacts:
    """The pod of a container; of a cluster's pod by the API's word, else by the kernel's."""

    held_by_sandbox: Annotated[
        str | None, Field(validation_alias=_earlier("held_by_sandbox", "held by the sandbox"))
    ] = None
    """Kinds of namespaces that it shares with its sandbox."""
    interface: str | None = None
    """Kind of the interface in its network namespace."""
    proxy: str | None = None
    """What wrote the rules of Services, with its version."""
    services: int | None = None
    """Services in the kernel's rules."""
    rules: int | None = None
    """Rules for them."""
    qos: str | None = None
    """QoS class."""
    kubelet_oom_score_adj: Annotated[
        int | None, Field(validation_alias=_earlier("kubelet_oom_score_adj", "kubelet's oom_score_adj"))
    ] = None
    """`oom_score_adj` that kubelet would give it."""
    node: str | None = None
    """Its node; `null` without a cluster."""
    kubelet: str | None = None
    """Version of kubelet."""
    runtime: str | None = None
    """Container runtime of the node, with its version."""
    cpu_manager: Annotated[str | None, Field(validation_alias=_earlier("cpu_manager", "cpu manager"))] = None
    """CPU policy of kubelet."""
    storage_class: Annotated[str | None, Field(validation_alias=_earlier("storage_class", "storage class"))] = None
    """Storage classes of the claims for its volumes."""


@final
@dataclass(frozen=True, slots=True)
class GuestClock:
    """A virtual machine's uptime, read between two moments of its host's CLOCK_MONOTONIC."""

    uptime_s: float
    """Its uptime."""
    from_ns: int
    """The moment before."""
    to_ns: int
    """The moment after."""


@final
@dataclass(frozen=True, slots=True)
class GuestContainer:
    """A container in a virtual machine."""

    runtime: str | None = None
    """OCI runtime, with its version."""
    namespaces: tuple[str, ...] = ()
    """Kinds of its own namespaces."""
    root: str | None = None
    """File system of its root."""
    cgroup: str | None = None
    """Its control group in the machine."""
    network: str | None = None
    """`host` or `own`: the network namespace."""


@final
@dataclass(frozen=True, slots=True)
class GuestFacts:
    """The virtual machine around a program."""

    accelerator: str | None = None
    """`kvm` or `tcg`."""
    why_not_kvm: str | None = None
    """Why the CPU is emulated; else `null`."""
    kernel: str | None = None
    """Package of its kernel."""
    clock: GuestClock | None = None
    """Its uptime on its host's clock."""
    cpus: str | None = None
    """CPUs online in it."""
    memory_bytes: int | None = None
    """Its memory, as its kernel has it."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """As `mounts`, in the machine."""
    disk_files: Mapping[str, str] = field(default_factory=dict)
    """Mount point inside → file system of the host on which the disk's file lies."""
    disk_cache: str | None = None
    """Cache mode of all its data disks; `null` if they differ."""
    disk_aio: str | None = None
    """How QEMU reads and writes them."""
    cpu_threads: tuple[str | None, ...] | None = None
    """CPUs that the thread of each virtual CPU may use."""
    container: GuestContainer | None = None
    """The container in it, if the program is in one."""


def known(part: ContainerdFacts | PodFacts | GuestFacts | GuestContainer) -> Mapping[str, object]:
    """Return the fields of a part that are known, by name."""
    values = ((each.name, getattr(part, each.name)) for each in fields(part))
    return {name: value for name, value in values if value is not None}
