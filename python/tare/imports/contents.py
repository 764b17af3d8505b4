"""What is below a directory of results: files, compressed files, members of archives; and their text."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import re
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Protocol, TypeAlias

from tare.errors import StudyError
from tare.store.files import StoreLayout

LARGEST = 64 << 20
"""Largest file or member in bytes, unpacked."""
_MOST_MEMBERS = 100_000
_LARGEST_ARCHIVE = 2 << 30
"""Largest packed tar in bytes, unpacked: it is, into a temporary file."""
_ARCHIVE = re.compile(r"\.(?:tar|tgz|tbz2?|txz|zip|tar\.(?:gz|bz2|xz))$", re.IGNORECASE)
_PACKED = re.compile(r"\.(?:gz|bz2|xz|lzma|zst)$", re.IGNORECASE)
_MAGIC: Mapping[bytes, str] = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_OPENERS: Mapping[str, Callable[[io.BytesIO], gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file),
    "bzip2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
}
_END = "\x01"
_END_FRAME = bytes.fromhex("28b52ffd2001090000") + _END.encode()
"""A frame of zstd with that byte: RFC 8878, 3.1.1, one raw block, one byte of content size."""
_MOST_LINES = 5_000_000
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [^\s:\[\]]+(?:\[\d+\])?: ?",
        rf"{_STAMP} \S+ [^\s:\[\]]+\[\d+\]: ?",
        rf"(?:\[pod/\S+\] )?{_STAMP} (?:(?:stdout|stderr) [FP] )?",
        r"\[pod/\S+\] ?",
        r"[\w.-]+ +\| ?",
    )
)
"""journald (short, ISO), docker and kubectl logs (`--timestamps`, `--prefix`), runtimes' files, docker compose."""
_MOST_LINES_PREFIXED = 0.9
_HEAD_LINES, _FEW_LINES = 60, 7
"""Lines that are looked at; of which more than a tenth have no prefix if the first few have none."""


Archive: TypeAlias = zipfile.ZipFile | tarfile.TarFile


class Readable(Protocol):
    """What content is read from."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes."""
        ...


@dataclass(frozen=True)
class Source:
    """A file of results. `name`: path below the directory, an archive being a folder; `path`: the file itself."""

    path: Path
    name: str
    member: str | None = None
    archive: Archive | None = field(default=None, compare=False, repr=False)
    """The open archive of a member, while `sources` yields it."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which a pattern may match it: its own, and that without the ending of a compression."""
        bare = _PACKED.sub("", self.name)
        return (self.name,) if bare == self.name else (self.name, bare)

    @property
    def path_or_member(self) -> str:
        """Its path, or its name in the archive."""
        return str(self.path) if self.member is None else self.member

    def has(self, other: str) -> bool:
        """Whether another file is there, or in the same archive."""
        return Path(other).exists() if self.member is None else other in _members(self.path)

    def read(self) -> bytes:
        """Unpacked content. Raises `StudyError` for what cannot be read or is too large."""
        try:
            return unpacked(self._packed(), self.name)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile) as error:
            why = getattr(error, "strerror", None) or error
            raise StudyError(
                f"cannot read {self.name}: {why}",
                hint="is the file damaged or cut short? Fetch it again, or remove it",
            ) from error

    def _packed(self) -> bytes:
        if self.member is None or self.archive is None:
            return _whole(self.path)
        return _member(self.archive, self.path, self.member)


def is_archive(name: str) -> bool:
    """Whether a file is named as an archive."""
    return _ARCHIVE.search(name) is not None


def sources(directory: Path, damaged: Callable[[StudyError], None] | None = None) -> Iterator[Source]:
    """Yield every file and member of an archive below the directory, in the order of names; stores are left out.

    `damaged`: takes the error of an archive that cannot be read, which is left out then.
    """
    if not directory.is_dir():
        raise StudyError(f"{directory} is no directory", hint="name the directory with the results to import")
    for name in _files_below(str(directory), told=damaged):
        path = directory / name
        if not is_archive(name):
            yield Source(path, name)
            continue
        with ExitStack() as stack:
            try:
                members = _members(path)
                archive = stack.enter_context(_opened(path, unpack=True))
            except StudyError as error:
                if damaged is None:
                    raise
                damaged(error)
                continue
            yield from (Source(path, f"{name}/{member}", member, archive) for member in members)


def _files_below(
    directory: str, below: str = "", told: Callable[[StudyError], None] | None = None
) -> Iterator[str]:
    """Yield the names of files in order, without those of a store. `told`: takes what is not followed."""
    entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    if any(entry.name == StoreLayout(Path()).database.name for entry in entries):
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files_below(entry.path, f"{below}{entry.name}/", told)
        elif entry.is_file():
            yield below + entry.name
        elif entry.is_dir() and told is not None:
            told(
                StudyError(
                    f"{entry.path} is a link to a directory", hint="copy what it leads to, if it has results"
                )
            )


@contextmanager
def _opened(path: Path, *, unpack: bool = False) -> Iterator[Archive]:
    """An archive. `unpack`: a packed tar as a whole, as each of its members would unpack it up to there."""
    with ExitStack() as stack:
        if zipfile.is_zipfile(path):
            yield stack.enter_context(zipfile.ZipFile(path))
            return
        archive = stack.enter_context(tarfile.open(path))
        if unpack and _is_packed(path):
            archive = stack.enter_context(_plain(archive, stack.enter_context(tempfile.TemporaryFile()), path))
        yield archive


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(8).startswith(tuple(_MAGIC))


def _plain(archive: tarfile.TarFile, place: IO[bytes], path: Path) -> tarfile.TarFile:
    size = 0
    with tarfile.open(fileobj=place, mode="w") as plain:
        for member in archive:
            size += member.size
            if size > _LARGEST_ARCHIVE:
                raise StudyError(
                    f"{path} unpacks to more than {_LARGEST_ARCHIVE >> 30} GiB", hint="unpack what you need"
                )
            if member.isfile():
                plain.addfile(member, archive.extractfile(member))
    place.seek(0)
    return tarfile.open(fileobj=place)


@lru_cache(maxsize=8)
def _members(path: Path) -> list[str]:
    """Names of an archive's files; a link in it, or a name that leads out of it, is no file."""
    try:
        with _opened(path) as archive:
            names = _files_of(archive)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise StudyError(f"cannot read the archive {path}: {error}", hint="fetch it again, or remove it") from error
    if len(names) > _MOST_MEMBERS:
        raise StudyError(f"{path} holds more than {_MOST_MEMBERS} files", hint="unpack what you need")
    return sorted(name for name in names if ".." not in name.split("/") and not name.startswith("/"))


def _files_of(archive: Archive) -> list[str]:
    if isinstance(archive, zipfile.ZipFile):
        return [each.filename for each in archive.infolist() if not each.is_dir()]
    return [each.name for each in archive if each.isfile()]


def _member(archive: Archive, path: Path, member: str) -> bytes:
    if isinstance(archive, zipfile.ZipFile):
        with archive.open(member) as file:
            return _limited(file, member)
    content = archive.extractfile(member)
    if content is None:
        raise StudyError(f"{member} of {path} is no file", hint="unpack the archive, and import the directory")
    with content:
        return _limited(content, member)


def _whole(path: Path) -> bytes:
    with path.open("rb") as file:
        return _limited(file, str(path))


def _limited(file: Readable, name: str) -> bytes:
    raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise StudyError(f"{name} is larger than {LARGEST >> 20} MiB", hint="is this a generator's output?")
    return raw


def unpacked(raw: bytes, name: str) -> bytes:
    """Content without its compression. Raises as the libraries do for damaged data."""
    packing = next((name for magic, name in _MAGIC.items() if raw.startswith(magic)), None)
    if packing is None:
        return raw
    if packing == "zstd":
        return _zstd(raw, name)
    with _OPENERS[packing](io.BytesIO(raw)) as file:
        return _limited(file, name)


def _zstd(raw: bytes, name: str) -> bytes:
    """Unpack zstd by Polars, which reads lines: one more frame shows whether the last line has its end."""
    import polars as pl
    from polars.exceptions import PolarsError

    try:
        lines = pl.read_lines(io.BytesIO(raw + _END_FRAME), n_rows=_MOST_LINES)["line"].to_list()
    except PolarsError as error:
        raise StudyError(f"cannot read {name}: {error}", hint="is the file damaged? Fetch it again") from error
    text = "\n".join(line or "" for line in lines)
    if not text.endswith(_END) or len(text) > LARGEST:
        raise StudyError(f"{name} is larger than {LARGEST >> 20} MiB, or cut short", hint="unpack it, and look")
    return text.removesuffix(_END).encode()


def text_of(raw: bytes) -> str | None:
    """Text in UTF-8 or, with its mark, UTF-16 or UTF-32, without prefixes of lines; `None` for what is no text.

    Lines end as in Unix. A carriage return alone is kept: generators overwrite a line with it.
    """
    marks = ((b"\xff\xfe\0\0", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
    encoding = next((name for mark, name in marks if raw.startswith(mark)), None)
    if encoding is None and b"\0" in raw:
        return None
    text = raw.decode(encoding or "utf-8-sig", errors="replace")
    return without_prefixes(text.replace("\r\n", "\n"))


def without_prefixes(text: str) -> str:
    """Text without what a log puts before each line (journald, docker, kubectl), if nearly all lines have it."""
    head = [line for line in text[:20_000].split("\n")[:_HEAD_LINES] if line.strip()]
    if len(head) > 2 and all(line.startswith('{"log":') for line in head[:-1]):
        return "".join(_logged(line) for line in text.split("\n"))
    if not any(prefix.match(line) for line in head[:_FEW_LINES] for prefix in _PREFIXES):
        return text
    for prefix in _PREFIXES:
        if len(head) > 2 and sum(prefix.match(line) is not None for line in head) >= _MOST_LINES_PREFIXED * len(
            head
        ):
            return "\n".join(prefix.sub("", line, count=1) for line in text.split("\n"))
    return text


def _logged(line: str) -> str:
    """Line of docker's json-file log driver; one that is cut short is left out."""
    try:
        entry = json.loads(line)
    except ValueError:
        return ""
    return str(entry.get("log", "")) if isinstance(entry, dict) else ""
