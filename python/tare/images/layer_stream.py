"""A layer as a stream of bytes: decompressed, and never asked to hold more than a little of it in memory."""

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
_MAX_READ = 16 << 20
"""A header that claims more than this would be read into memory whole; extended attributes take kilobytes."""
_END = bytes(tarfile.BLOCKSIZE)


class Broken(tarfile.ReadError):
    """The bytes are not what the archive says they are."""


class LayerStream(io.RawIOBase):
    """What tarfile reads from. It remembers the last block, which in a whole archive is one of zeros."""

    def __init__(self, inner: IO[bytes] | gzip.GzipFile) -> None:
        super().__init__()
        self._inner = inner
        self._last = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """As a file's, with one kind of error for whatever is wrong with the bytes."""
        if not 0 <= size <= _MAX_READ:
            raise Broken(f"a header claims {size} bytes")
        try:
            self._last = self._inner.read(size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise Broken(f"it cannot be decompressed: {error}") from error
        return self._last

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """As a file's."""
        try:
            return self._inner.seek(offset, whence)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
            raise Broken(f"it ends or breaks before byte {offset}: {error}") from error

    def tell(self) -> int:
        """As a file's."""
        return self._inner.tell()

    def must_have_ended(self) -> None:
        """Only a block of zeros ends an archive; tarfile takes a damaged or missing header for the end too."""
        if self._last != _END:
            raise Broken("it ends before its end mark")


@contextmanager
def open_layer(path: Path) -> Iterator[LayerStream]:
    """The layer's tar, whatever it is compressed with; zstd is refused."""
    with path.open("rb") as file:
        magic = file.read(len(_XZ))
    if magic.startswith(_ZSTD):
        raise StudyError(f"{path.name} is compressed with zstd", hint="save the image with gzip layers")
    with _inner(path, magic) as inner, LayerStream(inner) as stream:
        yield stream


def _inner(path: Path, magic: bytes) -> IO[bytes] | gzip.GzipFile:
    if magic.startswith(_GZIP):
        return gzip.open(path)
    if magic.startswith(_BZIP2):
        return bz2.open(path)
    if magic.startswith(_XZ):
        return lzma.open(path)
    return path.open("rb")
