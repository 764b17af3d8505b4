"""MongoDB: a `mongod` from an image or a directory that the user provides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.databases.option_file import Setting
from tare.errors import RunFailed, StudyError
from tare.sites import Completed

MONGODB, FERRETDB, PERCONA = "MongoDB", "FerretDB", "Percona Server for MongoDB"

_PER_CALL = frozenset({"$clusterTime", "lastCommittedOpTime", "ok", "operationTime"})
"""Fields of answers that belong to the protocol, not to the server's settings."""


CONFIG_FILE = "mongod.conf"
CACHE_KEY = "storage.wiredTiger.engineConfig.cacheSizeGB"
_SHORT: Mapping[str, str] = {"wiredTigerCacheSizeGB": CACHE_KEY}
"""Well-known command-line options → keys of the configuration file."""
_OWN = ("net", "processManagement", "replication", "security", "sharding", "storage.dbPath", "systemLog")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9_]+)*")
_ASK_TIMEOUT_S = 30.0
_SHUTDOWN_TIMEOUT_S = 3600.0
_REFUSED = "MongoServerError"
"""Word of mongosh for an error that the server returned, rather than the end of the connection."""
_CACHE = "maximum bytes configured"
_QUESTIONS: Mapping[str, str] = {
    "build": "{buildInfo: 1}",
    "parameters": "{getParameter: '*'}",
    "options": "{getCmdLineOpts: 1}",
    "status": "{serverStatus: 1}",
}


def server_identity(build: Mapping[str, Any]) -> Mapping[str, str]:
    """Identify the server by its answer to `buildInfo`: `server.name`, `server.version` and `server.protocol`.

    `server.protocol`: the version of MongoDB that the server is compatible with. A server that names no other
    product is MongoDB.
    """
    protocol = build.get("version")
    own = build.get("ferretdb")
    if isinstance(own, Mapping) and isinstance(own.get("version"), str):
        name, version = FERRETDB, own["version"]
    elif isinstance(build.get("psmdbVersion"), str):
        name, version = PERCONA, build["psmdbVersion"]
    else:
        name, version = MONGODB, protocol
    if not isinstance(protocol, str):
        raise RunFailed(f"the server does not report its version: {str(dict(build))[:80]}")
    return {"server.name": name, "server.version": version, "server.protocol": protocol}


def flat(beginning: str, tree: Any) -> Mapping[str, str]:
    """Flatten nested documents to dotted name → value as text; a list is one value."""
    return dict(_leaves(beginning, tree))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(value, Mapping):
        yield name, value if isinstance(value, str) else repr(value)
        return
    for key, inner in value.items():
        if key not in _PER_CALL:
            yield from _leaves(f"{name}.{key}" if name else key, inner)


class MongoDB:
    """One `mongod` on one data directory, configured by a file in its run directory and queried by `mongosh`.

    Settings are dotted keys of that file; `setParameter.NAME` for parameters. There is no password: whoever reaches
    the port may use the server. Raises `StudyError` for settings that a study must not change.
    """

    per_run: ClassVar[frozenset[str]] = frozenset({"net.bindIp", "net.port"})
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = {
        **{
            f"sut.settings.{name}": frozenset({"cache.maximum_bytes_configured", CACHE_KEY})
            for name in ("wiredTigerCacheSizeGB", CACHE_KEY)
        },
        "sut.limits.memory": frozenset({"cache.maximum_bytes_configured"}),
    }
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Check that the data directory exists; the server needs nothing in it."""
        _document(plan)
        return ServerCommand(argv=("test", "-d", plan.data_dir), env={}, files={})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """Run the server in the foreground, with its log on standard output. JSON is valid YAML."""
        text = json.dumps(_document(plan), indent=1) + "\n"
        argv = ("mongod", "--config", f"{plan.run_dir}/{CONFIG_FILE}")
        return ServerCommand(argv=argv, env={}, files={CONFIG_FILE: text})

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether the server answers a command."""
        done = _ask(plan, inside, {"ping": "{ping: 1}"})
        try:
            return done.code == 0 and json.loads(done.text)["ping"]["ok"] == 1
        except (ValueError, LookupError, TypeError):
            return False

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Read `server.…` (its identity), keys of its configuration, `setParameter.…` and the size of its cache.

        Raises `RunFailed` if FerretDB answers, as results bear the name of the server.
        """
        done = _ask(plan, inside, _QUESTIONS)
        if done.code != 0:
            raise RunFailed(f"mongod did not report its settings: {_last_words(done)}")
        return parse_effective(done.text)

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Shut down cleanly, with a checkpoint. The server ends the connection, an error to mongosh."""
        done = _ask(plan, inside, {"shutdown": "{shutdown: 1}"}, _SHUTDOWN_TIMEOUT_S)
        words = done.text + done.stderr.decode(errors="replace")
        if _REFUSED in words or (done.code == 0 and '"ok":1' not in words):
            raise RunFailed(f"mongod did not let tare shut it down: {_last_words(done)}")


def parse_effective(text: str) -> Mapping[str, str]:
    """Parse name → value from the answers to `_QUESTIONS`, one JSON object; raises `RunFailed` on anything else."""
    try:
        parsed = json.loads(text)
        parts = {name: parsed[name] for name in _QUESTIONS}
        refused = [name for name, part in parts.items() if part["ok"] != 1]
        server = server_identity(parts["build"])
        options = parts["options"]["parsed"]
        cache = parts["status"].get("wiredTiger", {}).get("cache", {}).get(_CACHE)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RunFailed(f"the settings of mongod cannot be read: {text[:80]!r}") from error
    if refused:
        raise RunFailed(f"mongod did not answer what it was asked: {', '.join(refused)}")
    if server["server.name"] == FERRETDB:
        raise RunFailed("FerretDB answers instead of MongoDB", hint="`sut.database: ferretdb`")
    settings = {**server, **flat("", options), **flat("setParameter", parts["parameters"])}
    return settings if cache is None else {**settings, "cache.maximum_bytes_configured": str(cache)}


def _document(plan: ServerPlan) -> Mapping[str, Any]:
    """Configuration file as nested documents: the study's settings, then tare's own."""
    merged: dict[str, Any] = {}
    for name, value in plan.settings.items():
        key = _SHORT.get(name, name)
        _refuse(name, key)
        if _put(merged, key, value) is not value:
            raise StudyError(f"the server setting {name!r} is given twice")
    own: Mapping[str, Setting] = {
        "net.bindIp": plan.listen,
        "net.port": plan.port,
        "net.unixDomainSocket.pathPrefix": plan.run_dir,
        "storage.dbPath": plan.data_dir,
    }
    for key, value in own.items():
        _put(merged, key, value)
    return merged


def _put(document: dict[str, Any], key: str, value: Setting) -> Any:
    """Set a dotted key unless it is set; returns the value that the key then has."""
    first, dot, rest = key.partition(".")
    if not dot:
        return document.setdefault(first, value)
    inner = document.setdefault(first, {})
    return _put(inner, rest, value) if isinstance(inner, dict) else inner


def _refuse(name: str, key: str) -> None:
    if not _NAME.fullmatch(name):
        raise StudyError(
            f"{name!r} is not a setting of mongod", hint="use the keys of its configuration file, with dots"
        )
    if "." not in key:
        raise StudyError(
            f"{name!r} is not a key of mongod's configuration file",
            hint=f"like {CACHE_KEY}, or {', '.join(_SHORT)}",
        )
    if any(key == own or key.startswith(f"{own}.") for own in _OWN):
        raise StudyError(f"the server setting {name!r} is reserved for tare", hint="remove it from `settings`")


def _ask(
    plan: ServerPlan, inside: Exec, questions: Mapping[str, str], timeout_s: float = _ASK_TIMEOUT_S
) -> Completed:
    """Send commands to the database `admin`; the output is one JSON object of their answers."""
    asked = ", ".join(f"{name}: db.adminCommand({command})" for name, command in questions.items())
    at = ("--host", plan.own_address, "--port", str(plan.port))
    script = f"print(EJSON.stringify({{{asked}}}))"
    return inside(("mongosh", "--quiet", "--norc", *at, "--eval", script), timeout_s, b"")


def _last_words(done: Completed) -> str:
    lines = (done.text + done.stderr.decode(errors="replace")).strip().splitlines()
    return lines[-1] if lines else f"mongosh ended with {done.code}"
