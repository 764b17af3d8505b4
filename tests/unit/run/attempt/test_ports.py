"""Ports that are taken, and those at which somebody listens."""

from __future__ import annotations

import os
import socket

from tare.run.attempt.ports import FIRST, PortCheck, free_ports, listens, used_ports
from tare.sites.fake import FakeHost
from tare.sites.local import LocalHost


def test_a_port_is_listened_at_only_while_somebody_listens() -> None:
    host, pid = LocalHost(), os.getpid()
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        assert listens(host, pid, port) is False
        bound.listen()
        assert listens(host, pid, port) is True
        assert port in used_ports(host)
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert listens(host, pid, client.getsockname()[1]) is False
    assert listens(host, pid, port) is False


def test_a_port_check_sees_what_opens_and_closes() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port_check = PortCheck(LocalHost(), os.getpid(), bound.getsockname()[1])
        assert port_check.listens() is False
        bound.listen()
        assert any(port_check.listens() for _ in range(11))
    assert not all(port_check.listens() for _ in range(11))


def test_a_port_check_reads_the_tables_when_the_count_has_changed_or_was_believed_ten_times() -> None:
    host, silent = FakeHost(), b"  sl  local_address rem_address   st\n"
    host.files |= {
        "/proc/7/net/sockstat": b"sockets: used 9\nTCP: inuse 2 orphan 0 tw 0\n",
        "/proc/7/net/tcp": silent,
    }
    port_check = PortCheck(host, 7, 0x0CEA)
    assert port_check.listens() is False
    host.files["/proc/7/net/tcp"] += b"   0: 0100007F:0CEA 00000000:0000 0A\n"
    assert [port_check.listens() for _ in range(11)] == [False] * 10 + [True]
    host.files["/proc/7/net/tcp"] = silent
    assert port_check.listens() is True
    host.files["/proc/7/net/sockstat"] = b"TCP: inuse 1 orphan 5 tw 9\n"
    assert port_check.listens() is False


def test_a_port_check_that_sees_no_count_reads_the_tables_every_time() -> None:
    host = FakeHost(files={"/proc/7/net/tcp": b"head\n"})
    port_check = PortCheck(host, 7, 0x0CEA)
    assert port_check.listens() is False
    host.files["/proc/7/net/tcp"] += b"   0: 0100007F:0CEA 00000000:0000 0A\n"
    assert port_check.listens() is True
    assert PortCheck(FakeHost(), 1, 3306).listens() is None


def test_what_cannot_be_seen_is_not_taken_for_silence() -> None:
    assert listens(FakeHost(), 1, 3306) is None


def test_a_port_that_another_process_has_claimed_is_left_to_it() -> None:
    host = FakeHost(files={"/proc/net/tcp": b"head\n"})
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        taken = _claimed_from(other, FIRST + 11_900)
        token = f"{taken - FIRST:x}"
        assert taken not in free_ports(host, token, 2)
    assert free_ports(host, token) == (taken,)


def _claimed_from(other: socket.socket, port: int) -> int:
    """Claim the next port that nobody has, as another process would, and return it."""
    while True:
        try:
            other.bind(f"\0tare-port-{port}")
        except OSError:
            port += 1
        else:
            return port
