"""The page beside a run, as a process of its own: it may fail, and the run does not notice.

Started by `beside` with the listening socket's descriptor as its argument and the token on its standard input; that
ends when the run does, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tare.live.serving import Door, open_door, server_of

_END_S = 5.0


@contextmanager
def beside(store: Path, port: int, token: str, program: Sequence[str] = ()) -> Iterator[Door]:
    """Have the page served while this lasts. Raises `EnvironmentLacks` where the port cannot be had, or `OSError`.

    `program`: in place of this module, for tests.
    """
    door = open_door(port, token)
    argv = [
        sys.executable,
        *(program or ("-m", "tare.live.beside")),
        str(door.socket.fileno()),
        str(store.absolute()),
    ]
    with door.socket, tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            pass_fds=[door.socket.fileno()],
            start_new_session=True,  # Ctrl-C is for the run, which then ends the page
        )
        try:
            with contextlib.suppress(OSError):  # it has ended already
                _hand(child, token)
            yield door
        finally:
            _end(child)


def _hand(child: subprocess.Popen[bytes], token: str) -> None:
    assert child.stdin is not None  # noqa: S101 - it was asked for
    child.stdin.write(f"{token}\n".encode())
    child.stdin.flush()


def _end(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None  # noqa: S101 - for the type alone
    with contextlib.suppress(OSError):
        child.stdin.close()
    try:
        child.wait(_END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def main() -> None:
    """`python -m tare.live.beside DESCRIPTOR STORE`, the token on standard input."""
    _step_back()
    token = sys.stdin.readline().strip()
    door = Door(socket.socket(fileno=int(sys.argv[1])), token)
    server = server_of(Path(sys.argv[2]), door)

    def end_with_the_run() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end_with_the_run, daemon=True).start()
    server.run(sockets=[door.socket])


def _step_back() -> None:
    """Run only on CPU time that nobody else wants, what is measured least of all (sched(7), SCHED_IDLE)."""
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


if __name__ == "__main__":
    main()
