"""A layer as an archive that is checked for completeness and for the memory that reading it takes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tare.errors import StudyError

_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"
_USTAR = slice(257, 262)
_MAX_READ = 16 << 20
"""Largest single read. A header that claims more would be read into memory at once; extended attributes take
kilobytes."""
_END = bytes(tarfile.BLOCKSIZE)


@contextmanager
def open_layer(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a layer's tar, plain or compressed by gzip, bzip2 or xz, to read it from front to back.

    Raises `StudyError`, also for errors found while reading: damage, or an end before the end mark.
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


class _Broken(tarfile.ReadError):
    """The bytes contradict the archive's own headers."""


class _Stream(io.RawIOBase):
    """The stream that tarfile reads. It keeps the last block, which is zeros in a complete archive."""

    def __init__(self, inner: IO[bytes] | gzip.GzipFile) -> None:
        super().__init__()
        self._inner = inner
        self.last = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= _MAX_READ:
            raise _Broken(f"a header claims {size} bytes")
        try:
            self.last = self._inner.read(size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise _Broken(f"it cannot be decompressed: {error}") from error
        return self.last

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
        member = super().next()
        if member is None and self._stream.last != _END:
            raise _Broken("it ends before its end mark")
        if member is not None and member.size < 0:
            raise _Broken(f"{member.name!r} has a size below zero")
        return member


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
