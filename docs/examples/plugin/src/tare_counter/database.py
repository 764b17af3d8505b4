"""A server that counts the lines it gets and answers each with the count. One setting: `start`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.errors import RunFailed, StudyError

_SERVE = """
import json, pathlib, socketserver, sys, threading
options = json.loads(pathlib.Path(sys.argv[1], "counter.json").read_text())
count, lock = options["settings"].get("start", 0), threading.Lock()

class Session(socketserver.StreamRequestHandler):
    def handle(self):
        global count
        for line in self.rfile:
            if line == b"settings\\n":
                self.wfile.write(json.dumps(options["settings"]).encode() + b"\\n")
            elif line == b"shutdown\\n":
                threading.Thread(target=server.shutdown).start()
                self.wfile.write(b"bye\\n")
            else:
                with lock:
                    count += 1
                    self.wfile.write(b"%d\\n" % count)

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

with Server((options["listen"], options["port"]), Session) as server:
    server.serve_forever(poll_interval=0.01)
"""
_ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5) as connection:
    stream = connection.makefile("rw")
    stream.write(sys.argv[3] + "\\n")
    stream.flush()
    print(stream.readline(), end="")
"""
_ASK_S = 10.0


class Counter:
    """The server above, run by the image's own Python."""

    per_run: ClassVar[frozenset[str]] = frozenset()
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = {}
    safe_to_kill: ClassVar[bool] = True
    slow_start_s: ClassVar[float] = 0.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Nothing is kept, so there is nothing to make."""
        return ServerCommand(("true",), {}, {})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """Serve on `listen`:`port`."""
        if unknown := set(plan.settings) - {"start"}:
            raise StudyError(f"counter has no setting {min(unknown)!r}", hint="its only one is start")
        options = {"listen": plan.listen, "port": plan.port, "settings": dict(plan.settings)}
        argv = ("python3", "-I", "-c", _SERVE, plan.run_dir)
        return ServerCommand(argv, {}, {"counter.json": json.dumps(options)})

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether it tells its settings."""
        return _ask(plan, inside, "settings") is not None

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Its settings."""
        if (answer := _ask(plan, inside, "settings")) is None:
            raise RunFailed("counter does not tell its settings")
        return {name: str(value) for name, value in json.loads(answer).items()}

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Ask it to stop."""
        if _ask(plan, inside, "shutdown") is None:
            raise RunFailed("counter does not stop")


def _ask(plan: ServerPlan, inside: Exec, line: str) -> str | None:
    argv = ("python3", "-I", "-c", _ASK, plan.listen.replace("0.0.0.0", "127.0.0.1"), str(plan.port), line)
    done = inside(argv, _ASK_S, b"")
    return done.text if done.code == 0 else None


COUNTER = Counter()
"""What the entry point names."""
