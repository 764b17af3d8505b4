"""The digest of an image, and the listing of its tree from which it is computed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from tare.images import ImageConfig
from tare.images.owners import Attributes, Known

_CAPABILITY = "security.capability"
_KINDS = {stat.S_IFDIR: "directory", stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo"}


@dataclass(frozen=True)
class Entry:
    """One path of a tree. `content`: sha256 (hex) of a file, or target of a link. `capability`: in hexadecimal.

    Times and shared inodes are left out, so the same packages give the same listing.
    """

    path: str
    kind: str
    mode: int
    uid: int
    gid: int
    content: str = ""
    capability: str = ""

    @property
    def line(self) -> str:
        """One line of ASCII that equals another's only if the entries are equal.

        Bytes that are not UTF-8 are escaped surrogates.
        """
        return json.dumps(astuple(self), separators=(",", ":")) + "\n"


def list_tree(root: Path, known: Known | None = None) -> Iterator[Entry]:
    """Every directory, file, link and fifo of the tree, `root` itself first as `.`; without sockets and devices.

    `known`: attributes of a tree whose owners are not on disk.
    """
    seen = dict[tuple[int, int], str]()
    for path in _walk(root):
        info = path.lstat()
        kind = _KINDS.get(stat.S_IFMT(info.st_mode))
        if kind is None:
            continue
        content = ""
        if kind == "file":
            content = _content(path, info, seen)
        elif kind == "link":
            content = os.readlink(path)  # noqa: PTH115 - pathlib would tidy it
        name = str(path.relative_to(root))
        has = None if known is None else known.of(name, info)
        if has is None:
            capability = _capability(path) if kind == "file" else ""
            has = Attributes(stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid, capability)
        yield Entry(
            path=name,
            kind=kind,
            mode=0 if kind == "link" else has.mode,
            uid=has.uid,
            gid=has.gid,
            content=content,
            capability=has.capability,
        )


class Listed:
    """Attributes from a complete listing of the tree."""

    def __init__(self, tree: Iterable[Entry]) -> None:
        self._by_path = {each.path: Attributes(each.mode, each.uid, each.gid, each.capability) for each in tree}

    def of(self, path: str, info: os.stat_result) -> Attributes | None:
        """Attributes of a listed path; `None` for another, whose attributes on disk apply."""
        del info
        return self._by_path.get(path)


def image_digest(tree: Iterable[Entry], config: ImageConfig) -> str:
    """sha256 (hex) over the lines of the tree's listing and the configuration: it identifies an image."""
    total = hashlib.sha256(json.dumps(asdict(config), sort_keys=True).encode() + b"\n")
    for entry in tree:
        total.update(entry.line.encode())
    return total.hexdigest()


def parse_listing(text: str) -> Iterator[Entry]:
    """Parse the lines of a listing. Raises `ValueError` or `TypeError` for anything else."""
    return (Entry(*json.loads(line)) for line in text.splitlines())


def first_difference(wanted: Iterable[Entry], actual: Iterable[Entry]) -> str | None:
    """The difference at the first path, by name, in words that follow `the image`; `None` if there is none."""
    left, right = ({entry.path: entry for entry in side} for side in (wanted, actual))
    for path in sorted(left.keys() | right.keys()):
        if left.get(path) != right.get(path):
            return _difference(path, left, right)
    return None


def file_digest(path: Path) -> str:
    """sha256 (hex) of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _difference(path: str, wanted: Mapping[str, Entry], actual: Mapping[str, Entry]) -> str:
    shown = json.dumps("/" if path == "." else f"/{path}", ensure_ascii=not path.isprintable())
    if path not in actual:
        return f"lacks {shown}"
    if path not in wanted:
        return f"has {shown}, which it should not have"
    before, after = wanted[path], actual[path]
    if before.kind != after.kind:
        return f"has a {after.kind} {shown} that should be a {before.kind}"
    pairs = {
        f"with mode {after.mode:04o} instead of {before.mode:04o}": before.mode == after.mode,
        f"owned by {after.uid}:{after.gid} instead of {before.uid}:{before.gid}": (
            (before.uid, before.gid) == (after.uid, after.gid)
        ),
        "leading elsewhere" if before.kind == "link" else "with other content": before.content == after.content,
        "with other capabilities": before.capability == after.capability,
    }
    return f"has {shown} " + ", ".join(words for words, same in pairs.items() if not same)


def _walk(root: Path) -> Iterator[Path]:
    """All paths of a tree, sorted by bytes in any locale. Raises if a path cannot be read; nothing is left out."""
    yield root
    for directory, directories, files in os.walk(os.fsencode(root), onerror=_raise):
        directories.sort()
        for name in sorted([*directories, *files]):
            yield Path(os.fsdecode(directory)) / os.fsdecode(name)


def _raise(error: OSError) -> None:
    raise error


def _content(path: Path, info: os.stat_result, seen: dict[tuple[int, int], str]) -> str:
    key = (info.st_dev, info.st_ino)
    if info.st_nlink == 1:
        return file_digest(path)
    if key not in seen:
        seen[key] = file_digest(path)
    return seen[key]


def _capability(path: Path) -> str:
    try:
        return os.getxattr(path, _CAPABILITY, follow_symlinks=False).hex()
    except OSError:
        return ""
