"""A database for tests: a small server in Python that keeps one number, behind a password.

It does all that a real one does (empty data directory, option files, authentication, first answer,
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

_PYTHON = ("python3", "-I", "-S", "-c")
"""Without `site`, Python starts in half the time; most of a fake run is starting programs."""

_INITIALISE = """
[ -z "$(ls -A "$1")" ] || { echo "$1 is not empty" >&2; exit 1; }
[ "$2" != initialise ] || { echo "told to fail in initialise" >&2; exit 1; }
printf 1 >"$1/format"
"""

_SERVE = """
import json, os, socket, sys, threading, time
run_dir = sys.argv[1]
options = json.load(open(f"{run_dir}/fake.json"))
password = open(f"{run_dir}/fake.secret").read()
settings, data = options["settings"], options["data_dir"]
fault = settings.get("fault", "")
if open(f"{data}/format").read() != "1":
    sys.exit("no data of ours")
if fault == "start":
    sys.exit("told to fail in start")
if fault == "ready":
    time.sleep(3600)
rows = f"{data}/rows"
number = open(rows).read() if os.path.exists(rows) else "none"

def serve(connection):
    with connection, connection.makefile("rw") as stream:
        def say(line):
            stream.write(line + "\\n")
            stream.flush()
        if stream.readline() != f"auth {password}\\n":
            say("error access denied")
            return
        say("ok")
        while line := stream.readline().split():
            say(answer(*line))
            if line == ["shutdown"] and fault != "shutdown":
                os._exit(0)

def answer(verb, *args):
    global number
    if verb == "get":
        time.sleep(settings.get("delay_ms", 1) / 1000)
        return f"ok {number}"
    if verb == "load":
        number = args[0]
        with open(rows, "w") as file:
            file.write(number)
        return "ok"
    if verb == "settings":
        return "ok " + json.dumps({"port": options["port"], **settings})
    if verb == "shutdown" and fault != "shutdown":
        return "ok"
    return f"error cannot {verb}"

def guarded(connection):
    try:
        serve(connection)
    except OSError:
        pass  # the client is gone

listening = socket.create_server((options["listen"], options["port"]), backlog=128)
while True:
    threading.Thread(target=guarded, args=(listening.accept()[0],), daemon=True).start()
"""

_ASK = """
exec 3<>"/dev/tcp/${1/0.0.0.0/127.0.0.1}/$2"
for line in "auth $(<"$3")" "$4"; do
    printf '%s\\n' "$line" >&3
    read -r -t 5 word rest <&3
    [ "$word" = ok ] || { echo "${rest:-no answer}" >&2; exit 1; }
done
printf '%s\\n' "$rest"
"""


class FakeDatabase:
    """The fake server. Settings: `delay_ms` of each answer, and `fault`, the step that fails."""

    per_run: ClassVar[frozenset[str]] = frozenset({"port"})
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = {}
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Fill an empty data directory; refuse one that is not empty."""
        argv = ("sh", "-c", _INITIALISE, "sh", plan.data_dir, str(plan.settings.get("fault", "")))
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
            argv=(*_PYTHON, _SERVE, plan.run_dir),
            env={},
            files={OPTIONS_FILE: json.dumps(options), SECRET_FILE: plan.secrets.password},
        )

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether the server answers."""
        return self._ask(plan, inside, "settings") is not None

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Read the server's settings and its port."""
        answer = self._ask(plan, inside, "settings")
        if answer is None or plan.settings.get("fault") == "effective":
            raise RunFailed("the fake server does not report its settings")
        return {name: str(value) for name, value in json.loads(answer).items()}

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Ask the server to stop."""
        if self._ask(plan, inside, "shutdown") is None:
            raise RunFailed("the fake server does not stop")

    def _ask(self, plan: ServerPlan, inside: Exec, question: str) -> str | None:
        secret = f"{plan.run_dir}/{SECRET_FILE}"
        argv = ("bash", "-c", _ASK, "bash", plan.listen, str(plan.port), secret, question)
        done = inside(argv, _TIMEOUT_S, b"")
        return done.text if done.code == 0 else None


class FakeCluster:
    """A cluster that is complete once each node answers, unless `fault` is `together`."""

    def is_complete(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether this node answers."""
        return FakeDatabase().ready(plan, inside) and plan.settings.get("fault") != "together"
