"""Unpack layers into a directory, safely: nothing outside of it is ever read, written, changed or linked to."""

from __future__ import annotations

import errno
import math
import os
import shutil
import stat
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tare.errors import StudyError
from tare.images.oci.layer_stream import open_layer
from tare.images.oci.rooted import Directory, RootedTree, path_of
from tare.images.owners import Attributes, Noted, mode_on_disk

_MAX_DEPTH = 256
"""Far above any legitimate image, and far below the limits of path lengths and of Python's stack."""


def steps(name: str) -> list[str]:
    """Parts of an entry's name; `[]` for the root itself.

    Raises `StudyError` for a name that no layer should hold.
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name:
        raise StudyError(f"the image entry {name!r} would leave the image's root", hint="do not use this image")
    if len(parts) > _MAX_DEPTH:
        raise StudyError(f"the image entry {name[:60]!r}… is nested more than {_MAX_DEPTH} deep")
    return parts


MAX_BYTES = 64 << 30
MAX_ENTRIES = 4_000_000
"""Limits of one image, over all layers: a larger one is no database but an attempt to fill the disk."""

_BOMB_BYTES, _BOMB_RATIO = 1 << 30, 250
"""An archive that unpacks to more than this, and to that many times its size, is refused: zeros to fill a disk."""
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_CAPABILITY = "security.capability"
_NOBODY_ELSE = 2**32 - 1
"""-1 as an ID: chown(2) would leave the owner unchanged."""
_LAST_S = 2**33
"""Latest change time that is kept, in the year 2242: far below the limits of file systems and tar."""
_CHUNK = 1 << 20
_PLAIN_DIRECTORY = 0o755
_REFUSALS = {
    errno.ELOOP: "goes through too many links",
    errno.ENOTDIR: "lies below something that is no directory",
    errno.EXDEV: "leads to another file system",
}


@dataclass
class _Budget:
    entries: int = MAX_ENTRIES
    size_bytes: int = MAX_BYTES
    packed_bytes: int = 0
    unpacked_bytes: int = 0

    def spend(self, member: tarfile.TarInfo) -> None:
        size = member.size if member.isreg() else 0
        self.entries -= 1
        self.size_bytes -= size
        self.unpacked_bytes += size
        if self.entries < 0 or self.size_bytes < 0:
            raise StudyError(
                f"the image holds more than {MAX_ENTRIES} entries or {MAX_BYTES >> 30} GiB (at {member.name!r})",
                hint="do not use this image",
            )
        if self.unpacked_bytes > max(_BOMB_BYTES, _BOMB_RATIO * self.packed_bytes):
            raise StudyError(
                f"the image holds {self.unpacked_bytes / (1 << 30):.1f} GiB at {member.name!r}, "
                f"more than {_BOMB_RATIO} times its archive",
                hint="do not use this image",
            )


@dataclass
class _Layer:
    """What one layer has put into the tree so far, by path from the tree's root."""

    tree: RootedTree
    noted: Noted | None
    made: set[str] = field(default_factory=set)
    directories: dict[str, tarfile.TarInfo] = field(default_factory=dict)

    def note(self, path: str) -> None:
        """Record an entry and the directories that lead to it."""
        while path and path not in self.made:
            self.made.add(path)
            path = path.rpartition("/")[0]


def unpack(layers: Iterable[Path], root: Path) -> Noted | None:
    """Apply the layers in order to the empty directory `root`. Raises `StudyError` naming the bad entry.

    As root, files get their owners. As a user, all files are the user's own, and the attributes they should have
    are returned. The root directory always belongs to root with mode 0755, as in a container; so do directories
    that an entry needs and the archive does not contain. The umask does not count. Directories get the time of
    their last entry, or 0 without an entry, so that two unpackings are the same.
    """
    noted = None if os.geteuid() == 0 else Noted()
    _set_plain_owner(str(root), noted)
    budget, named = _Budget(), dict[str, tarfile.TarInfo]()
    tree = RootedTree(root, lambda path: _set_plain_owner(path, noted))
    try:
        for path in layers:
            budget.packed_bytes += path.stat().st_size
            with open_layer(path) as tar:
                named |= _apply(tar, _Layer(tree, noted), budget)
        _date_directories(tree, named)
    finally:
        tree.close()
    return noted


def _apply(tar: tarfile.TarFile, layer: _Layer, budget: _Budget) -> dict[str, tarfile.TarInfo]:
    """Apply one layer; return its entries of directories, by path."""
    for member in tar:
        budget.spend(member)
        _check(member)
        _unpack_entry(tar, member, layer)
    # Directories come last, so that read-only ones can be filled first; one may have been replaced, even by a link.
    for path, member in reversed(layer.directories.items()):
        try:
            with layer.tree.directory(path, links=False) as directory:
                _set_owner(path_of(directory.handle), member, layer.noted)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise
    return layer.directories


def _date_directories(tree: RootedTree, named: dict[str, tarfile.TarInfo]) -> None:
    todo = [""]
    while todo:
        with tree.directory(todo.pop(), links=False) as directory:
            entry = named.get(directory.path)
            seconds = 0 if entry is None else _seconds(entry)
            os.utime(path_of(directory.handle), (seconds, seconds))
            todo += [directory.child(name) for name, below in directory.entries() if below]


def _check(member: tarfile.TarInfo) -> None:
    if not (0 <= member.uid < _NOBODY_ELSE and 0 <= member.gid < _NOBODY_ELSE):
        raise StudyError(f"the image entry {member.name!r} belongs to {member.uid}:{member.gid}, which is no owner")
    if member.issym() and (not member.linkname or "\0" in member.linkname):
        raise StudyError(f"the image entry {member.name!r} is a link to nowhere")


def _unpack_entry(tar: tarfile.TarFile, member: tarfile.TarInfo, layer: _Layer) -> None:
    parts = steps(member.name)
    if not parts:
        if not member.isdir():
            raise StudyError(f"the image entry {member.name!r} would replace the image's root")
        return
    if parts[-1].startswith(_WHITEOUT):
        _apply_whiteout(layer, parts)
        return
    with _refusals_explained(member.name), layer.tree.directory("/".join(parts[:-1]), make=True) as directory:
        path = directory.child(parts[-1])
        if path.count("/") >= _MAX_DEPTH:
            raise StudyError(f"the image entry {member.name[:60]!r}… is nested more than {_MAX_DEPTH} deep")
        if _write(tar, member, directory, parts[-1], layer):
            layer.note(path)
            layer.directories.pop(path, None)
            if member.isdir():
                member.pax_headers = {}  # kept to the end of the image, and no longer needed
                layer.directories[path] = member


@contextmanager
def _refusals_explained(name: str) -> Iterator[None]:
    """Turn the kernel's refusal on the way to an entry into a sentence."""
    try:
        yield
    except OSError as error:
        reason = _REFUSALS.get(error.errno or 0)
        if reason is None:
            raise
        raise StudyError(f"the image entry {name!r} {reason}", hint="do not use this image") from error


def _apply_whiteout(layer: _Layer, parts: list[str]) -> None:
    """Remove what lower layers put there; an opaque directory keeps what this layer itself made."""
    name, hidden = "/".join(parts), parts[-1].removeprefix(_WHITEOUT)
    if hidden in ("", ".", ".."):
        raise StudyError(f"the image entry {name!r} hides nothing that has a name")
    nothing_there = suppress(FileNotFoundError, NotADirectoryError)
    with _refusals_explained(name), nothing_there, layer.tree.directory("/".join(parts[:-1])) as directory:
        if parts[-1] == _OPAQUE:
            _clear(layer, directory.path)
        else:
            directory.remove(hidden)


def _clear(layer: _Layer, path: str) -> None:
    todo = [path]
    while todo:
        with layer.tree.directory(todo.pop(), links=False) as directory:
            for name, below in directory.entries():
                if directory.child(name) not in layer.made:
                    directory.remove(name)
                elif below:
                    todo.append(directory.child(name))


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, directory: Directory, name: str, layer: _Layer) -> bool:
    """Make one entry; `False` for a device, which is not made, but removes the entry that it would hide."""
    if member.isdir():
        if not stat.S_ISDIR(directory.mode_of(name) or 0):
            directory.remove(name)
            os.mkdir(name, _PLAIN_DIRECTORY, dir_fd=directory.handle)
        return True
    if member.islnk():
        _hard_link(member, directory, name, layer.tree)
        return True
    directory.remove(name)
    if member.ischr() or member.isblk():
        return False
    if member.issym():
        os.symlink(member.linkname, name, dir_fd=directory.handle)
        if layer.noted is None:
            os.chown(name, member.uid, member.gid, dir_fd=directory.handle, follow_symlinks=False)
        else:
            about = os.stat(name, dir_fd=directory.handle, follow_symlinks=False)
            layer.noted.note(about, Attributes(0, member.uid, member.gid))
        seconds = _seconds(member)
        os.utime(name, (seconds, seconds), dir_fd=directory.handle, follow_symlinks=False)
    elif member.isfifo():
        os.mkfifo(name, 0o600, dir_fd=directory.handle)
        with directory.opened(name) as path:
            _set_owner(path, member, layer.noted)
    elif member.isreg():
        _write_file(tar, member, directory, name, layer.noted)
    else:
        raise StudyError(f"the image entry {member.name!r} is of a kind that tare does not know ({member.type!r})")
    return True


def _hard_link(member: tarfile.TarInfo, directory: Directory, name: str, tree: RootedTree) -> None:
    """Make a hard link, and never a copy instead: a copy would follow whatever has replaced the target."""
    *above, last = steps(member.linkname) or [""]
    try:
        with tree.directory("/".join(above)) as there:
            there.must_have_file(last)
            target, path = there.child(last), directory.child(name)
            if target.startswith(f"{path}/"):
                raise StudyError(f"the image entry {member.name!r} replaces the directory of what it links to")
            if target != path:
                directory.remove(name)
                os.link(last, name, src_dir_fd=there.handle, dst_dir_fd=directory.handle, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StudyError(
            f"the image entry {member.name!r} links to {member.linkname!r}, which is no file before it"
        ) from error


def _write_file(
    tar: tarfile.TarFile, member: tarfile.TarInfo, directory: Directory, name: str, noted: Noted | None
) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise StudyError(f"the image entry {member.name!r} has no content")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, 0o600, dir_fd=directory.handle)
    with source, os.fdopen(handle, "wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)
        target.flush()
        _set_owner(path_of(handle), member, noted)


def _set_plain_owner(path: str, noted: Noted | None) -> None:
    """Set owner and mode of a directory without an entry."""
    if noted is None:
        os.chown(path, 0, 0)
    else:
        noted.note(os.stat(path), Attributes(_PLAIN_DIRECTORY))  # noqa: PTH116 - through a descriptor
    Path(path).chmod(_PLAIN_DIRECTORY)


def _set_owner(path: str, member: tarfile.TarInfo, noted: Noted | None) -> None:
    """Set owner, mode and time of a new file or filled directory.

    Owner first: chown(2) clears set-id bits and capabilities.
    """
    seconds, mode, place = _seconds(member), member.mode & 0o7777, Path(path)
    capability = _capability(member)
    os.utime(path, (seconds, seconds))
    if noted is not None:
        place.chmod(mode_on_disk(mode, directory=member.isdir()))
        noted.note(place.stat(), Attributes(mode, member.uid, member.gid, capability.hex()))
        return
    os.chown(path, member.uid, member.gid)
    place.chmod(mode)
    if capability:
        os.setxattr(path, _CAPABILITY, capability)


def _capability(member: tarfile.TarInfo) -> bytes:
    """Capability of a file; empty if it has none."""
    value = member.pax_headers.get(f"SCHILY.xattr.{_CAPABILITY}") if member.isreg() else None
    return (value or "").encode("utf-8", "surrogateescape")


def _seconds(member: tarfile.TarInfo) -> int:
    """Time of an entry in range, as a tar may hold any number, or none."""
    return int(min(max(member.mtime, 0), _LAST_S)) if math.isfinite(member.mtime) else 0
