"""Unpack layers into a directory, safely: nothing outside of it is ever read, written or linked to.

Names are walked as a program whose root is the directory would walk them, so a link in the image that points
to `/etc` or to `../../..` leads to a place inside. Names with `..` are refused, since no honest layer has them.
Devices are not made: /dev is a matter of the deployment. Whiteouts are as in the OCI image specification.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from tare.errors import StudyError

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_MAX_LINKS = 40
_XATTR = "SCHILY.xattr."
_KEPT_XATTRS = ("security.capability",)
_SETID = stat.S_ISUID | stat.S_ISGID


def unpack(layers: Iterable[Path], root: Path) -> None:
    """Apply the layers in order to the empty directory `root`. Raises `StudyError` naming the bad entry."""
    for layer in layers:
        try:
            with tarfile.open(layer) as tar:
                _apply(tar, root)
        except (tarfile.TarError, EOFError) as error:
            raise StudyError(f"the image layer {layer.name} is no whole tar archive: {error}") from error


def place(root: Path, name: str, *, follow_last: bool = False) -> Path:
    """Where `name` lies below `root`, following links on the way without ever leaving `root`."""
    todo = _parts(name)[::-1]
    here: list[str] = []
    links = 0
    while todo:
        part = todo.pop()
        if part == "..":
            del here[-1:]
            continue
        path = root.joinpath(*here, part)
        if (todo or follow_last) and path.is_symlink():
            links += 1
            if links > _MAX_LINKS:
                raise StudyError(f"the image entry {name!r} goes through too many links")
            target = PurePosixPath(path.readlink())
            here = [] if target.is_absolute() else here
            todo += [step for step in target.parts[::-1] if step not in ("/", ".")]
            continue
        here.append(part)
    return root.joinpath(*here)


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name:
        raise StudyError(f"the image entry {name!r} would leave the image's root", hint="do not use this image")
    return parts


def _apply(tar: tarfile.TarFile, root: Path) -> None:
    made: set[Path] = set()
    directories: list[tuple[Path, tarfile.TarInfo]] = []
    for member in tar:
        parts = _parts(member.name)
        if not parts:
            directories.append((root, member))
            continue
        if parts[-1].startswith(_WHITEOUT):
            _white_out(root, "/".join(parts), made)
            continue
        path = place(root, member.name)
        if _write(tar, member, path, root):
            made.add(path)
            if member.isdir():
                directories.append((path, member))
    for path, member in reversed(directories):  # last, so that a read-only directory can be filled first
        _own(path, member)


def _white_out(root: Path, name: str, made: set[Path]) -> None:
    """Remove what lower layers put there; what this layer itself made stays."""
    parent, last = PurePosixPath(name).parent, PurePosixPath(name).name
    directory = place(root, str(parent), follow_last=True) if str(parent) != "." else root
    if last != _OPAQUE:
        hidden = last.removeprefix(_WHITEOUT)
        if hidden in ("", ".", ".."):
            raise StudyError(
                f"the image entry {name!r} hides nothing that has a name", hint="do not use this image"
            )
        _remove(directory / hidden)
        return
    if directory.is_dir():
        for child in directory.iterdir():
            if child not in made:
                _remove(child)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path, root: Path) -> bool:
    """Make one entry; `False` for those that are passed over."""
    if member.ischr() or member.isblk():
        return False
    if path.parent.exists() and not path.parent.is_dir():
        raise StudyError(f"the image entry {member.name!r} lies below something that is no directory")
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.isdir():
        if path.is_symlink() or not path.is_dir():
            _remove(path)
            path.mkdir()
        return True
    _remove(path)
    if member.issym():
        path.symlink_to(member.linkname)
        os.lchown(path, member.uid, member.gid)
    elif member.islnk():
        _hard_link(member, path, root)
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
    path.hardlink_to(target)


def _write_file(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise StudyError(f"the image entry {member.name!r} has no content")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with source, os.fdopen(handle, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    _own(path, member)


def _own(path: Path, member: tarfile.TarInfo) -> None:
    """Owner first: chown(2) clears the set-id bits and the capabilities."""
    if os.geteuid() == 0:
        os.lchown(path, member.uid, member.gid)
    mode = member.mode & 0o7777
    path.chmod(mode if os.geteuid() == 0 else mode & ~_SETID)
    for name in _KEPT_XATTRS:
        value = member.pax_headers.get(_XATTR + name)
        if value is not None and os.geteuid() == 0:
            os.setxattr(path, name, value.encode("utf-8", "surrogateescape"), follow_symlinks=False)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
