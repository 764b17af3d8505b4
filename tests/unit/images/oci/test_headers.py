"""Headers of layers that cost their reader far more than their archive is long. Found by attack.

Each was a layer of some kilobytes that kept tare busy for ever, took gigabytes, or ended it with a traceback.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import pytest
from tests.unit.images.tars import Entry, folder, write_tar

from tare.errors import StudyError
from tare.images.oci.layer_stream import open_layer
from tare.images.oci.unpack import unpack

_MIB = 1 << 20
_END = bytes(2 * tarfile.BLOCKSIZE)


def headed(body: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """A header of that kind with its body."""
    entry = tarfile.TarInfo("./PaxHeaders/x")
    entry.type, entry.size = kind, len(body)
    return entry.tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % tarfile.BLOCKSIZE)


def plain(name: str = "x", size: int = 0) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry.tobuf(tarfile.USTAR_FORMAT)


def record(key: str, value: bytes) -> bytes:
    """One record of pax, whose length counts its own digits."""
    rest = b" " + key.encode() + b"=" + value + b"\n"
    length = len(rest) + len(str(len(rest)))
    length = len(rest) + len(str(length))
    return str(length).encode() + rest


def packed(path: Path, parts: Iterable[bytes]) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as archive:
        for part in parts:
            archive.write(part)
    return path


COSTLY: dict[str, Callable[[], list[bytes]]] = {
    "digits": lambda: [headed(record("comment", b"1" * 900_000)), plain(), _END],
    "digits without a key": lambda: [headed(b"1" * 900_000), plain(), _END],
    "short lengths": lambda: [headed(b"2 " * 100_000 + b"="), plain(), _END],
    "one long header": lambda: [headed(record("comment", b"x" * 8 * _MIB)), plain(), _END],
    "one long name": lambda: [headed(b"n" * 8 * _MIB, tarfile.GNUTYPE_LONGNAME), plain(), _END],
    "headers of headers": lambda: [headed(b"") * 1500, plain(), _END],
    "names of names": lambda: [headed(b"n", tarfile.GNUTYPE_LONGNAME) * 600, plain(), _END],
    "global headers": lambda: [
        *(headed(record(f"key{n}", b"x" * 900_000), tarfile.XGLTYPE) + plain(f"f{n}") for n in range(4)), _END,
    ],
    "a map without an end": lambda: [
        headed(record("GNU.sparse.major", b"1") + record("GNU.sparse.minor", b"0")), plain(),
        b"99999999\n" + b"0\n" * 2 * _MIB, _END,
    ],
    "blocks of a map without an end": lambda: [extended(), (bytes(504) + b"\1" + bytes(7)) * 4096, _END],
    "a map that goes back": lambda: [
        headed(record("GNU.sparse.major", b"1") + record("GNU.sparse.minor", b"0")
               + record("GNU.sparse.realsize", b"4096")), plain(size=3 * tarfile.BLOCKSIZE),
        b"2\n1024\n512\n0\n512\n".ljust(3 * tarfile.BLOCKSIZE, b"\0"), _END,
    ],
}  # fmt: skip


def extended() -> bytes:
    """A member of GNU's old sparse format whose map goes on in the next block."""
    entry = tarfile.TarInfo("hole")
    entry.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"00000000000\0" * 2
    header[482:495] = b"\1" + b"%011o\0" % 512
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + sum(header[156:]) + 8 * 0x20)
    return bytes(header)


@pytest.mark.parametrize("name", COSTLY)
def test_costly_headers_are_refused_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "root").mkdir()
    layer = packed(tmp_path / "layer.tar.gz", COSTLY[name]())
    with pytest.raises(StudyError, match="not a complete tar archive"):
        unpack([layer], tmp_path / "root")
    assert list((tmp_path / "root").rglob("*/*")) == []


def test_usual_headers_are_read(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    long = "/".join(["d" * 100] * 8)
    entries = [
        folder(long),
        Entry(f"{long}/é", content=b"x", headers=(("SCHILY.xattr.user.note", "x" * 65_536), ("mtime", "1.5"))),
    ]
    unpack([write_tar(tmp_path / "layer.tar", entries)], tmp_path / "root")
    assert (tmp_path / "root" / long / "é").read_bytes() == b"x"
    assert (tmp_path / "root" / long / "é").stat().st_mtime == 1


def test_gnus_old_map_of_two_pieces_is_read(tmp_path: Path) -> None:
    """Its unused places are zero, and go back to no piece."""
    (tmp_path / "root").mkdir()
    entry = tarfile.TarInfo("hole")
    entry.type, entry.size, entry.mode = tarfile.GNUTYPE_SPARSE, 512, 0o644
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    header[386:434] = b"%011o\0%011o\0" % (4096, 512) + b"%011o\0%011o\0" % (8192, 0)
    header[483:495] = b"%011o\0" % 8192
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + sum(header[156:]) + 8 * 0x20)
    layer = packed(tmp_path / "layer.tar.gz", [bytes(header), b"x" * 512, plain("last"), _END])
    unpack([layer], tmp_path / "root")
    assert (tmp_path / "root" / "hole").read_bytes() == bytes(4096) + b"x" * 512 + bytes(8192 - 4608)


def test_an_entry_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    """tarfile would read it again, for ever."""
    entry = tarfile.TarInfo("back")
    entry.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" * 4 + (-512).to_bytes(8, "big", signed=True)
    header[483:495] = b"%011o\0" % 512
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + sum(header[156:]) + 8 * 0x20)
    layer = packed(tmp_path / "layer.tar.gz", [plain("first"), bytes(header), plain("last"), _END])
    with pytest.raises(StudyError, match="not a complete tar archive"):
        _first_of(layer, 9)


def _first_of(layer: Path, count: int) -> list[tarfile.TarInfo]:
    with open_layer(layer) as archive:
        return list(islice(archive, count))


@pytest.mark.parametrize("letter", ["x", "g", "X"])
def test_content_and_names_that_look_like_a_header_are_read(tmp_path: Path, letter: str) -> None:
    """Byte 156 of a header is its type: the same letter at that place of a body means nothing."""
    (tmp_path / "root").mkdir()
    looks = (letter * 200).encode()
    content = looks.ljust(tarfile.BLOCKSIZE, b".")
    block = tarfile.TarInfo("block")
    block.size, block.mode = len(content), 0o644
    parts = [
        block.tobuf(tarfile.USTAR_FORMAT), content,
        headed(looks, tarfile.GNUTYPE_LONGNAME), plain("short"),
        headed(record("SCHILY.xattr.user.note", looks)), plain("noted"),
        plain("last"), _END,
    ]  # fmt: skip
    unpack([packed(tmp_path / "layer.tar.gz", parts)], tmp_path / "root")
    assert {path.name for path in (tmp_path / "root").iterdir()} == {"block", looks.decode(), "noted", "last"}
    assert (tmp_path / "root" / "block").read_bytes() == content


_UNPACK = """
import resource, sys
from pathlib import Path
from tare.images.oci.unpack import unpack
most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + (128 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
unpack([Path(sys.argv[1])], Path(sys.argv[2]))
"""


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.REGTYPE], ids=["folders", "files"])
def test_entries_with_large_headers_are_not_kept(tmp_path: Path, kind: bytes) -> None:
    """300 entries whose headers have 800 KB each: their reader kept 240 MB, and of a layer of 1 MB as much more."""
    (tmp_path / "root").mkdir()
    head, parts = headed(record("comment", b"x" * 800_000)), list[bytes]()
    for number in range(300):
        entry = tarfile.TarInfo(f"e{number}")
        entry.type, entry.mode = kind, 0o755
        parts += [head, entry.tobuf(tarfile.USTAR_FORMAT)]
    layer = packed(tmp_path / "layer.tar.gz", [*parts, _END])
    argv = [sys.executable, "-c", _UNPACK, str(layer), str(tmp_path / "root")]
    subprocess.run(argv, check=True, capture_output=True, timeout=280)
    assert len(list((tmp_path / "root").iterdir())) == 300
