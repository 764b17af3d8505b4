"""A TCP proxy that delays each message of a client and logs how long the delay really was.

Sent to a host and run by its own Python: `delay_proxy.py SPEC`, a JSON object with `address` and `port` (the
server's), `delay_us`, `cgroup_procs` (files by which to join the server's cgroups) and `log`. It listens at that
address and prints its port. A line of the log is a closed connection.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from pathlib import Path

_CHUNK = 1 << 16


class Connection:
    """A client, its server, and the total delay of the client's messages."""

    def __init__(self, client: socket.socket, server: tuple[str, int]) -> None:
        self.client = client
        self.server = socket.create_connection(server, timeout=10)
        for each in (self.client, self.server):
            each.settimeout(10)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.accepted_at = time.time()
        self.messages = 0
        self.held_ns = 0

    def forward(self, source: socket.socket, delay_ns: int) -> bool:
        """Forward what `source` has sent. Returns whether `source` is still connected."""
        data = source.recv(_CHUNK)
        if not data:
            return False
        if source is self.server:
            self.client.sendall(data)
            return True
        began = now = time.monotonic_ns()
        while now - began < delay_ns:  # busy wait: after a sleep, waking the CPU would add to the delay
            now = time.monotonic_ns()
        self.held_ns += time.monotonic_ns() - began
        self.messages += 1
        self.server.sendall(data)
        return True

    def line(self) -> str:
        """Return the connection's line of the log."""
        figures = {"accepted_at": self.accepted_at, "messages": self.messages, "held_ns": self.held_ns}
        return json.dumps(figures) + "\n"


def serve(listener: socket.socket, server: tuple[str, int], delay_ns: int, log: str) -> None:
    """Serve until killed, which happens when the server's cgroup is cleared."""
    with selectors.DefaultSelector() as ready, Path(log).open("a", encoding="utf-8") as lines:
        ready.register(listener, selectors.EVENT_READ, None)
        while True:
            for key, _ in ready.select():
                if key.data is None:
                    accept_client(listener, server, ready)
                    continue
                connection: Connection = key.data
                source = connection.client if key.fileobj is connection.client else connection.server
                try:
                    alive = connection.forward(source, delay_ns)
                except OSError:
                    alive = False
                if not alive:
                    for end in (connection.client, connection.server):
                        ready.unregister(end)
                        end.close()
                    lines.write(connection.line())
                    lines.flush()
                    break  # the other events may be of the other end, which is closed now


def accept_client(listener: socket.socket, server: tuple[str, int], ready: selectors.BaseSelector) -> None:
    """Accept a client; if its server does not answer, close the connection."""
    client, _ = listener.accept()
    try:
        connection = Connection(client, server)
    except OSError:
        client.close()
        return
    for end in (connection.client, connection.server):
        ready.register(end, selectors.EVENT_READ, connection)


def main() -> None:
    """Read SPEC, join the cgroups, listen, serve."""
    spec = json.loads(sys.argv[1])
    for path in spec["cgroup_procs"]:
        Path(path).write_text("0")
    address = spec["address"]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        serve(listener, (address, spec["port"]), round(spec["delay_us"] * 1000), spec["log"])


if __name__ == "__main__":
    main()
