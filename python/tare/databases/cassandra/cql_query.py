"""A client for one CQL query over the native protocol: the Python of a server's root runs this source.

Protocol version 4, as Cassandra 2.2 to 4.x speak it (native_protocol_v4.spec). Arguments: address, port, the
authority's certificate (empty without TLS), query.
Only columns of text are read; `SELECT JSON` turns any row into a single text.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
from typing import Protocol

_REQUEST, _STREAM = 0x04, 0
_ERROR, _RESULT = 0x00, 0x08
_STARTUP, _QUERY = 0x01, 0x07
_ROWS, _ONE, _HEADER = 0x0002, 0x0001, 9
_GLOBAL_TABLE, _MORE_PAGES = 0x0001, 0x0002
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


def ask(stream: Stream, query: str) -> list[str]:
    """Return the first column of every row; raises `ValueError` for the server's errors and unexpected answers."""
    _send(stream, _STARTUP, struct.pack(">H", 1) + _string("CQL_VERSION") + _string("3.0.0"))
    _receive(stream)
    text = query.encode()
    _send(stream, _QUERY, struct.pack(">i", len(text)) + text + struct.pack(">HB", _ONE, 0))
    opcode, body = _receive(stream)
    if opcode != _RESULT:
        raise ValueError(f"a result was expected, not {opcode:#04x}")
    return _rows(body)


def _rows(body: bytes) -> list[str]:
    (kind,) = struct.unpack_from(">i", body)
    if kind != _ROWS:
        return []
    flags, columns = struct.unpack_from(">ii", body, 4)
    if columns != 1 or not flags & _GLOBAL_TABLE or flags & _MORE_PAGES:
        raise ValueError("one page of one column was expected")
    at = 12
    for _ in ("keyspace", "table", "column"):
        at += 2 + struct.unpack_from(">H", body, at)[0]
    at += 2  # the column's type
    (count,) = struct.unpack_from(">i", body, at)
    at += 4
    rows = []
    for _ in range(count):
        (size,) = struct.unpack_from(">i", body, at)
        at += 4
        rows.append(body[at : at + size].decode())
        at += max(size, 0)
    return rows


def _send(stream: Stream, opcode: int, body: bytes) -> None:
    stream.write(struct.pack(">BBhBi", _REQUEST, 0, _STREAM, opcode, len(body)) + body)
    stream.flush()


def _receive(stream: Stream) -> tuple[int, bytes]:
    header = stream.read(_HEADER)
    if len(header) != _HEADER:
        raise ValueError("the server closed the connection")
    *_, opcode, size = struct.unpack(">BBhBi", header)
    body = stream.read(size)
    if opcode == _ERROR:
        words = body[6:].decode(errors="replace")
        raise ValueError(f"the server refuses: {words}")
    return opcode, body


def _string(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _connect(address: str, port: str, authority: str) -> socket.socket:
    """Connect, over TLS if an authority is given. Names are not checked: certificates predate addresses."""
    connection = socket.create_connection((address, int(port)), timeout=_TIMEOUT_S)
    if not authority:
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=authority)
    return context.wrap_socket(connection)


def main(address: str, port: str, authority: str, query: str) -> None:
    """Print one line for each row; on failure, exit with 1 and the reason on one line."""
    try:
        with _connect(address, port, authority) as connection:
            stream = connection.makefile("rwb")
            rows = ask(stream, query)
    except (OSError, ValueError, struct.error) as error:
        sys.exit(" ".join(str(error).split()))
    sys.stdout.write("".join(f"{row}\n" for row in rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
