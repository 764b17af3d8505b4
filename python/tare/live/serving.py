"""The server: one socket on loopback, until it is stopped."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import uvicorn

from tare.errors import EnvironmentLacks
from tare.live.app import application
from tare.live.look import StoreReader
from tare.live.watch import Watch
from tare.store_place import Place, StorePlace, parse_store_url

_END_S = 5.0


LOOPBACK = "127.0.0.1"
_BACKLOG = 64
_SHUTDOWN_S = 3
"""How long current answers may take when the server is stopped."""
_MOST_CONNECTIONS = 100


@contextmanager
def serve_beside(store: Place, port: int, token: str, program: Sequence[str] = ()) -> Iterator[Listener]:
    """Serve the page inside the context. Raises `EnvironmentLacks` if the port is not available, or `OSError`.

    `program`: runs in place of this module, for tests.
    """
    listener = open_listener(port, token)
    argv = [
        sys.executable,
        *(program or ("-m", "tare.live.serving")),
        str(listener.socket.fileno()),
        str(_absolute(parse_store_url(store))),
    ]
    with listener.socket, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=[listener.socket.fileno()],
            start_new_session=True,  # Ctrl-C is for the run, which then ends the page
        )
        try:
            with contextlib.suppress(OSError):  # the server has ended already
                _send_token(child, token)
            yield listener
        finally:
            _end(child)


def _absolute(place: StorePlace) -> StorePlace:
    return StorePlace(place.directory.absolute()) if place.is_directory else place


def _send_token(child: subprocess.Popen[bytes], token: str) -> None:
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
    """`python -m tare.live.serving DESCRIPTOR STORE`, with the token on standard input."""
    _run_idle()
    token = sys.stdin.readline().strip()
    listener = Listener(socket.socket(fileno=int(sys.argv[1])), token)
    server = server_of(parse_store_url(sys.argv[2]), listener)

    def end_with_the_run() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end_with_the_run, daemon=True).start()
    server.run(sockets=[listener.socket])


def _run_idle() -> None:
    """Use only CPU time that nobody else wants, least of all the measured system (sched(7), SCHED_IDLE)."""
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


@dataclass(frozen=True)
class Listener:
    """Address of the page. The socket listens already, so that an early browser waits."""

    socket: socket.socket
    token: str

    @property
    def port(self) -> int:
        """Port of the socket."""
        return int(self.socket.getsockname()[1])

    @property
    def link(self) -> str:
        """Link that opens the page; whoever has it may see everything there."""
        return f"http://{LOOPBACK}:{self.port}/{self.token}/"


def open_listener(port: int, token: str) -> Listener:
    """Listen on loopback; port 0: any free port. Raises `EnvironmentLacks` if the port is not available."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise EnvironmentLacks(
            f"the page cannot be served on port {port} of {LOOPBACK}: {error.strerror}",
            hint="give another port, or 0 for any that is free",
        ) from error
    return Listener(listening, token)


def server_of(store: Place, listener: Listener) -> uvicorn.Server:
    """Make a server that is not running yet. Raises `StoreError` if there is no store that this tare can read."""
    watch = Watch(StoreReader.opened(store))
    config = uvicorn.Config(
        application(watch.reader, watch, listener.token),
        log_level="error",
        access_log=False,  # would contain the token
        lifespan="off",
        server_header=False,
        date_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )
    server = uvicorn.Server(config)
    watch.stopping = lambda: server.should_exit
    return server


def serve(server: uvicorn.Server, listener: Listener) -> None:
    """Serve until interrupted."""
    with listener.socket, suppress(KeyboardInterrupt):
        server.run(sockets=[listener.socket])


if __name__ == "__main__":
    main()
