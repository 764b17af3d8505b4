"""Ports that are taken, and those at which somebody listens."""

from __future__ import annotations

import os
import socket

from tare.run.ports import listens, used_ports
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


def test_what_cannot_be_seen_is_not_taken_for_silence() -> None:
    assert listens(FakeHost(), 1, 3306) is None
