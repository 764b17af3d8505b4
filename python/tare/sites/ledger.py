"""The ledger: everything that tare makes on a host is noted here before it is made, and deleted when it is gone.

`tare clean` and a resumed run rely on it. An entry says where to look; what is removed must bear tare's mark
(marks.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from tare.sites import Host, Process
from tare.sites.process import to_ident


class Kind(StrEnum):
    """Kinds of resources, in the order of removal: users before the resources that they use.

    From `ADDRESS` on, they are resources of a cloud: only the ledger of rentals (`sites/cloud/`) lists them.
    """

    NAMESPACE = "namespace"
    CONTAINER = "container"
    PROCESS = "process"
    CONTAINERD = "containerd container"
    CGROUP = "cgroup"
    MOUNT = "mount"
    SERVER = "server"
    RULES = "rules"
    LINK = "link"
    NETWORK = "network"
    VOLUME = "volume"
    PATH = "path"
    IMAGE = "image"
    NODE_IMAGE = "node image"
    ADDRESS = "address"
    MACHINE = "machine"
    DISK = "disk"
    PORT = "port"
    FIREWALL = "firewall"
    PLACEMENT = "placement group"


@dataclass(frozen=True)
class Made:
    """One resource that tare made.

    `ident`: name of a container, network, volume, interface or image; path below the cgroup root; absolute path;
    "pid:started_ticks:boot_id" of a process; "iptables:TAG", "nftables:TAG" or "cni:TASK" of rules. A process that
    a mount depends on is a `server`. For a cluster: "NAME@UID" with the uid of its namespace `kube-system`; for a
    container that containerd itself made: "NAME@SOCKET"; for an image in a containerd: "NAME@SOCKET", followed by
    "#NAMESPACE" unless it is kubelet's. `keep`: caches (images, snapshots), which outlive the process that made
    them.
    """

    kind: Kind
    ident: str
    host: str
    owner: Process
    """The tare process that made the resource."""
    keep: bool = False
    why_left: str | None = field(default=None, compare=False)
    """Why the agent of a host could not remove the resource, in the agent's words."""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.ident} on {self.host}"

    def listed(self) -> str:
        """Text for lists, with the agent's reason why the resource still exists, if it gave one."""
        return f"{self} (its agent could not remove it: {self.why_left})" if self.why_left else str(self)


class Ledger(Protocol):
    """Durable at once: an entry is on disk before the call returns."""

    def note(self, kind: Kind, ident: str, *, host: str = "local", keep: bool = False) -> None:
        """Note that this process is about to make a resource."""
        ...

    def forget(self, kind: Kind, ident: str, *, host: str = "local") -> None:
        """Delete the entry of a resource that is verified to be gone."""
        ...

    def entries(self) -> tuple[Made, ...]:
        """All entries, in the order of removal."""
        ...

    def home(self, host: str) -> str:
        """Home on a host in which the ledger of that host lies: its entries speak for no other home."""
        ...

    def owner_on(self, host: str) -> Process:
        """The owner of what this process notes for a host; the marks of what it then makes there name it."""
        ...

    def abandoned(self) -> tuple[Made, ...]:
        """Entries without `keep` whose owner is dead."""
        ...


def noting(ledger: Ledger, host: Host) -> Callable[[Process], None]:
    """`announce` for `Host.start`: notes the process in the ledger before its program begins."""
    return lambda process: ledger.note(Kind.PROCESS, to_ident(process), host=host.name)
