"""Processes that are forked from a prepared one: each is one of its own, and outlives its tare no longer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest

from tare.errors import EnvironmentLacks
from tare.run.fleet.fork_server import UNKNOWN, Forked, ForkServer, last_line

PROGRAM = """
import os, sys, time
from tare.run.fleet.fork_server import is_fork_server, tend
assert is_fork_server()
if not tend(lambda: None):
    sys.exit(0)
order = sys.stdin.readline().strip()
sys.stderr.write(f"told {order}, of session {os.getsid(0)}\\n")
sys.stderr.flush()
if order == "wait":
    sys.stdin.read()
sys.exit(7 if order == "fail" else 0)
"""


@pytest.fixture
def fork_server() -> Iterator[ForkServer]:
    made = ForkServer((sys.executable, "-c", PROGRAM))
    yield made
    made.close()


def ordered(process: Forked, order: str) -> Forked:
    process.stdin.write(f"{order}\n".encode())
    process.stdin.flush()
    return process


def content(words: IO[bytes]) -> str:
    words.seek(0)
    return words.read().decode()


def test_each_process_has_its_own_orders_words_session_and_code(fork_server: ForkServer) -> None:
    with TemporaryFile() as one, TemporaryFile() as other:
        good, bad = ordered(fork_server.start(one), "go"), ordered(fork_server.start(other), "fail")
        assert (good.wait(60), bad.wait(60)) == (0, 7)
        assert (good.poll(), bad.poll()) == (0, 7)
        assert content(one) == f"told go, of session {good.pid}\n"
        assert last_line(other) == f"told fail, of session {bad.pid}"


def test_a_process_that_was_killed_tells_by_which_signal(fork_server: ForkServer) -> None:
    with TemporaryFile() as words:
        process = ordered(fork_server.start(words), "wait")
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
        process.kill()  # nobody else is hit


def test_more_processes_than_select_has_room_for_descriptors(fork_server: ForkServer) -> None:
    """select(2) takes none above 1023, and a fleet of 256 sites has more."""
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        with TemporaryFile() as words:
            assert ordered(fork_server.start(words), "go").wait(60) == 0
    finally:
        for descriptor in held:
            os.close(descriptor)


def test_what_was_forked_goes_on_without_its_fork_server_and_its_code_is_not_known(fork_server: ForkServer) -> None:
    with TemporaryFile() as words:
        process = ordered(fork_server.start(words), "wait")
        fork_server._process.kill()
        fork_server._process.wait(60)
        assert process.poll() is None
        assert not fork_server.alive
        process.stdin.close()
        assert process.wait(60) == UNKNOWN
        with pytest.raises(EnvironmentLacks, match="no process can be started for a site"):
            fork_server.start(words)


def test_a_fork_server_whose_answer_would_come_late_is_ended(fork_server: ForkServer) -> None:
    """It would be taken for the answer to the next request."""
    with TemporaryFile() as words:
        ordered(fork_server.start(words), "go").wait(60)
        fork_server._process.send_signal(signal.SIGSTOP)
        fork_server._channel.settimeout(0.05)
        with pytest.raises(EnvironmentLacks, match="no process can be started for a site"):
            fork_server.start(words)
        fork_server._process.wait(60)
        assert not fork_server.alive


def test_a_fork_server_that_cannot_start_says_why() -> None:
    made = ForkServer((sys.executable, "-c", "raise SystemExit('there is no Dask here')"))
    try:
        with TemporaryFile() as words, pytest.raises(EnvironmentLacks, match="there is no Dask here"):
            made.start(words)
    finally:
        made.close()


def test_nothing_is_left_of_a_fork_server_whose_tare_was_killed(tmp_path: Path) -> None:
    """Its socket has closed, as has the standard input of each process."""
    program = (
        "import sys, time\nfrom tempfile import TemporaryFile\nfrom tare.run.fleet.fork_server import ForkServer\n"
        "server = ForkServer((sys.executable, '-c', sys.argv[1]))\nprocess = server.start(TemporaryFile())\n"
        "process.stdin.write(b'wait\\n')\nprocess.stdin.flush()\n"
        "print(server._process.pid, process.pid, flush=True)\ntime.sleep(600)\n"
    )
    tare = subprocess.Popen([sys.executable, "-c", program, PROGRAM], stdout=subprocess.PIPE, text=True)
    assert tare.stdout is not None
    pids = [int(word) for word in tare.stdout.readline().split()]
    tare.kill()
    tare.wait(60)
    tare.stdout.close()
    deadline = time.monotonic() + 60
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    """A zombie that nobody reaps in this container does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
