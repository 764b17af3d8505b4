"""`nfs`: the directory of `bind`, behind an NFS server in a network namespace of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tare.deployments import Right
from tare.deployments.directories import let_go, remove_tree
from tare.deployments.mounts import told_of
from tare.errors import EnvironmentLacks
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger
from tare.storage import Lodging, Lot
from tare.storage.mounting import CALL_S, data_below
from tare.storage.nfs_client import Exported, mount_export, must_be, why_no_nfs
from tare.storage.nfs_server import Household

if TYPE_CHECKING:
    from docker import DockerClient

    from tare.study.model import StorageSpec


@dataclass(frozen=True)
class NfsStorage:
    """The same device as under `bind`; between it and the task are the kernel's client, TCP and a server."""

    deployments: ClassVar[frozenset[str] | None] = frozenset({"bare", "container"})
    options: ClassVar[frozenset[str]] = frozenset({"sync", "rsize", "wsize"})
    needs: ClassVar[frozenset[Right]] = frozenset({Right.ROOT})

    host: Host
    ledger: Ledger
    engine: DockerClient | None = None

    def lodge(self, lot: Lot, spec: StorageSpec) -> Lodging:
        """Served and mounted. Data are put into the served directory, past the client, which then has seen none."""
        if (why := why_no_nfs(self.host)) is not None:
            raise EnvironmentLacks(f"storage `nfs` cannot be had: {why}")
        self.clear(lot)
        house = self._house(lot)
        server, target = house.serve(sync=bool(spec.sync)), _mount_point(house)
        self.ledger.note(Kind.MOUNT, target, host=self.host.name)
        exported = Exported(server.address, server.near, spec.rsize, spec.wsize)
        mount = mount_export(self.host, exported, target)
        must_be(self.host, target, server.export, server.process.pid)
        fstype, _, device = told_of(mount).partition(" ")
        path, entry = data_below(server.export), data_below(target)
        return Lodging(path, fstype, device, entry=entry, server=server.process)

    def clear(self, lot: Lot) -> None:
        """The mount before its server: one that nobody answers for any more may keep others waiting."""
        house = self._house(lot)
        target = _mount_point(house)
        let_go(self.host, target)
        self.ledger.forget(Kind.MOUNT, target, host=self.host.name)
        house.end()
        remove_tree(self.host, house.home)

    def _house(self, lot: Lot) -> Household:
        """/proc/self/mountinfo knows no links, so neither do the paths that are looked up in it."""
        home = self.host.run(["realpath", "-m", "--", lot.home], timeout_s=CALL_S).text.rstrip("\n")
        return Household(self.host, self.ledger, home, lot.name)


def _mount_point(house: Household) -> str:
    return f"{house.home}/mount"
