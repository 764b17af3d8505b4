"""Frames of the agent's stream, as in crates/agent/src/frame.rs: `length u32, id u64, kind u8, payload`.

A message is a head, which is a JSON object whose `data` gives the number of bytes that follow, and frames with
these bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_START = struct.Struct(">IQc")
_COUNTED = _START.size - 4
"""Bytes that the length counts in addition to the payload."""
_MOST_PAYLOAD = 1 << 20
MOST_DATA = 64 << 20
"""Most data of a message; longer files are sent in parts."""


class DamagedStream(Exception):
    """Received bytes are not a frame; the connection cannot be used any more."""


@dataclass(frozen=True)
class Message:
    """One request or answer. `head` does not contain the key `data`."""

    id: int
    head: Mapping[str, Any]
    data: bytes = b""


def encoded(message: Message) -> bytes:
    """Encode a message as frames."""
    head = {**message.head, "data": len(message.data)} if message.data else message.head
    starts = range(0, len(message.data), _MOST_PAYLOAD)
    data = [_frame(message.id, b"D", message.data[start : start + _MOST_PAYLOAD]) for start in starts]
    return b"".join([_frame(message.id, b"H", json.dumps(head).encode()), *data])


def _frame(number: int, kind: bytes, payload: bytes) -> bytes:
    return _START.pack(len(payload) + _COUNTED, number, kind) + payload


def _head(payload: bytes) -> tuple[dict[str, Any], int, list[bytes]]:
    """A message's head, the number of bytes that follow, and those that have come."""
    try:
        head: dict[str, Any] = json.loads(payload)
        wanted = int(head.pop("data", 0))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedStream(f"a head that is none ({type(error).__name__})") from error
    if not 0 <= wanted <= MOST_DATA:
        raise DamagedStream(f"a message of {wanted} bytes")
    return head, wanted, []


class Decoder:
    """Decodes received bytes into complete messages."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._begun: dict[int, tuple[dict[str, Any], int, list[bytes]]] = {}

    def feed(self, received: bytes) -> Sequence[Message]:
        """Messages that these bytes complete. Raises `DamagedStream`."""
        self._waiting += received
        return [
            message for number, kind, payload in self._frames() for message in self._take(number, kind, payload)
        ]

    def _frames(self) -> Iterator[tuple[int, bytes, bytes]]:  # id, kind, payload
        while len(self._waiting) >= _START.size:
            length, number, kind = _START.unpack_from(self._waiting)
            if not _COUNTED <= length <= _COUNTED + _MOST_PAYLOAD:
                raise DamagedStream(f"a frame of {length} bytes")
            if len(self._waiting) < 4 + length:
                return
            payload = bytes(self._waiting[_START.size : 4 + length])
            del self._waiting[: 4 + length]
            yield number, kind, payload

    def _take(self, number: int, kind: bytes, payload: bytes) -> Iterator[Message]:
        if kind == b"H":
            self._begun[number] = _head(payload)
        elif kind == b"D" and number in self._begun:
            self._begun[number][2].append(payload)
        else:
            raise DamagedStream(f"a frame of kind {kind!r} without a head")
        head, wanted, parts = self._begun[number]
        if sum(map(len, parts)) >= wanted:
            del self._begun[number]
            yield Message(number, head, b"".join(parts))
