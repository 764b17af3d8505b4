"""Read the engine's stream of statistics, a thread a container, as `docker stats` does; a JSON document a line.

    python3 -I -S stats_reader.py ADDRESS DIRECTORY

ADDRESS: `unix:///PATH` or `tcp://HOST:PORT`. The containers stand in DIRECTORY/containers, an id a line, read at
the start and on each SIGHUP; DIRECTORY/ready is made then. SIGTERM ends it.
"""

from __future__ import annotations

import http.client
import json
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit


class Engine(http.client.HTTPConnection):
    """A connection over a Unix socket, or TCP."""

    def __init__(self, address: str) -> None:
        self.parts = urlsplit(address)
        super().__init__(self.parts.hostname or "localhost", self.parts.port)

    def connect(self) -> None:
        """To the socket, whichever it is."""
        if self.parts.scheme == "unix":
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(self.parts.path)
        else:
            super().connect()


def follow(address: str, ident: str, lock: threading.Lock) -> None:
    """Print each frame with both clocks at which it came, until the container is gone."""
    engine = Engine(address)
    engine.request("GET", f"/containers/{ident}/stats?stream=1")
    answer = engine.getresponse()
    for line in iter(answer.readline, b""):
        came = {"monotonic_ns": time.monotonic_ns(), "realtime_ns": time.time_ns()}
        told = json.dumps({"container": ident, "status": answer.status, **came, "frame": json.loads(line)})
        with lock:
            sys.stdout.write(told + "\n")
            sys.stdout.flush()


def main(address: str, directory: str) -> None:
    """Threads for containers as they are named."""
    signals = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    listed, lock = Path(directory) / "containers", threading.Lock()
    known: set[str] = set()
    while True:
        for ident in listed.read_text().split():
            if ident not in known:
                known.add(ident)
                threading.Thread(target=follow, args=(address, ident, lock), daemon=True).start()
        (Path(directory) / "ready").touch()
        if signal.sigwait(signals) != signal.SIGHUP:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
