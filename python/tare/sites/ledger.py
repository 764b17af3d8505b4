"""The ledger: everything tare makes on a host is written here before it is made, and struck out when it is gone.

It is what `tare clean` and a resumed run go by; nothing is ever found by the pattern of its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from tare.sites import Host, Process
from tare.sites.process import to_ident


class Kind(StrEnum):
    """What can be made. The order is the order of removal: users before what they use.

    From `ADDRESS` on, things from a cloud: only the ledger of rentals (`sites/cloud/`) lists them.
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
    """One thing that tare made.

    `ident`: container, network, volume, interface or image name, path below the cgroup root, absolute path,
    "pid:started_ticks:boot_id" of a process, or "iptables:TAG", "nftables:TAG", "cni:TASK" of rules; a process that
    a mount lives on is a `server`; of a cluster, "NAME@UID" with the uid of its namespace `kube-system`; of a
    container that containerd itself made, "NAME@SOCKET"; of an image in a containerd, "NAME@SOCKET", with
    "#NAMESPACE" where that is not kubelet's. `keep`: caches (images, snapshots), which outlive the process that
    made them.
    """

    kind: Kind
    ident: str
    host: str
    owner: Process
    """The tare process that made it."""
    keep: bool = False
    why_left: str | None = field(default=None, compare=False)
    """Why the agent of a host could not remove it, in the agent's words."""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.ident} on {self.host}"

    def listed(self) -> str:
        """With the reason why it is still there, where its agent gave one."""
        return f"{self} (its agent could not remove it: {self.why_left})" if self.why_left else str(self)


class Ledger(Protocol):
    """Durable at once: a line is on disk before the call returns."""

    def note(self, kind: Kind, ident: str, *, host: str = "local", keep: bool = False) -> None:
        """About to be made, by this process."""
        ...

    def forget(self, kind: Kind, ident: str, *, host: str = "local") -> None:
        """Removed, seen to be gone."""
        ...

    def entries(self) -> tuple[Made, ...]:
        """All that stands in it, in order of removal."""
        ...

    def abandoned(self) -> tuple[Made, ...]:
        """Entries without `keep` whose owner lives no more."""
        ...


def noting(ledger: Ledger, host: Host) -> Callable[[Process], None]:
    """For `announce` of `Host.start`: the process stands in the ledger before its program begins."""
    return lambda process: ledger.note(Kind.PROCESS, to_ident(process), host=host.name)
