"""The kernel's NFS client: whether there is one, how to mount a server's root, and how to verify the mount."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tare.deployments.mounts import Mount, covering, mount_under, mountinfo_of, parse_mountinfo
from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.requirements import HostPlan, Lack, Requirement
from tare.sites import Host
from tare.storage.nfs.server import GANESHA, PORT
from tare.study.values import size_bytes

_CALL_S, _MOUNT_S = 30.0, 60.0
_FSTYPE = "nfs4"
_MAGIC = "6969"
"""NFS_SUPER_MAGIC (include/uapi/linux/magic.h), as stat(1) prints it."""
_NO_CLIENT = "the kernel has no NFS client in /proc/filesystems"
_ELSE = "use another storage, or a machine whose kernel has one"


@dataclass(frozen=True)
class NfsMount:
    """A mount of a server. `address`: the server's; `near`: the client's.

    `rsize`, `wsize`: most that a request may carry; `None`: as client and server agree.
    """

    address: str
    near: str
    rsize: str | None = None
    wsize: str | None = None


def _lacks(there: HostPlan) -> Iterator[Lack]:
    host = there.host
    try:
        host.run([GANESHA, "-v"], timeout_s=_CALL_S)
        host.run(["ip", "-V"], timeout_s=_CALL_S)
    except RunFailed as error:
        yield Lack(f"{error.what} (apt-get install nfs-ganesha nfs-ganesha-vfs iproute2)")
        return
    if not _has_client(host):
        try:
            host.run(["modprobe", "--quiet", "nfsv4"], timeout_s=_CALL_S, check=False)
        except RunFailed:
            yield Lack(f"{_NO_CLIENT}, and there is no modprobe that could load one ({_ELSE})")
            return
    if not _has_client(host):
        yield Lack(f"{_NO_CLIENT}, and `modprobe nfsv4` loads none ({_ELSE})")


NFS = Requirement(
    "NFS",
    needed_by="the storage `nfs`",
    tried_how="`ganesha.nfsd -v`, `ip -V`, nfs4 in /proc/filesystems after `modprobe nfsv4`",
    hint="apt-get install nfs-ganesha nfs-ganesha-vfs iproute2",
    ask=_lacks,
)


def _has_client(host: Host) -> bool:
    return _FSTYPE in (host.read("/proc/filesystems") or b"").decode().split()


def mount_options(nfs_mount: NfsMount) -> str:
    """Mount options as the kernel itself reads them (nfs(5)), with both addresses, so that no mount.nfs4 is needed.

    `softerr`: with version 4 and an intact connection, a client waits as long as with `hard` (net/sunrpc/clnt.c,
    rpc_check_timeout); if the server is gone, it fails after half a minute, where `hard` would hang forever.
    `nosharecache`: no earlier mount shares its pages with this one.
    """
    sizes = [(name, getattr(nfs_mount, name)) for name in ("rsize", "wsize")]
    return ",".join(
        (
            *("vers=4.2", "proto=tcp", f"port={PORT}", "sec=sys"),
            *("softerr", "timeo=100", "retrans=2", "nosharecache"),
            *(f"{name}={size_bytes(size)}" for name, size in sizes if size is not None),
            *(f"addr={nfs_mount.address}", f"clientaddr={nfs_mount.near}"),
        )
    )


def mount_export(host: Host, nfs_mount: NfsMount, target: str) -> Mount:
    """Mount the export, and verify by mountinfo and statfs that it is what was requested."""
    host.run(["install", "-d", "-m", "0755", "--", target], timeout_s=_CALL_S)
    source = f"{nfs_mount.address}:/"
    argv = ["mount", "--internal-only", "-t", _FSTYPE, "-o", mount_options(nfs_mount), "--", source, target]
    try:
        host.run(argv, timeout_s=_MOUNT_S)
    except TimedOut as error:
        raise EnvironmentLacks(f"the NFS server at {source} was not mounted: {error.what}") from error
    except RunFailed as error:
        raise EnvironmentLacks(
            f"the NFS server at {source} cannot be mounted: {error.what}",
            hint="see the kernel's log (dmesg); it needs a client of NFS 4.2 that knows `softerr`",
        ) from error
    mount = mount_under(host, target)
    magic = host.run(["stat", "-f", "-c", "%t", "--", target], timeout_s=_CALL_S).text.strip()
    if wrong := _mount_mismatch(nfs_mount, mount, target, magic):
        raise EnvironmentLacks(f"the mount on {target} is not the NFS server's directory: {wrong}")
    return mount


def _mount_mismatch(nfs_mount: NfsMount, mount: Mount, target: str, magic: str) -> str | None:
    options = dict(option.partition("=")[::2] for option in mount.super_options)
    if (mount.target, mount.fstype, magic) != (target, _FSTYPE, _MAGIC):
        return f"{mount.target} is there, of type {mount.fstype}, with the magic number {magic} in statfs"
    if options.get("addr") != nfs_mount.address:
        return f"its server is {options.get('addr', 'unknown')}, not {nfs_mount.address}"
    for name in ("rsize", "wsize"):
        asked, got = getattr(nfs_mount, name), options.get(name)
        if asked is not None and got != str(size_bytes(asked)):
            return f"{name} {asked} was requested, {got or 'none'} is in force"
    return None


def verify_export(host: Host, mounted: str, export: str, server_pid: int) -> None:
    """Check that the mount's root is the exported directory, and that the server has it on this host's device.

    Raises `EnvironmentLacks` if not. A server sends a file's inode number as its `fileid`, so both ends see the
    same.
    """
    inodes = host.run(["stat", "-c", "%i", "--", mounted, export], timeout_s=_CALL_S).text.split()
    if len(set(inodes)) != 1:
        raise EnvironmentLacks(f"{mounted} shows another directory than {export}: files {' and '.join(inodes)}")
    served = covering(parse_mountinfo(mountinfo_of(host, server_pid)), export)
    ours = mount_under(host, export)
    if served is None or served.device != ours.device:
        actual = "an unknown device" if served is None else served.device
        raise EnvironmentLacks(f"the NFS server has {export} on {actual}, and this host on {ours.device}")
