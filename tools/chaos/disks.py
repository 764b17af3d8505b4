"""A small file system of its own: it can be filled, what lies below it can fail, and it is mended afterwards."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tools.chaos.tally import BrokenOff

Run = Callable[[Sequence[str]], object]
_LONG_S, _BUSY_S = 120.0, 30.0
_PAGE = 4096
_SHUTDOWN, _NO_FLUSH = 0x8004587D, 2
"""EXT4_IOC_SHUTDOWN of <linux/ext4.h>, and to leave in memory what the journal does not have yet."""


def run(argv: Sequence[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A program of this machine."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_LONG_S, check=False)
    if check and done.returncode != 0:
        raise BrokenOff(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done


@dataclass
class Disk:
    """ext4 on a loop device on a sparse file on a tmpfs, mounted at `place`; `size`: in MiB, all its room.

    `places_too`: further mount namespaces, as programs that run a command in one.
    """

    place: Path
    size: int
    below: Path
    places_too: list[Run] = field(default_factory=list)
    device: str = ""

    def make(self) -> None:
        """Root alone can."""
        for path in (self.place, self.below):
            path.mkdir(parents=True, exist_ok=True)
        run(["mount", "-t", "tmpfs", "-o", f"size={self.size + 16}m", "tare-chaos", str(self.below)])
        image = self.below / "image"
        with image.open("wb") as file:
            file.truncate(self.size << 20)
        run(["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image)])
        self.device = run(["losetup", "--find", "--show", str(image)]).stdout.strip()
        self._mount()

    def _mount(self) -> None:
        argv = ["mount", self.device, str(self.place)]
        run(argv)
        for also in self.places_too:
            also(argv)

    def remove(self) -> None:
        """Whatever state it is in."""
        run(["umount", "--lazy", str(self.place)], check=False)
        run(["losetup", "--detach", self.device], check=False)
        run(["umount", "--lazy", str(self.below)], check=False)

    def fill(self) -> None:
        """No byte is left for anybody."""
        filler = self.place / "filler"
        with suppress(OSError), filler.open("ab") as file:
            step = 64 << 20
            while step >= _PAGE:
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, step)
                except OSError:
                    step //= 4

    def empty(self) -> None:
        """The room is back, after a power cut too: who frees a disk does not lose that again by it."""
        with suppress(OSError):
            (self.place / "filler").unlink(missing_ok=True)
            handle = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def fail(self) -> None:
        """Each write of a block that was not written before is an I/O error from now on (EIO)."""
        for spare in (0, 1, 4):  # others write meanwhile
            room = os.statvfs(self.below)
            used = (room.f_blocks - room.f_bfree) * room.f_frsize + (spare << 20)
            if run(["mount", "-o", f"remount,size={used}", str(self.below)], check=False).returncode == 0:
                return

    def lose_power(self) -> None:
        """Nothing reaches the disk from now on; what memory held for it and nobody synced is lost."""
        handle = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(handle, _SHUTDOWN, struct.pack("I", _NO_FLUSH))
        finally:
            os.close(handle)

    def mend(self) -> None:
        """What lies below takes writes again; the file system itself may have become read-only."""
        run(["mount", "-o", f"remount,size={self.size + 16}m", str(self.below)])

    def repair(self) -> None:
        """As an administrator would, once nobody uses it: a file system may notice an error late."""
        self._unmount()
        run(["e2fsck", "-f", "-y", self.device], check=False)  # its code tells what it mended
        self._mount_writable()

    def start_again(self) -> None:
        """As a machine does when power is back: mounting plays the journal, and nothing more."""
        self._unmount()
        self._mount_writable()

    def _unmount(self) -> None:
        unmount = ["umount", str(self.place)]
        for also in (run, *self.places_too):
            end = time.monotonic() + _BUSY_S
            while True:  # what a killed process had open may still be about to be closed
                try:
                    also(unmount)
                    break
                except RuntimeError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.2)

    def _mount_writable(self) -> None:
        self._mount()
        try:
            (self.place / "probe").touch()
        except OSError as error:  # a namespace that was made meanwhile has it mounted, as a new test host's
            raise BrokenOff(f"{self.place} cannot be repaired: play alone on a machine: {error}") from error
        (self.place / "probe").unlink()
