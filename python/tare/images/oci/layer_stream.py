"""A layer as an archive that is checked for completeness and for the memory that reading it takes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from typing import IO, Any, cast

from tare.errors import StudyError

_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"
_USTAR = slice(257, 262)
_TYPE = slice(156, 157)
_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_NAMES = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_MAX_READ = 16 << 20
"""Largest single read of a file's content."""
_MAX_HEADERS = 1 << 20
"""Most bytes of all headers of one entry: names, extended attributes (64 KiB at most), maps of sparse files."""
_MAX_DIGITS = 256
"""Longest number in an extended header; tarfile's search takes the square of it (CVE-2024-6232)."""
_END = bytes(tarfile.BLOCKSIZE)


@contextmanager
def open_layer(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a layer's tar, plain or compressed by gzip, bzip2 or xz, to read it from front to back.

    Entries are not kept: each is read once. Raises `StudyError`, also for errors found while reading: damage, or an
    end before the end mark.
    """
    with path.open("rb") as file:
        magic = file.read(tarfile.BLOCKSIZE)
    if magic.startswith(_ZSTD) and magic[_USTAR] != b"ustar":
        raise StudyError(f"{path.name} is compressed with zstd", hint="save the image with gzip layers")
    try:
        with _inner(path, magic) as inner, _Stream(inner) as stream, _Archive(stream) as tar:
            yield tar
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise StudyError(f"the image layer {path.name} is not a complete tar archive: {error}") from error


class _Due(Enum):
    """What is read next: a header, the records or the name that it announced, or what belongs to neither."""

    HEADER = auto()
    RECORDS = auto()
    NAME = auto()
    CONTENT = auto()


class _Broken(tarfile.ReadError):
    """The bytes contradict the archive's own headers."""


class _Stream(io.RawIOBase):
    """The stream that tarfile reads. It keeps the last block, which is zeros in a complete archive.

    `headers`: bytes that the headers of one entry may still have; `None` outside of headers. `due`: what tarfile
    reads next of these.
    """

    def __init__(self, inner: IO[bytes] | gzip.GzipFile) -> None:
        super().__init__()
        self._inner = inner
        self.last = b""
        self.headers: int | None = None
        self.due = _Due.CONTENT

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= _MAX_READ or (self.headers is not None and size > self.headers):
            raise _Broken(f"a header claims {size} bytes")
        try:
            self.last = self._inner.read(size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise _Broken(f"it cannot be decompressed: {error}") from error
        if self.headers is not None:
            self.headers -= len(self.last)
            if size != 1:  # that is how tarfile sees whether it is at the archive's end
                self._follow(self.last)
        return self.last

    def _follow(self, read: bytes) -> None:
        """Check the body of an extended header: the read after its header. Another header follows it."""
        if self.due is _Due.HEADER:
            kind = read[_TYPE]
            self.due = _Due.RECORDS if kind in _PAX else _Due.NAME if kind in _NAMES else _Due.CONTENT
            return
        if self.due is _Due.RECORDS:
            _must_be_records(read)
        if self.due is not _Due.CONTENT:
            self.due = _Due.HEADER

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        try:
            return self._inner.seek(offset, whence)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
            raise _Broken(f"it ends or breaks before byte {offset}: {error}") from error

    def tell(self) -> int:
        return self._inner.tell()


class _Archive(tarfile.TarFile):
    """Stricter than tarfile, which takes a damaged header for the end, and goes backwards for a negative size."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        super().__init__(fileobj=stream, mode="r")

    def next(self) -> tarfile.TarInfo | None:
        self._stream.headers, self._stream.due = _MAX_HEADERS, _Due.HEADER
        try:
            member = super().next()
        except RecursionError as error:
            raise _Broken("an entry has too many headers") from error
        finally:
            self._stream.headers = None
        cast("Any", self).members.clear()  # tarfile would keep every entry, with all of its headers
        if sum(len(key) + len(value) for key, value in self.pax_headers.items()) > _MAX_HEADERS:
            raise _Broken("its global headers are too long")
        if member is None and self._stream.last != _END:
            raise _Broken("it ends before its end mark")
        if member is not None and self.offset < member.offset_data:
            raise _Broken(f"{member.name!r} ends before it begins")
        if member is not None and member.size < 0:
            raise _Broken(f"{member.name!r} has a size below zero")
        if member is not None and not _is_ascending(cast("Sequence[tuple[int, int]]", member.sparse or ())):
            raise _Broken(f"{member.name!r} has a map that goes backwards")
        return member


def _is_ascending(pieces: Iterable[tuple[int, int]]) -> bool:
    """Whether the pieces of a sparse file (offset, size) follow each other: going back reads the archive anew."""
    end = 0
    for offset, size in pieces:
        if not offset and not size:  # an unused place of GNU's old map
            continue
        if offset < end or size < 0:
            return False
        end = offset + size
    return True


def _must_be_records(body: bytes) -> None:
    """Raise `_Broken` unless an extended header is records as pax writes them: `LENGTH KEY=VALUE`, and a line end.

    tarfile believes each length: with short ones, it would keep the rest of the header once for each byte.
    """
    at = 0
    while at < len(body) and body[at]:
        blank = body.find(b" ", at, at + 20)
        digits = body[at:blank] if blank > 0 else b""
        end = at + int(digits) if digits.isdigit() else 0
        if not blank < end <= len(body) or body[end - 1 : end] != b"\n" or body.find(b"=", blank, end) < 0:
            raise _Broken("an extended header is no list of records")
        at = end
    if any(len(number) > _MAX_DIGITS for number in re.findall(rb"[0-9]+", body)):
        raise _Broken("an extended header has a number that is too long")


def _inner(path: Path, magic: bytes) -> IO[bytes] | gzip.GzipFile:
    if magic[_USTAR] == b"ustar":  # checked first, as the name of the first entry may begin like anything
        return path.open("rb")
    if magic.startswith(_GZIP):
        return gzip.open(path)
    if magic.startswith(_BZIP2):
        return bz2.open(path)
    if magic.startswith(_XZ):
        return lzma.open(path)
    return path.open("rb")
