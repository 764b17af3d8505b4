"""Holders of sockets, read while descriptors come and go."""

from __future__ import annotations

import subprocess
import sys

from tare.deployments.network.sockets import socket_inodes
from tare.sites.local import LocalHost

_CHURN = """
import os, socket
kept = socket.socket()
print(os.fstat(kept.fileno()).st_ino, flush=True)
while True:
    for one in [socket.socket() for _ in range(200)]:
        one.close()
"""


def test_descriptors_that_close_while_they_are_read_are_left_out() -> None:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", _CHURN], stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            kept = int(program.stdout.readline())
            read = [socket_inodes(LocalHost(), [program.pid]) for _ in range(40)]
        finally:
            program.kill()
    assert all(each.get(kept) == program.pid for each in read)
    assert {pid for each in read for pid in each.values()} == {program.pid}
