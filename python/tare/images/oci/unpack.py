"""Unpack layers into a directory, safely: nothing outside of it is ever read, written, changed or linked to."""

from __future__ import annotations

import math
import os
import shutil
import stat
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tare.errors import StudyError
from tare.images.oci.layer_stream import open_layer

_MAX_LINKS = 40
_MAX_DEPTH = 256
"""Far above any honest image, and far below what path lengths and Python's own stack allow."""


def steps(name: str) -> list[str]:
    """The name's parts, `[]` for the root itself. Raises `StudyError` for one that no layer should hold."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name:
        raise StudyError(f"the image entry {name!r} would leave the image's root", hint="do not use this image")
    if len(parts) > _MAX_DEPTH:
        raise StudyError(f"the image entry {name[:60]!r}… is nested more than {_MAX_DEPTH} deep")
    return parts


def place(root: Path, name: str, *, follow_last: bool = False) -> Path:
    """The path of `name` below `root`; no part of it but perhaps the last one is a symbolic link."""
    todo = steps(name)[::-1]
    here: list[str] = []
    links = 0
    while todo:
        part = todo.pop()
        if part == "..":
            del here[-1:]
            continue
        path = root.joinpath(*here, part)
        if not (todo or follow_last) or not path.is_symlink():
            here.append(part)
            continue
        links += 1
        target = os.readlink(path)  # noqa: PTH115 - pathlib would tidy it
        if links > _MAX_LINKS or len(here) > _MAX_DEPTH:
            raise StudyError(f"the image entry {name!r} goes through too many links")
        here = [] if target.startswith("/") else here
        # Split by hand: pathlib keeps the two slashes of "//etc", and joined to the root they would replace it.
        todo += [step for step in reversed(target.split("/")) if step not in ("", ".")]
    if len(here) > _MAX_DEPTH:
        raise StudyError(f"the image entry {name[:60]!r}… is nested more than {_MAX_DEPTH} deep")
    return root.joinpath(*here)


MAX_BYTES = 64 << 30
MAX_ENTRIES = 4_000_000
"""Of one image, all layers together; more than that is no database but an attempt to fill the disk."""

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_XATTR = "SCHILY.xattr."
_KEPT_XATTRS = ("security.capability",)
_SETID = stat.S_ISUID | stat.S_ISGID
_NOBODY_ELSE = 2**32 - 1
"""-1 as an id: chown(2) would leave the owner as it is."""
_LAST_S = 2**33
"""As late as a time of change may be, in the year 2242: far below what a file system or a tar cannot hold."""
_CHUNK = 1 << 20
_PLAIN_DIRECTORY = 0o755


@dataclass
class _Budget:
    entries: int = MAX_ENTRIES
    size_bytes: int = MAX_BYTES

    def spend(self, member: tarfile.TarInfo) -> None:
        self.entries -= 1
        self.size_bytes -= member.size if member.isreg() else 0
        if self.entries < 0 or self.size_bytes < 0:
            raise StudyError(
                f"the image holds more than {MAX_ENTRIES} entries or {MAX_BYTES >> 30} GiB (at {member.name!r})",
                hint="do not use this image",
            )


@dataclass
class _Layer:
    """What one layer has put into `root` so far."""

    root: Path
    made: set[Path] = field(default_factory=set)
    directories: dict[Path, tarfile.TarInfo] = field(default_factory=dict)

    def note(self, path: Path) -> None:
        """The entry, and the directories that lead to it."""
        while path != self.root and path not in self.made:
            self.made.add(path)
            path = path.parent


def unpack(layers: Iterable[Path], root: Path) -> None:
    """Apply the layers in order to the empty directory `root`. Raises `StudyError` naming what is bad.

    Owners are kept where the user is root. The root directory itself is always root's with mode 0755, as in a
    container; so are directories that an entry needs and the archive does not hold. No umask counts.
    Directories bear the time of their last entry, those without one the time 0: two unpackings are the same.
    """
    if os.geteuid() == 0:
        os.chown(root, 0, 0)
    root.chmod(_PLAIN_DIRECTORY)
    budget, named = _Budget(), dict[Path, tarfile.TarInfo]()
    for path in layers:
        with open_layer(path) as tar:
            named |= _apply(tar, root, budget)
    for directory, _, _ in os.walk(root):
        entry = named.get(Path(directory))
        seconds = 0 if entry is None else _seconds(entry)
        os.utime(directory, (seconds, seconds))


def _apply(tar: tarfile.TarFile, root: Path, budget: _Budget) -> dict[Path, tarfile.TarInfo]:
    """The entries of directories, by path."""
    layer = _Layer(root)
    for member in tar:
        budget.spend(member)
        _check(member)
        _enter(tar, member, layer)
    # Last, so that a read-only directory can be filled first; it may have been replaced, by a link even.
    for path, member in reversed(layer.directories.items()):
        if path == place(root, str(path.relative_to(root))):
            _own_directory(path, member)
    return layer.directories


def _check(member: tarfile.TarInfo) -> None:
    if not (0 <= member.uid < _NOBODY_ELSE and 0 <= member.gid < _NOBODY_ELSE):
        raise StudyError(f"the image entry {member.name!r} belongs to {member.uid}:{member.gid}, which is no owner")
    if member.issym() and (not member.linkname or "\0" in member.linkname):
        raise StudyError(f"the image entry {member.name!r} is a link to nowhere")


def _enter(tar: tarfile.TarFile, member: tarfile.TarInfo, layer: _Layer) -> None:
    parts = steps(member.name)
    if not parts:
        if not member.isdir():
            raise StudyError(f"the image entry {member.name!r} would replace the image's root")
        return
    if parts[-1].startswith(_WHITEOUT):
        _white_out(layer, parts)
        return
    path = place(layer.root, member.name)
    _make_parents(path, layer.root, member.name)
    if _write(tar, member, path, layer.root):
        layer.note(path)
        layer.directories.pop(path, None)
        if member.isdir():
            layer.directories[path] = member


def _white_out(layer: _Layer, parts: list[str]) -> None:
    """Remove what lower layers put there; what this layer itself made stays with an opaque directory."""
    directory = place(layer.root, "/".join(parts[:-1]), follow_last=True)
    hidden = parts[-1].removeprefix(_WHITEOUT)
    if hidden in ("", ".", ".."):
        raise StudyError(f"the image entry {'/'.join(parts)!r} hides nothing that has a name")
    if not directory.is_dir():
        return
    if parts[-1] != _OPAQUE:
        _remove(directory / hidden)
        return
    todo = [directory]
    while todo:
        for child in list(todo.pop().iterdir()):
            if child not in layer.made:
                _remove(child)
            elif child.is_dir() and not child.is_symlink():
                todo.append(child)


def _make_parents(path: Path, root: Path, name: str) -> None:
    missing = []
    for parent in path.parents:
        if parent == root or parent.is_dir():
            break
        if parent.exists():
            raise StudyError(f"the image entry {name!r} lies below something that is no directory")
        missing.append(parent)
    for parent in reversed(missing):
        parent.mkdir()
        parent.chmod(_PLAIN_DIRECTORY)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path, root: Path) -> bool:
    """Make one entry; `False` for a device, of which only what it would have hidden goes."""
    if member.isdir():
        if path.is_symlink() or not path.is_dir():
            _remove(path)
            path.mkdir()
        return True
    if member.islnk():
        _hard_link(member, path, root)
        return True
    _remove(path)
    if member.ischr() or member.isblk():
        return False
    if member.issym():
        path.symlink_to(member.linkname)
        os.lchown(path, member.uid, member.gid)
        _date(path, member)
    elif member.isfifo():
        os.mkfifo(path)
        _own(path, member)
    elif member.isreg():
        _write_file(tar, member, path)
    else:
        raise StudyError(f"the image entry {member.name!r} is of a kind that tare does not know ({member.type!r})")
    return True


def _hard_link(member: tarfile.TarInfo, path: Path, root: Path) -> None:
    target = place(root, member.linkname)
    if target.is_symlink() or not target.is_file():
        raise StudyError(
            f"the image entry {member.name!r} links to {member.linkname!r}, which is no file before it"
        )
    if path in target.parents:
        raise StudyError(f"the image entry {member.name!r} replaces the directory of what it links to")
    if target != path:
        _remove(path)
        path.hardlink_to(target)


def _write_file(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise StudyError(f"the image entry {member.name!r} has no content")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with source, os.fdopen(handle, "wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)
    _own(path, member)


def _own(path: Path, member: tarfile.TarInfo) -> None:
    """Of a file just made, or a filled directory. Owner first: chown(2) clears set-id bits and capabilities."""
    _date(path, member)
    mode = member.mode & 0o7777
    if os.geteuid() != 0:
        path.chmod(mode & ~_SETID)
        return
    os.lchown(path, member.uid, member.gid)
    path.chmod(mode)
    for name in _KEPT_XATTRS:
        value = member.pax_headers.get(_XATTR + name)
        if value is not None and member.isreg():
            os.setxattr(path, name, value.encode("utf-8", "surrogateescape"), follow_symlinks=False)


def _date(path: Path, member: tarfile.TarInfo) -> None:
    seconds = _seconds(member)
    os.utime(path, (seconds, seconds), follow_symlinks=False)


def _seconds(member: tarfile.TarInfo) -> int:
    """A tar may tell any number, and none."""
    return int(min(max(member.mtime, 0), _LAST_S)) if math.isfinite(member.mtime) else 0


def _own_directory(path: Path, member: tarfile.TarInfo) -> None:
    if path.is_dir() and not path.is_symlink():
        _own(path, member)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
