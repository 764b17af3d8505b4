"""Read the journal that tare-probe writes while a run lasts: docs/reference/trace-journal.md.

A frame of rows is independent of others, so most frames can be skipped: the page needs one reading a second, not
ten.
"""

from __future__ import annotations

import json
import os
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

_PREAMBLE = struct.Struct("<8sI")
_HEAD = struct.Struct("<IBI")
_JOURNAL_MAGIC = b"TAREPRB\n"
_HEADER, _TARGET, _ROWS = 1, 2, 3
_LARGEST_FRAME = 16 << 20
_VERSIONS = (1, 2)
_POSITION = struct.Struct("<Q")
"""Start of a frame of rows, from version 2 on."""
ABSENT = (1 << 64) - 1

COLUMNS: Mapping[str, tuple[str, ...]] = json.loads(
    Path(__file__).with_name("journal_columns.json").read_text(encoding="utf-8")
)
"""Table → its columns, both in the order in which the journal numbers them."""
TABLES = tuple(COLUMNS)


DIRECTORY = Path("/dev/shm")  # noqa: S108  (only read, by a name drawn at random)
"""Directory of the tails, whatever a journal says."""
_HEAD_BYTES = 4096
_TAIL_MAGIC, _VERSION = b"TARETAIL", 1
_CAPACITY_AT, _WRITTEN_AT = 6, 16
_FRAME_NS = 450_000_000
"""Longest duration of a frame of the journal, so that samples are equally spaced."""
_KEYS = 3


_WOKE = COLUMNS["tick"].index("woke_ns")


def waiting(facts: Mapping[str, Any] | None, upto: int) -> Iterator[tuple[Row, ...]]:
    """Newest row of each target, every half second, after a position of the tail.

    `facts`: description of the tail in the journal's header. Empty if the tail cannot be read, as on another
    machine.
    """
    if facts is None:
        return
    try:
        content = _read(UUID(facts["id"]), UUID(facts["boot_id"]), upto)
    except (OSError, struct.error, ValueError, KeyError, TypeError):
        return
    newest: dict[tuple[str, int], Row] = {}
    sealed_ns = 0
    for row in _rows(content, upto):
        newest[row.table, row.target] = row
        woke_ns = row.cells[_WOKE] if row.table == "tick" else None
        if woke_ns is not None and woke_ns >= sealed_ns + _FRAME_NS:
            sealed_ns = woke_ns
            yield tuple(newest.values())
            newest = {}


def _read(ident: UUID, boot: UUID, upto: int) -> bytes:
    """Read from a position up to the last complete row."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(DIRECTORY / f"tare-probe-{ident}.tail", flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("no plain file")
        head = struct.unpack(f"<{_HEAD_BYTES // 8}Q", file.read(_HEAD_BYTES))
        wanted = struct.pack("<8s5Q", _TAIL_MAGIC, _VERSION, *_two_words(ident), *_two_words(boot))
        if struct.pack("<6Q", *head[:6]) != wanted:
            raise ValueError("another tail")
        capacity, written = head[_CAPACITY_AT], head[_WRITTEN_AT]
        if not 0 <= written - upto <= capacity:
            raise ValueError("the journal has moved on")
        first = upto % capacity
        whole = os.pread(file.fileno(), 8 * min(written - upto, capacity - first), _HEAD_BYTES + 8 * first)
        return whole + os.pread(file.fileno(), 8 * (written - upto) - len(whole), _HEAD_BYTES)


def _two_words(ident: UUID) -> tuple[int, int]:
    return ident.int >> 64, ident.int & ABSENT


def _rows(content: bytes, upto: int) -> Iterator[Row]:
    """Parse rows up to the first incomplete one: the tail is overwritten while this reads."""
    words, at = struct.unpack(f"<{len(content) // 8}Q", content), 0
    while at < len(words):
        length, checksum = words[at] >> 32, words[at] & 0xFFFFFFFF
        rows = struct.pack("<Q", upto + at) + content[8 * at + 8 : 8 * (at + length)]
        if length < _KEYS or zlib.crc32(rows) != checksum:
            return
        table, target = TABLES[words[at + 1] >> 32], words[at + 1] & 0xFFFFFFFF
        cells = words[at + _KEYS : at + length]
        yield Row(table, target, words[at + 2], tuple(None if cell == ABSENT else cell for cell in cells))
        at += length


class NotReadable(Exception):
    """The journal is missing, damaged or of another version."""


@dataclass(frozen=True)
class Row:
    """One row of one target; `None` in a cell: not read, or not provided by the kernel."""

    table: str
    target: int
    tick: int
    cells: tuple[int | None, ...]


@dataclass
class Journal:
    """Reads a journal from where it stopped last time. `header`: as the probe wrote it.

    `upto`: position in the tail that it has reached. `targets`: number → name. `cgroups`: name → path of the latest
    control group with that name.
    """

    path: Path
    offset: int = 0
    version: int = 0
    upto: int = 0
    header: Mapping[str, Any] | None = None
    targets: dict[int, str] = field(default_factory=dict)
    cgroups: dict[str, str] = field(default_factory=dict)

    def frames(self) -> Iterator[bytes]:
        """Payloads of new frames of rows; a frame that is still being written is left for the next call.

        Raises `NotReadable`.
        """
        try:
            with self.path.open("rb") as file:
                end = os.fstat(file.fileno()).st_size
                self._begin(file.read(_PREAMBLE.size))
                file.seek(self.offset)
                while self.offset + _HEAD.size <= end:
                    length, kind, checksum = _HEAD.unpack(file.read(_HEAD.size))
                    if self.offset + _HEAD.size + length > end:
                        return
                    if length > _LARGEST_FRAME:
                        raise NotReadable(f"a frame of {length} bytes")
                    payload = file.read(length)
                    if zlib.crc32(payload, zlib.crc32(bytes([kind]))) != checksum:
                        raise NotReadable("a frame does not fit its checksum")
                    self.offset += _HEAD.size + length
                    if kind == _ROWS:
                        yield self._rows(payload)
                    else:
                        self._note(kind, payload)
        except (OSError, struct.error, ValueError, KeyError, TypeError) as error:
            raise NotReadable(str(error)) from error

    def _begin(self, preamble: bytes) -> None:
        magic, self.version = _PREAMBLE.unpack(preamble)
        if magic != _JOURNAL_MAGIC or self.version not in _VERSIONS:
            raise NotReadable(f"a journal of version {self.version}")
        self.offset = max(self.offset, _PREAMBLE.size)

    def _rows(self, payload: bytes) -> bytes:
        if self.version == 1:
            return payload
        (self.upto,) = _POSITION.unpack_from(payload)
        return payload[_POSITION.size :]

    def _note(self, kind: int, payload: bytes) -> None:
        if kind == _HEADER:
            self.header = json.loads(payload)
        elif kind == _TARGET:
            target = json.loads(payload)
            self.targets[int(target["id"])] = str(target["name"])
            if target["kind"] == "cgroup":
                self.cgroups[str(target["name"])] = str(target["detail"])


def newest_rows(payload: bytes) -> Iterator[Row]:
    """Last row of each target of each table in a frame. Raises `NotReadable`."""
    newest: dict[tuple[int, int], list[int]] = {}
    ticks: dict[tuple[int, int], int] = {}
    at = 0
    try:
        while at < len(payload):
            table, at = _varint(payload, at)
            target, at = _varint(payload, at)
            tick, at = _varint(payload, at)
            width = len(COLUMNS[TABLES[table]])
            cells = newest.setdefault((table, target), [0] * width)
            ticks[table, target] = tick
            bitmap, at = payload[at : at + (width + 7) // 8], at + (width + 7) // 8
            for cell in range(width):
                if bitmap[cell >> 3] >> (cell & 7) & 1:
                    coded, at = _varint(payload, at)
                    cells[cell] = (cells[cell] + ((coded >> 1) ^ -(coded & 1))) & ABSENT
    except IndexError as error:
        raise NotReadable("a frame that is not what tare-probe writes") from error
    for (table, target), cells in newest.items():
        kept = tuple(None if cell == ABSENT else cell for cell in cells)
        yield Row(TABLES[table], target, ticks[table, target], kept)


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = payload[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
