"""`nfs`: the directory of `bind`, behind an NFS server in a network namespace of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tare.deployments.directories import force_unmount, remove_tree
from tare.deployments.mounts import describe_mount
from tare.errors import EnvironmentLacks
from tare.requirements import HostPlan, Requirement
from tare.requirements.rights import ROOT
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger
from tare.storage import DataMount, DataRequest
from tare.storage.mounting import CALL_S, data_below
from tare.storage.nfs.client import NFS, NfsMount, mount_export, verify_export
from tare.storage.nfs.server import GaneshaServer

if TYPE_CHECKING:
    from docker import DockerClient

    from tare.study.model import StorageSpec


@dataclass(frozen=True)
class NfsStorage:
    """The same disk as under `bind`; the kernel's NFS client, TCP and a server lie between it and the task."""

    deployments: ClassVar[frozenset[str] | None] = frozenset({"bare", "container"})
    options: ClassVar[frozenset[str]] = frozenset({"sync", "rsize", "wsize"})
    needs: ClassVar[tuple[Requirement, ...]] = (ROOT, NFS)

    host: Host
    ledger: Ledger
    engine: DockerClient | None = None

    def prepare(self, request: DataRequest, spec: StorageSpec) -> DataMount:
        """Serve and mount the directory.

        Data is copied to the served directory, so the client has not seen it yet.
        """
        if (why := NFS.why_not(HostPlan(self.host))) is not None:
            raise EnvironmentLacks(f"storage `nfs` is not available: {why}")
        self.clear(request)
        ganesha = self._server(request)
        server, target = ganesha.serve(sync=bool(spec.sync)), _mount_point(ganesha)
        self.ledger.note(Kind.MOUNT, target, host=self.host.name)
        nfs_mount = NfsMount(server.address, server.near, spec.rsize, spec.wsize)
        mount = mount_export(self.host, nfs_mount, target)
        verify_export(self.host, target, server.export, server.process.pid)
        fstype, _, device = describe_mount(mount).partition(" ")
        path, entry = data_below(server.export), data_below(target)
        return DataMount(path, fstype, device, entry=entry, server=server.process)

    def clear(self, request: DataRequest) -> None:
        """Unmount before ending the server: a mount without a server may block other programs."""
        ganesha = self._server(request)
        target = _mount_point(ganesha)
        force_unmount(self.host, target)
        self.ledger.forget(Kind.MOUNT, target, host=self.host.name)
        ganesha.end()
        remove_tree(self.host, ganesha.home)

    def _server(self, request: DataRequest) -> GaneshaServer:
        """The server, with links in its path resolved, since /proc/self/mountinfo lists resolved paths."""
        home = self.host.run(["realpath", "-m", "--", request.home], timeout_s=CALL_S).text.rstrip("\n")
        return GaneshaServer(self.host, self.ledger, home, request.name)


def _mount_point(ganesha: GaneshaServer) -> str:
    return f"{ganesha.home}/mount"
