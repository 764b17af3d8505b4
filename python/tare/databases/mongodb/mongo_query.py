"""A client for MongoDB's wire protocol: the Python of a server's root runs this source.

Each command is one OP_MSG with BSON documents (the public specifications of both). Arguments: address, port, the
authority's certificate (empty without TLS), then commands as Python literals. Each answer is printed as one line
with a Python literal; values without a literal are printed as text.
"""

from __future__ import annotations

import ast
import socket
import ssl
import struct
import sys
from collections.abc import Mapping
from typing import Protocol

_OP_MSG = 2013
_HEADER = struct.Struct("<iiii")
_LARGEST = 48_000_000
_TIMEOUT_S = 5.0


class Stream(Protocol):
    """Both directions of a connection."""

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes, or fewer at the end of the stream."""
        ...

    def write(self, data: bytes, /) -> int:
        """Buffer data for sending."""
        ...

    def flush(self) -> None:
        """Send what is buffered."""
        ...


def ask(stream: Stream, command: Mapping[str, object]) -> Mapping[str, object]:
    """Send one command to the database `admin` and return its answer; `ValueError` if the answer is malformed."""
    body = struct.pack("<iB", 0, 0) + encode({**command, "$db": "admin"})
    stream.write(_HEADER.pack(_HEADER.size + len(body), 1, 0, _OP_MSG) + body)
    stream.flush()
    length, _, _, kind = _HEADER.unpack(_exactly(stream, _HEADER.size))
    if kind != _OP_MSG or not _HEADER.size < length < _LARGEST:
        raise ValueError(f"no answer of this protocol: kind {kind}, {length} bytes")
    body = _exactly(stream, length - _HEADER.size)
    if body[4:5] != b"\0":
        raise ValueError("an answer of one document was expected")
    return decode(body[5:])


def encode(document: Mapping[str, object]) -> bytes:
    """Encode a document of integers, booleans, text and documents as BSON."""
    body = b"".join(_element(name, value) for name, value in document.items())
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def _element(name: str, value: object) -> bytes:
    key = name.encode() + b"\0"
    if isinstance(value, bool):
        return b"\x08" + key + struct.pack("<B", value)
    if isinstance(value, int):
        return b"\x10" + key + struct.pack("<i", value)
    if isinstance(value, str):
        text = value.encode() + b"\0"
        return b"\x02" + key + struct.pack("<i", len(text)) + text
    if isinstance(value, Mapping):
        return b"\x03" + key + encode(value)
    raise ValueError(f"{name} is of no kind that is sent")


def decode(data: bytes) -> dict[str, object]:
    """Decode a BSON document; raises `ValueError` if it is cut short or has values of unknown kinds."""
    try:
        document, rest = _document(data)
    except (struct.error, IndexError) as error:
        raise ValueError("the answer is cut short") from error
    if rest:
        raise ValueError("there is more than a document")
    return document


def _document(data: bytes) -> tuple[dict[str, object], bytes]:
    (length,) = struct.unpack_from("<i", data)
    if length < 5 or length > len(data) or data[length - 1] != 0:
        raise ValueError("the answer is cut short")
    inside, document = data[4 : length - 1], dict[str, object]()
    while inside:
        kind, (name, inside) = inside[0], _name(inside[1:])
        document[name], inside = _value(kind, inside)
    return document, data[length:]


def _value(kind: int, data: bytes) -> tuple[object, bytes]:
    if kind in _FIXED:
        size, meaning = _FIXED[kind]
        return meaning(data[:size]) if len(data) >= size else _short(), data[size:]
    if kind in (0x03, 0x04):
        document, rest = _document(data)
        return (list(document.values()) if kind == 0x04 else document), rest
    (length,) = struct.unpack_from("<i", data)
    if kind in (0x02, 0x0D, 0x0E):
        return data[4 : 3 + length].decode(), data[4 + length :]
    if kind == 0x05:
        return data[5 : 5 + length].hex(), data[5 + length :]
    if kind == 0x0B:
        (pattern, rest) = _name(data)
        return pattern, _name(rest)[1]
    raise ValueError(f"a value of kind {kind:#04x} cannot be read")


def _number(data: bytes) -> object:
    """Decode a double; NaN and infinity, which have no literal, become text."""
    (value,) = struct.unpack("<d", data)
    return value if value - value == 0 else str(value)


def _short() -> object:
    raise ValueError("the answer is cut short")


_FIXED = {
    0x01: (8, _number),
    0x06: (0, lambda _: None),
    0x07: (12, bytes.hex),
    0x08: (1, lambda data: data != b"\0"),
    0x09: (8, lambda data: struct.unpack("<q", data)[0]),
    0x0A: (0, lambda _: None),
    0x10: (4, lambda data: struct.unpack("<i", data)[0]),
    0x11: (8, lambda data: struct.unpack("<Q", data)[0]),
    0x12: (8, lambda data: struct.unpack("<q", data)[0]),
    0x13: (16, bytes.hex),
    0x7F: (0, lambda _: "MaxKey"),
    0xFF: (0, lambda _: "MinKey"),
}
"""Kind of value with a fixed size → number of bytes, and their decoder."""


def _name(data: bytes) -> tuple[str, bytes]:
    end = data.index(b"\0")
    return data[:end].decode(), data[end + 1 :]


def _exactly(stream: Stream, size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise ValueError("the connection ended within an answer")
    return data


def _connect(address: str, port: str, authority: str) -> socket.socket:
    """Connect, over TLS if an authority is given. Names are not checked: certificates predate addresses."""
    connection = socket.create_connection((address, int(port)), timeout=_TIMEOUT_S)
    if not authority:
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=authority)
    return context.wrap_socket(connection)


def main(address: str, port: str, authority: str, *commands: str) -> None:
    """Send commands and print one line for each answer; on failure, exit with 1 and the reason on one line."""
    try:
        with _connect(address, port, authority) as connection:
            stream = connection.makefile("rwb")
            answers = [ask(stream, ast.literal_eval(command)) for command in commands]
    except (OSError, ValueError, struct.error) as error:
        sys.exit(" ".join(str(error).split()))
    sys.stdout.write("".join(f"{answer!r}\n" for answer in answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
