"""`block`: a file system of its own, made anew for every run, on a loop device or a device that the study names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tare.deployments.mounts import mount_under
from tare.errors import EnvironmentLacks
from tare.requirements import HostPlan, Lack, Requirement
from tare.requirements.rights import ROOT
from tare.sites import Host
from tare.sites.ledger import Ledger
from tare.storage import DataMount, DataRequest
from tare.storage.mounting import CALL_S, data_below, mount, size_for, unmount
from tare.study.values import size_bytes

if TYPE_CHECKING:
    from docker import DockerClient

    from tare.study.model import StorageSpec

_FORMAT_S = 600.0
_LABEL = "tare"
_DEFAULT_FILE_SYSTEM = "ext4"
_MAKERS: Mapping[str, tuple[str, ...]] = {
    # Lazy initialisation is off: it would write in the background while the run is measured (mke2fs(8)).
    "ext4": ("mkfs.ext4", "-q", "-F", "-L", _LABEL, "-E", "lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-L", _LABEL),
    "btrfs": ("mkfs.btrfs", "-q", "-f", "-L", _LABEL),
}
_PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
_LEAST_BYTES = {"ext4": 64 << 20, "xfs": 512 << 20, "btrfs": 256 << 20}
"""mkfs.xfs makes no file system below 300 MB; the others need little beyond their data."""


def _lacks(there: HostPlan) -> Iterator[Lack]:
    named = {each.sut.storage.file_system or _DEFAULT_FILE_SYSTEM for each in there.served}
    for file_system in sorted(named or {_DEFAULT_FILE_SYSTEM}):
        program = _MAKERS[file_system][0]
        if there.host.run(["sh", "-c", f"command -v {program}"], timeout_s=CALL_S, check=False).code != 0:
            yield Lack(f"{program} is not installed", f"apt-get install {_PACKAGES[file_system]}")


FILE_SYSTEMS = Requirement(
    "file systems",
    needed_by="the storage `block`",
    tried_how="`command -v mkfs.ext4`, or of the file system that the study names",
    hint="apt-get install e2fsprogs",
    ask=_lacks,
)


@dataclass(frozen=True)
class BlockStorage:
    """A file system in an image file below the run's directory, so that it is on the same disk as with `bind`."""

    deployments: ClassVar[frozenset[str] | None] = None
    options: ClassVar[frozenset[str]] = frozenset({"size", "file_system", "device"})
    needs: ClassVar[tuple[Requirement, ...]] = (ROOT, FILE_SYSTEMS)

    host: Host
    ledger: Ledger
    engine: DockerClient | None = None

    def prepare(self, request: DataRequest, spec: StorageSpec) -> DataMount:
        """Make the file system, mount it, and look up its mount."""
        unmount(self.host, request.home)
        file_system = spec.file_system or _DEFAULT_FILE_SYSTEM
        wanted = size_for(request.data_bytes) if spec.size is None else size_bytes(spec.size)
        if spec.device is None:
            source = self._image_file(request, max(wanted, _LEAST_BYTES[file_system]))
        else:
            source = self._device(spec.device)
        self._format(file_system, source)
        options = ["-o", "loop"] if spec.device is None else []
        mount(self.host, f"{request.home}/mount", ["-t", file_system, *options, source])
        below = mount_under(self.host, f"{request.home}/mount")
        if spec.device is None:
            self._use_direct_io(below.source)
        return DataMount(data_below(f"{request.home}/mount"), below.fstype, below.device)

    def clear(self, request: DataRequest) -> None:
        """Unmount the file system; the loop device is removed with its last mount (losetup(8), autoclear)."""
        unmount(self.host, request.home)

    def _image_file(self, request: DataRequest, size: int) -> str:
        """Allocate the file at once: a sparse file would be allocated during the measurement."""
        path = f"{request.home}/image"
        self.host.run(["install", "-d", "-m", "0755", "--", request.home], timeout_s=CALL_S)
        done = self.host.run(["fallocate", "-l", str(size), "--", path], timeout_s=_FORMAT_S, check=False)
        if done.code != 0:
            words = done.stderr.decode(errors="replace").strip()
            raise EnvironmentLacks(f"no file of {size} bytes can be made for storage `block`: {words}")
        return path

    def _use_direct_io(self, loop: str) -> None:
        """Use direct I/O: the host would otherwise cache the image file below a file system with its own cache."""
        done = self.host.run(["losetup", "--direct-io=on", loop], timeout_s=CALL_S, check=False)
        if done.code != 0:
            words = done.stderr.decode(errors="replace").strip()
            raise EnvironmentLacks(
                f"the loop device of storage `block` cannot bypass the host's page cache: {words}",
                hint="put TARE_HOME on a file system that takes O_DIRECT, or give the storage a `device`",
            )

    def _device(self, device: str) -> str:
        """Check that the device may be overwritten: it is empty or holds a file system that tare made earlier."""
        probed = self.host.run(["blkid", "-p", "-o", "export", "--", device], timeout_s=CALL_S, check=False)
        properties = dict(line.partition("=")[::2] for line in probed.text.splitlines())
        if probed.code not in (0, 2):  # 2: blkid recognises nothing there (blkid(8))
            raise EnvironmentLacks(f"the block device {device} cannot be read", hint="see `lsblk`; it needs root")
        if properties and properties.get("LABEL") != _LABEL:
            holds = properties.get("TYPE") or properties.get("PTTYPE") or "something"
            raise EnvironmentLacks(
                f"the block device {device} holds {holds} that tare did not make; it was left unchanged",
                hint=f"if it is no longer needed: wipefs --all {device}",
            )
        return device

    def _format(self, file_system: str, source: str) -> None:
        argv = [*_MAKERS[file_system], source]
        try:
            done = self.host.run(argv, timeout_s=_FORMAT_S, check=False)
        except FileNotFoundError:
            done = None
        if done is None or done.code == _NOT_FOUND:
            raise EnvironmentLacks(f"{argv[0]} is not installed", hint=f"apt-get install {_PACKAGES[file_system]}")
        if done.code != 0:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            raise EnvironmentLacks(
                f"{argv[0]} made no file system on {source}: {words[-1] if words else 'no word'}"
            )


_NOT_FOUND = 127
