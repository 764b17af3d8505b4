"""Archives as tests want them, hostile ones too: what tarfile would never write by itself."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """One member. `kind` is a type of tarfile (`tarfile.REGTYPE`, …); owner: the user's own."""

    name: str
    kind: bytes = tarfile.REGTYPE
    content: bytes = b""
    target: str = ""
    mode: int = 0o644
    uid: int = os.geteuid()
    gid: int = os.getegid()
    device: tuple[int, int] = (0, 0)
    headers: tuple[tuple[str, str], ...] = ()
    claimed_size: int | None = None
    changed: float = 0

    @property
    def member(self) -> tarfile.TarInfo:
        made = tarfile.TarInfo(self.name)
        made.type, made.linkname, made.mode = self.kind, self.target, self.mode
        made.uid, made.gid = self.uid, self.gid
        made.devmajor, made.devminor = self.device
        made.size = len(self.content) if self.claimed_size is None else self.claimed_size
        made.pax_headers, made.mtime = dict(self.headers), self.changed
        return made


def file(name: str, content: bytes = b"x", mode: int = 0o644) -> Entry:
    return Entry(name, content=content, mode=mode)


def folder(name: str, mode: int = 0o755) -> Entry:
    return Entry(name, kind=tarfile.DIRTYPE, mode=mode)


def link(name: str, target: str) -> Entry:
    return Entry(name, kind=tarfile.SYMTYPE, target=target, mode=0o777)


def hard_link(name: str, target: str) -> Entry:
    return Entry(name, kind=tarfile.LNKTYPE, target=target)


def write_tar(path: Path, entries: Iterable[Entry], mode: str = "w") -> Path:
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]  # the mode is a text here
        for entry in entries:
            tar.addfile(entry.member, io.BytesIO(entry.content) if entry.content else None)
    return path
