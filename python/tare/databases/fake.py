"""A database for tests: a small server in Python that keeps one number, behind a password.

It goes through all that a real one does (empty data directory, option files, authentication, first answer,
settings read back, clean end), and can be told to fail at each of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.errors import RunFailed

OPTIONS_FILE = "fake.json"
SECRET_FILE = "fake.secret"  # noqa: S105 - the name of a file
_TIMEOUT_S = 10.0

_INITIALISE = """
import os, pathlib, sys
data = pathlib.Path(sys.argv[1])
if os.listdir(data):
    sys.exit(f"{data} is not empty")
if sys.argv[2] == "initialise":
    sys.exit("told to fail in initialise")
(data / "format").write_text("1")
"""

_SERVE = """
import json, pathlib, socketserver, sys, threading, time
run_dir = pathlib.Path(sys.argv[1])
options = json.loads((run_dir / "fake.json").read_text())
password = (run_dir / "fake.secret").read_text()
settings, data = options["settings"], pathlib.Path(options["data_dir"])
fault = settings.get("fault", "")
if (data / "format").read_text() != "1":
    sys.exit("no data of ours")
if fault == "start":
    sys.exit("told to fail in start")
if fault == "ready":
    time.sleep(3600)
rows = data / "rows"
number = rows.read_text() if rows.exists() else "none"

class Session(socketserver.StreamRequestHandler):
    def handle(self):
        if self.rfile.readline().decode() != f"auth {password}\\n":
            self.wfile.write(b"error access denied\\n")
            return
        self.wfile.write(b"ok\\n")
        while line := self.rfile.readline().decode().split():
            self.wfile.write((self.answer(*line) + "\\n").encode())

    def answer(self, verb, *args):
        global number
        if verb == "get":
            time.sleep(settings.get("delay_ms", 1) / 1000)
            return f"ok {number}"
        if verb == "load":
            number = args[0]
            rows.write_text(number)
            return "ok"
        if verb == "settings":
            return "ok " + json.dumps({"port": options["port"], **settings})
        if verb == "shutdown" and fault != "shutdown":
            threading.Thread(target=server.shutdown).start()
            return "ok"
        return f"error cannot {verb}"

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 128

with Server((options["listen"], options["port"]), Session) as server:
    server.serve_forever(poll_interval=0.01)
"""

_ASK = """
import json, pathlib, socket, sys
run_dir = pathlib.Path(sys.argv[1])
options = json.loads((run_dir / "fake.json").read_text())
listen = options["listen"].replace("0.0.0.0", "127.0.0.1")
try:
    with socket.create_connection((listen, options["port"]), timeout=5) as connection:
        stream = connection.makefile("rw")
        for line in (f"auth {(run_dir / 'fake.secret').read_text()}", " ".join(sys.argv[2:])):
            stream.write(line + "\\n")
            stream.flush()
            word, _, rest = stream.readline().rstrip("\\n").partition(" ")
            if word != "ok":
                sys.exit(rest or "no answer")
except OSError as error:
    sys.exit(str(error))
print(rest)
"""


class FakeDatabase:
    """The server above. Settings: `delay_ms` of each answer, and `fault`: the step that is to fail."""

    per_run: ClassVar[frozenset[str]] = frozenset({"port"})
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = {}
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Fill an empty data directory; refuses one that is not."""
        argv = ("python3", "-I", "-c", _INITIALISE, plan.data_dir, str(plan.settings.get("fault", "")))
        return ServerCommand(argv=argv, env={}, files={})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """Serve on `listen`:`port` until told to stop."""
        options = {
            "data_dir": plan.data_dir,
            "listen": plan.listen,
            "port": plan.port,
            "settings": dict(plan.settings),
        }
        return ServerCommand(
            argv=("python3", "-I", "-c", _SERVE, plan.run_dir),
            env={},
            files={OPTIONS_FILE: json.dumps(options), SECRET_FILE: plan.secrets.password},
        )

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether it answers."""
        return self._ask(plan, inside, "settings") is not None

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Its settings and its port."""
        answer = self._ask(plan, inside, "settings")
        if answer is None or plan.settings.get("fault") == "effective":
            raise RunFailed("the fake server does not tell its settings")
        return {name: str(value) for name, value in json.loads(answer).items()}

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Ask it to stop."""
        if self._ask(plan, inside, "shutdown") is None:
            raise RunFailed("the fake server does not stop")

    def _ask(self, plan: ServerPlan, inside: Exec, *words: str) -> str | None:
        done = inside(("python3", "-I", "-c", _ASK, plan.run_dir, *words), _TIMEOUT_S, b"")
        return done.text if done.code == 0 else None


class FakeCluster:
    """Together once each answers, unless `fault` is `together`."""

    def together(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether this node answers."""
        return FakeDatabase().ready(plan, inside) and plan.settings.get("fault") != "together"
