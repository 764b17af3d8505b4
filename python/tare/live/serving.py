"""The server: one socket on loopback, until it is told to end."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from tare.errors import EnvironmentLacks
from tare.live.app import application
from tare.live.guard import TOKEN
from tare.live.look import Looking
from tare.live.watch import Watch

LOOPBACK = "127.0.0.1"
_BACKLOG = 64
_END_S = 3
"""How long answers that are being given may take when the server is told to end."""
_MOST_CONNECTIONS = 100


@dataclass(frozen=True)
class Door:
    """Where the page is to be had. The socket listens already, so that a browser that comes early waits."""

    socket: socket.socket
    token: str

    @property
    def port(self) -> int:
        """Of the socket."""
        return int(self.socket.getsockname()[1])

    @property
    def link(self) -> str:
        """What opens the page; whoever has it may see everything there."""
        return f"http://{LOOPBACK}:{self.port}/?{TOKEN}={self.token}"


def open_door(port: int, token: str) -> Door:
    """Listen on loopback; port 0: any that is free. Raises `EnvironmentLacks` where the port cannot be had."""
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
    return Door(listening, token)


def server_of(store: Path, door: Door) -> uvicorn.Server:
    """A server that is not running yet. Raises `StoreError` where there is no store that this tare can read."""
    watch = Watch(Looking.at(store))
    config = uvicorn.Config(
        application(watch.looking, watch, door.token, door.port),
        log_level="error",
        access_log=False,  # it would hold the token
        lifespan="off",
        server_header=False,
        date_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_END_S,
    )
    server = uvicorn.Server(config)
    watch.stopping = lambda: server.should_exit
    return server


def serve(store: Path, door: Door) -> None:
    """Serve until interrupted. Raises `StoreError`."""
    server = server_of(store, door)
    with door.socket, suppress(KeyboardInterrupt):
        server.run(sockets=[door.socket])
