"""Rows that tare-probe has not put into its journal yet, read where they wait: docs/reference/trace-journal.md."""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from tare.live.journal import ABSENT, COLUMNS, TABLES, Row

DIRECTORY = Path("/dev/shm")  # noqa: S108  (only read, by a name drawn at random)
"""Where tails are, whatever a journal says."""
_HEAD_BYTES = 4096
_MAGIC, _VERSION = b"TARETAIL", 1
_CAPACITY_AT, _WRITTEN_AT = 6, 16
_FRAME_NS = 450_000_000
"""As long as a frame of the journal is at most, so that samples lie equally close."""
_KEYS = 3


def waiting(facts: Mapping[str, Any] | None, upto: int) -> Iterator[tuple[Row, ...]]:
    """The newest row of each target, every half second, of what comes after a position of the tail.

    `facts`: what the journal's header says of its tail. Nothing where it cannot be read, as on another machine.
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


_WOKE = COLUMNS["tick"].index("woke_ns")


def _read(ident: UUID, boot: UUID, upto: int) -> bytes:
    """The words from a position up to the last whole row."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(DIRECTORY / f"tare-probe-{ident}.tail", flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("no plain file")
        head = struct.unpack(f"<{_HEAD_BYTES // 8}Q", file.read(_HEAD_BYTES))
        wanted = struct.pack("<8s5Q", _MAGIC, _VERSION, *_halves(ident), *_halves(boot))
        if struct.pack("<6Q", *head[:6]) != wanted:
            raise ValueError("another tail")
        capacity, written = head[_CAPACITY_AT], head[_WRITTEN_AT]
        if not 0 <= written - upto <= capacity:
            raise ValueError("the journal has moved on")
        first = upto % capacity
        whole = os.pread(file.fileno(), 8 * min(written - upto, capacity - first), _HEAD_BYTES + 8 * first)
        return whole + os.pread(file.fileno(), 8 * (written - upto) - len(whole), _HEAD_BYTES)


def _halves(ident: UUID) -> tuple[int, int]:
    return ident.int >> 64, ident.int & ABSENT


def _rows(content: bytes, upto: int) -> Iterator[Row]:
    """Rows up to the first that is not whole: room is used again while this reads."""
    words, at = struct.unpack(f"<{len(content) // 8}Q", content), 0
    while at < len(words):
        length, checksum = words[at] >> 32, words[at] & 0xFFFFFFFF
        told = struct.pack("<Q", upto + at) + content[8 * at + 8 : 8 * (at + length)]
        if length < _KEYS or zlib.crc32(told) != checksum:
            return
        table, target = TABLES[words[at + 1] >> 32], words[at + 1] & 0xFFFFFFFF
        cells = words[at + _KEYS : at + length]
        yield Row(table, target, words[at + 2], tuple(None if cell == ABSENT else cell for cell in cells))
        at += length
