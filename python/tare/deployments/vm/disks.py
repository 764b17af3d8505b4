"""Disks of virtual machines: a file system made in a file from a directory, without mounting anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tare.deployments import Bind, MachineSetting
from tare.deployments.defaults import SCRATCH
from tare.deployments.directories import sync_and_evict
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger

if TYPE_CHECKING:
    from tare.images import Image

_MAKE_S, _CALL_S = 3600.0, 60.0
_SPARE_BYTES = 64 << 20
_SHARE = 1.15
"""Space that a file system of small files needs relative to their blocks: inodes and tables."""
_PLACES = ("/proc", "/sys", "/dev", "/data")
_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
_RUN_BYTES = 256 << 20
_BYTES_AN_INODE, _FEWEST_INODES = 256 << 10, 16384
"""A database has few files for its size; the usual inode per 16 KiB would take 256 MiB of 16 GiB for tables."""
_HINT = "apt-get install e2fsprogs; the disk needs room on the file system that it is made on, and in `sut.vm.disk`"


def root_disk(host: Host, ledger: Ledger, image: Image) -> str:
    """The image's root file system as a read-only disk, stored beside the image and removed with it.

    Mount points that the image does not have are added, as an engine does.
    """
    path = f"{image.rootfs.rpartition('/')[0]}/root.ext4"
    if _is_file(host, path):
        return path
    used = host.run(["du", "-s", "--block-size=1", "--", image.rootfs], timeout_s=_MAKE_S).text.split()[0]
    part = f"{path}.part"
    ledger.note(Kind.PATH, part, host=host.name)
    try:
        make_disk(host, image.rootfs, part, int(int(used) * _SHARE) + _SPARE_BYTES)
        places = (
            *_PLACES,
            *(each.target for each in SCRATCH),
            *([image.config.data_dir] if image.config.data_dir else []),
        )
        _add(host, part, places)
        host.run(["mv", "--", part, path], timeout_s=_CALL_S)
    finally:
        host.run(["rm", "-f", "--", part], timeout_s=_CALL_S)
        ledger.forget(Kind.PATH, part, host=host.name)
    return path


def data_disk(host: Host, bind: Bind, path: str, setting: MachineSetting) -> None:
    """Copy a directory of the task to a new disk, written to the host's disk and dropped from its page cache."""
    size = min(setting.disk_bytes, _RUN_BYTES) if is_scratch(bind) else setting.disk_bytes
    make_disk(host, bind.source, path, size, inodes=max(size // _BYTES_AN_INODE, _FEWEST_INODES))
    own_root(host, bind.source, path)
    sync_and_evict(host, path, warmed=False)


def take_back(host: Host, bind: Bind, path: str) -> None:
    """Copy files that the task left in a scratch directory from its disk back to the source directory."""
    if is_scratch(bind) and not bind.read_only:
        dump = ["debugfs", "-R", f'rdump / "{bind.source}"', path]
        host.run(dump, timeout_s=_CALL_S, check=False)  # exits with 0 even after errors; the caller checks


def is_scratch(bind: Bind) -> bool:
    """Whether a bind holds no data, only files that the task needs (option file, socket) or leaves (log)."""
    return any(bind.target.startswith(f"{each.target}/") for each in SCRATCH)


def make_disk(host: Host, source: str, path: str, size_bytes: int, inodes: int | None = None) -> None:
    """Make a sparse ext4 disk from a directory, with owners and modes.

    It is fully initialised, without lazy work later. `inodes`: `None` for mke2fs's default. Raises
    `EnvironmentLacks` with mke2fs's message.
    """
    host.run(["rm", "-f", "--", path], timeout_s=_CALL_S)
    options = "lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0"
    size = f"{-(-size_bytes // (1 << 20))}M"
    count = [] if inodes is None else ["-N", str(inodes)]
    argv = ["mke2fs", "-q", "-F", "-t", "ext4", "-T", "default", "-m", "0", *count, "-E", options, "-d", source]
    try:
        done = host.run([*argv, path, size], timeout_s=_MAKE_S, check=False)
    except RunFailed as error:
        raise EnvironmentLacks(f"the disk cannot be made: {error.what}", hint=_HINT) from error
    if done.code != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise EnvironmentLacks(
            f"no disk can be made from {source}: {words[-1] if words else done.code}", hint=_HINT
        )


def own_root(host: Host, source: str, path: str) -> None:
    """Give a disk's root directory the owner and mode of the directory that it was made from."""
    seen = host.run(["stat", "--format=%u %g %a", "--", source], timeout_s=_CALL_S).text.split()
    uid, gid, mode = seen
    requests = f"sif <2> uid {uid}\nsif <2> gid {gid}\nsif <2> mode 04{mode:0>4}\n"
    host.run(["debugfs", "-w", "-f", "-", path], timeout_s=_CALL_S, stdin=requests.encode())


def _add(host: Host, path: str, places: tuple[str, ...]) -> None:
    """Add mount points with debugfs(8), which continues if one exists; links of the image stay as they are."""
    requests = []
    for place in places:
        parts = place.strip("/").split("/")
        requests += [f"mkdir /{'/'.join(parts[: n + 1])}" for n in range(len(parts))]
    requests += ["mkdir /etc", *(f"write /dev/null {each}" for each in _FILES)]
    host.run(["debugfs", "-w", "-f", "-", path], timeout_s=_CALL_S, stdin="\n".join([*requests, ""]).encode())


def _is_file(host: Host, path: str) -> bool:
    return host.run(["test", "-f", path], timeout_s=_CALL_S, check=False).code == 0
