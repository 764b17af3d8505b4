"""Read the engine's stream of statistics, one thread per container, as `docker stats` does; print JSON lines.

    python3 -I -S stats_reader.py ADDRESS DIRECTORY

ADDRESS: `unix:///PATH` or `tcp://HOST:PORT`. DIRECTORY/containers holds one container ID a line and is read at the
start and on each SIGHUP; DIRECTORY/ready is made then. SIGTERM ends the program. It fails if the engine does not
answer, or ends the statistics of a running container.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

END_S, POLL_S = 2.0, 0.1


class Engine(http.client.HTTPConnection):
    """A connection over a Unix socket or TCP."""

    def __init__(self, address: str) -> None:
        self.parts = urlsplit(address)
        super().__init__(self.parts.hostname or "localhost", self.parts.port)

    def connect(self) -> None:
        """Connect to either kind of socket."""
        if self.parts.scheme == "unix":
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(self.parts.path)
        else:
            super().connect()


def follow(address: str, ident: str, lock: threading.Lock) -> None:
    """Print each frame with the time of both clocks when it came, until the container is gone."""
    engine = Engine(address)
    engine.request("GET", f"/containers/{ident}/stats?stream=1")
    answer = engine.getresponse()
    for line in iter(answer.readline, b""):
        came = {"monotonic_ns": time.monotonic_ns(), "realtime_ns": time.time_ns()}
        line_out = json.dumps({"container": ident, "status": answer.status, **came, "frame": json.loads(line)})
        with lock:
            sys.stdout.write(line_out + "\n")
            sys.stdout.flush()


def runs(address: str, ident: str) -> bool:
    """Whether the engine says that a container runs; an unknown container does not."""
    engine = Engine(address)
    engine.request("GET", f"/containers/{ident}/json")
    answer = engine.getresponse()
    state = json.load(answer)
    return answer.status == http.client.OK and bool(state["State"]["Running"])


def watch(address: str, ident: str, lock: threading.Lock) -> None:
    """Follow a container to its end. If its frames end while it runs, the whole program fails."""
    try:
        follow(address, ident, lock)
        over = time.monotonic() + END_S  # the engine reports a container's end after its last frame
        while runs(address, ident):
            if time.monotonic() > over:
                raise OSError(f"the engine ended the statistics of {ident}, which is still running")  # noqa: TRY301 - handled as all that ends it
            time.sleep(POLL_S)
    except Exception as error:  # noqa: BLE001 - any error must end the program, as nobody would miss an ended thread
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
        os._exit(1)


def main(address: str, directory: str) -> None:
    """Start a thread for each new container."""
    signals = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    listed, lock = Path(directory) / "containers", threading.Lock()
    known: set[str] = set()
    while True:
        for ident in listed.read_text().split():
            if ident not in known:
                known.add(ident)
                threading.Thread(target=watch, args=(address, ident, lock), daemon=True).start()
        (Path(directory) / "ready").touch()
        if signal.sigwait(signals) != signal.SIGHUP:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
