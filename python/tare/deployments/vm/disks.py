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
"""What a file system of small files needs beyond their blocks: inodes and tables."""
_PLACES = ("/proc", "/sys", "/dev", "/data")
_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
_RUN_BYTES = 256 << 20
_BYTES_AN_INODE, _FEWEST_INODES = 256 << 10, 16384
"""A database has few files for its size, and tables for an inode each 16 KiB, as usual, are 256 MiB of 16 GiB."""
_HINT = "apt-get install e2fsprogs; the disk needs room on the file system that it is made on, and in `sut.vm.disk`"


def root_disk(host: Host, ledger: Ledger, image: Image) -> str:
    """The image's root file system as a disk that is only ever read, beside the image and gone with it.

    Places that are mounted upon are added where the image has none, as an engine does.
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
    """A copy of a directory of the task's as a disk, on the host's disk and out of its page cache."""
    size = min(setting.disk_bytes, _RUN_BYTES) if is_scratch(bind) else setting.disk_bytes
    make_disk(host, bind.source, path, size, inodes=max(size // _BYTES_AN_INODE, _FEWEST_INODES))
    own_root(host, bind.source, path)
    sync_and_evict(host, path, warmed=False)


def take_back(host: Host, bind: Bind, path: str) -> None:
    """Copy what the task has left in a scratch place from its disk to the directory that it was made from."""
    if is_scratch(bind) and not bind.read_only:
        dump = ["debugfs", "-R", f'rdump / "{bind.source}"', path]
        host.run(dump, timeout_s=_CALL_S, check=False)  # ends with 0 whatever it could not copy; who needs it looks


def is_scratch(bind: Bind) -> bool:
    """What the task needs while it runs (an option file, a socket) or leaves (a log), and no data."""
    return any(bind.target.startswith(f"{each.target}/") for each in SCRATCH)


def make_disk(host: Host, source: str, path: str, size_bytes: int, inodes: int | None = None) -> None:
    """An ext4 of what lies in a directory, owners and modes kept, in a file with holes; no work is left for later.

    `inodes`: `None` for as many as mke2fs thinks right. Raises `EnvironmentLacks` with mke2fs's words.
    """
    host.run(["rm", "-f", "--", path], timeout_s=_CALL_S)
    options = "lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0"
    size = f"{-(-size_bytes // (1 << 20))}M"
    count = [] if inodes is None else ["-N", str(inodes)]
    argv = ["mke2fs", "-q", "-F", "-t", "ext4", "-T", "default", "-m", "0", *count, "-E", options, "-d", source]
    try:
        done = host.run([*argv, path, size], timeout_s=_MAKE_S, check=False)
    except RunFailed as error:
        raise EnvironmentLacks(f"no disk can be made: {error.what}", hint=_HINT) from error
    if done.code != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise EnvironmentLacks(f"no disk can be made of {source}: {words[-1] if words else done.code}", hint=_HINT)


def own_root(host: Host, source: str, path: str) -> None:
    """Give a disk's own root directory the owner and mode of the directory that it was made from."""
    seen = host.run(["stat", "--format=%u %g %a", "--", source], timeout_s=_CALL_S).text.split()
    uid, gid, mode = seen
    requests = f"sif <2> uid {uid}\nsif <2> gid {gid}\nsif <2> mode 04{mode:0>4}\n"
    host.run(["debugfs", "-w", "-f", "-", path], timeout_s=_CALL_S, stdin=requests.encode())


def _add(host: Host, path: str, places: tuple[str, ...]) -> None:
    """By debugfs(8), which goes on where something is there already; links of the image are left as they are."""
    requests = []
    for place in places:
        parts = place.strip("/").split("/")
        requests += [f"mkdir /{'/'.join(parts[: n + 1])}" for n in range(len(parts))]
    requests += ["mkdir /etc", *(f"write /dev/null {each}" for each in _FILES)]
    host.run(["debugfs", "-w", "-f", "-", path], timeout_s=_CALL_S, stdin="\n".join([*requests, ""]).encode())


def _is_file(host: Host, path: str) -> bool:
    return host.run(["test", "-f", path], timeout_s=_CALL_S, check=False).code == 0
