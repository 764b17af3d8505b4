"""Measure the network between two hosts: a standalone program for hosts that have Python and no tare.

    python3 -I -S sounder.py now                          this host's clocks, read twice
    python3 -I -S sounder.py serve ADDRESS SECONDS        answers by UDP and TCP; prints its port
    python3 -I -S sounder.py ask ADDRESS PORT             round trips, with the clocks of both ends
    python3 -I -S sounder.py fill ADDRESS PORT SECONDS    throughput of one connection each way, bytes a second

Clocks are CLOCK_MONOTONIC in nanoseconds; `ahead`: by how much CLOCK_REALTIME is ahead of it.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time

_ASKED = struct.Struct("!IQ")
_ANSWERED = struct.Struct("!IQQ")
_LOST_S = 1.0
_MOST, _FEWEST, _ENOUGH_S, _SILENT = 100, 20, 0.05, 3
"""The same values as in crates/agent/src/sounding.rs."""
_BLOCK = bytes(1 << 20)
_UP, _DOWN = b"u", b"d"


def ahead_ns() -> int:
    """Wall minus monotonic clock, from the closest of a few readings."""
    readings = []
    for _ in range(5):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after - before, wall - (before + after) // 2))
    return min(readings)[1]


def now() -> dict[str, int]:
    """Read the clocks, with the moments before and after on the monotonic clock."""
    began = time.monotonic_ns()
    ahead = ahead_ns()
    return {"received_ns": began, "replied_ns": time.monotonic_ns(), "ahead_ns": ahead}


def serve(address: str, seconds: float) -> None:
    """Answer until the time is up, so that nobody needs to end the program."""
    deadline = time.monotonic() + seconds
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as stream, socket.socket(family, socket.SOCK_DGRAM) as datagram:
        stream.bind((address, 0))
        stream.listen(4)
        datagram.bind((address, stream.getsockname()[1]))
        _print(stream.getsockname()[1])
        while (left := deadline - time.monotonic()) > 0:
            for ready in select.select([stream, datagram], [], [], left)[0]:
                if ready is datagram:
                    _answer(datagram)
                else:
                    _carry(stream.accept()[0], deadline)


def _answer(datagram: socket.socket) -> None:
    asked, peer = datagram.recvfrom(64)
    received = time.monotonic_ns()
    if len(asked) == _ASKED.size:
        number, _ = _ASKED.unpack(asked)
        datagram.sendto(_ANSWERED.pack(number, received, time.monotonic_ns()), peer)


def _carry(connection: socket.socket, deadline: float) -> None:
    with connection:
        connection.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            if connection.recv(1) == _DOWN:
                while True:
                    connection.sendall(_BLOCK)
            got = 0
            while block := connection.recv(1 << 20):
                got += len(block)
            connection.sendall(str(got).encode())
        except OSError:
            return  # the other end has closed the connection


def ask(address: str, port: int) -> dict[str, object]:
    """Measure round trips. `exchanges`: sent, received, replied, returned; first and last by this host's clock."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    exchanges: list[tuple[int, int, int, int]] = []
    lost = 0
    with socket.socket(family, socket.SOCK_DGRAM) as datagram:
        datagram.connect((address, port))
        datagram.settimeout(_LOST_S)
        began = time.monotonic()
        for number in range(_MOST + 1):
            if number > _FEWEST and time.monotonic() - began > _ENOUGH_S:
                break
            if lost >= _SILENT and not exchanges:
                break
            sent = time.monotonic_ns()
            try:
                datagram.send(_ASKED.pack(number, sent))
                while True:
                    answered, received, replied = _ANSWERED.unpack(datagram.recv(64))
                    if answered == number:
                        break
            except OSError:
                lost += 1
                continue
            returned = time.monotonic_ns()
            if number:  # the first wakes both ends
                exchanges.append((sent, received, replied, returned))
    return {"exchanges": exchanges, "lost": lost, "own_ahead_ns": ahead_ns()}


def fill(address: str, port: int, seconds: float) -> dict[str, float]:
    """Return the received bytes a second to the other host and from it."""
    with socket.create_connection((address, port), timeout=seconds + 10) as connection:
        connection.sendall(_UP)
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            connection.sendall(_BLOCK)
        connection.shutdown(socket.SHUT_WR)
        there = int(connection.recv(64)) / (time.monotonic() - began)
    with socket.create_connection((address, port), timeout=seconds + 10) as connection:
        connection.sendall(_DOWN)
        began, got = time.monotonic(), 0
        while time.monotonic() - began < seconds:
            got += len(connection.recv(1 << 20))
        back = got / (time.monotonic() - began)
    return {"to_bytes_per_s": there, "from_bytes_per_s": back}


def _print(what: object) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


def main(words: list[str]) -> None:
    """Run the command."""
    what, *more = words
    if what == "serve":
        serve(more[0], float(more[1]))
    elif what == "ask":
        _print(ask(more[0], int(more[1])))
    elif what == "fill":
        _print(fill(more[0], int(more[1]), float(more[2])))
    else:
        _print(now())


if __name__ == "__main__":
    main(sys.argv[1:])
