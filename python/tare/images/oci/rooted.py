"""Directories below a root, opened by openat2(2): the kernel keeps every step inside, also through links and `..`.

A check of a path's prefix can be correct, and yet the path can lead elsewhere when it is opened; see
docs/decisions/0025-unpack-by-openat2.md.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tare.errors import EnvironmentLacks

_OPENAT2 = 437
"""Number of openat2(2), the same on every architecture that Python supports except Alpha (asm-generic/unistd.h)."""
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _IN_ROOT = 0x01, 0x02, 0x04, 0x10
"""Constants RESOLVE_… of linux/openat2.h."""
_TRIES = 10_000
"""Tries after EAGAIN: something was renamed anywhere while `..` was resolved, so the kernel cannot be sure."""
_DIRECTORY = os.O_PATH | os.O_DIRECTORY
_MOST_STEPS = 400
_PLAIN_DIRECTORY = 0o755
_MOST_READ = 64 << 20


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


@dataclass(frozen=True)
class Directory:
    """An open directory. `path`: its path from the root, without links; "" for the root itself."""

    handle: int
    path: str

    def child(self, name: str) -> str:
        """Path of an entry with this name."""
        return f"{self.path}/{name}" if self.path else name

    def mode_of(self, name: str) -> int | None:
        """st_mode of an entry, without following links; `None` if it does not exist."""
        try:
            return os.stat(name, dir_fd=self.handle, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None

    def must_have_file(self, name: str) -> None:
        """Raise `FileNotFoundError` if there is no regular file with this name."""
        if not stat.S_ISREG(self.mode_of(name) or 0):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)

    def entries(self) -> list[tuple[str, bool]]:
        """Names of the entries, and whether each is itself a directory."""
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.handle)
        try:
            with os.scandir(handle) as found:
                return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        finally:
            os.close(handle)

    def remove(self, name: str) -> None:
        """Remove an entry, a directory with everything below it; it may not exist."""
        try:
            os.unlink(name, dir_fd=self.handle)
        except FileNotFoundError:
            return
        except IsADirectoryError:
            shutil.rmtree(name, dir_fd=self.handle)

    @contextmanager
    def opened(self, name: str) -> Iterator[str]:
        """Give a path by which mode, owner and times of any entry can be set; `OSError` for a link."""
        handle = _open(self.handle, name, os.O_PATH | os.O_NOFOLLOW, _NO_SYMLINKS)
        try:
            yield path_of(handle)
        finally:
            os.close(handle)


class RootedTree:
    """The directories below `root`; paths resolve as for a program with this root."""

    def __init__(self, root: Path, own: Callable[[str], None] | None = None) -> None:
        """`own`: called with the path of each directory that had to be made, to set owner and mode."""
        self._own = own
        self._handle = os.open(root, _DIRECTORY | os.O_CLOEXEC)
        self._where = os.readlink(path_of(self._handle)).rstrip("/")  # noqa: PTH115 - as the kernel has it

    def close(self) -> None:
        """Close the root. Directories that were handed out cannot be used any more."""
        os.close(self._handle)

    @contextmanager
    def directory(self, path: str, *, make: bool = False, links: bool = True) -> Iterator[Directory]:
        """Open the directory at `path`; `make`: make it and its ancestors, also where links lead to missing ones.

        Raises `OSError`: ELOOP for too many links, or for any link without `links`; ENOTDIR; EXDEV for a mount.
        """
        resolve = _IN_ROOT if links else _IN_ROOT | _NO_SYMLINKS
        handle = self._made(path, _MOST_STEPS) if make else _open(self._handle, path, _DIRECTORY, resolve)
        try:
            where = os.readlink(path_of(handle))  # noqa: PTH115 - as the kernel has it
            yield Directory(handle, where[len(self._where) + 1 :])
        finally:
            os.close(handle)

    def read(self, path: str) -> bytes | None:
        """Read a regular file; `None` if there is none, or if it is larger than 64 MiB."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
        try:
            handle = _open(self._handle, path, flags, _IN_ROOT)
        except OSError:
            return None
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_READ:
            os.close(handle)
            return None
        with os.fdopen(handle, "rb") as file:
            return file.read()

    def _made(self, path: str, steps: int) -> int:
        """Make a directory and return its handle. `steps`: limit of links and parents to follow."""
        if not steps:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        with suppress(FileNotFoundError):
            return _open(self._handle, path, _DIRECTORY, _IN_ROOT)
        above, _, name = path.rstrip("/").rpartition("/")
        parent = self._made(above, steps - 1)
        try:
            if name in (".", ".."):
                return _open(self._handle, path, _DIRECTORY, _IN_ROOT)
            try:
                os.mkdir(name, _PLAIN_DIRECTORY, dir_fd=parent)
            except FileExistsError:
                target = os.readlink(name, dir_fd=parent)
                return self._made(target if target.startswith("/") else f"{above}/{target}", steps - 1)
            made = _open(parent, name, _DIRECTORY | os.O_NOFOLLOW, _NO_SYMLINKS)
            os.chmod(path_of(made), _PLAIN_DIRECTORY)  # noqa: PTH101 - independent of the umask
            if self._own is not None:
                self._own(path_of(made))
            return made
        finally:
            os.close(parent)


def read_inside(root: Path, path: str) -> bytes | None:
    """Read a file of an image as `RootedTree.read` does, and never a file of the machine through a link."""
    try:
        tree = RootedTree(root)
    except OSError:
        return None
    try:
        return tree.read(path)
    finally:
        tree.close()


def path_of(handle: int) -> str:
    """A path that leads to the open file, whatever has its name now."""
    return f"/proc/self/fd/{handle}"


def _open(directory: int, path: str, flags: int, resolve: int) -> int:
    how = _How(flags | os.O_CLOEXEC, 0, resolve | _NO_MAGICLINKS | _NO_XDEV)
    for _ in range(_TRIES):
        handle = _libc.syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(directory),
            os.fsencode(path or "."),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if handle >= 0:
            return int(handle)
        number = ctypes.get_errno()
        if number == errno.ENOSYS:
            raise EnvironmentLacks(
                "this kernel has no openat2(2), which keeps images inside their directory",
                hint="use Linux 5.6 or newer; in a container, a seccomp profile that knows it",
            )
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number), path)
