"""MongoDB: a `mongod` from an image or a directory that a user brings."""

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
"""Of the protocol, not of the server's settings."""


CONFIG_FILE = "mongod.conf"
CACHE_KEY = "storage.wiredTiger.engineConfig.cacheSizeGB"
_SHORT: Mapping[str, str] = {"wiredTigerCacheSizeGB": CACHE_KEY}
"""Options of the command line by which everybody knows them → keys of the file."""
_OWN = ("net", "processManagement", "replication", "security", "sharding", "storage.dbPath", "systemLog")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9_]+)*")
_ASK_TIMEOUT_S = 30.0
_SHUTDOWN_TIMEOUT_S = 3600.0
_REFUSED = "MongoServerError"
"""Of mongosh, where the server answers with an error rather than by the end of the connection."""
_CACHE = "maximum bytes configured"
_QUESTIONS: Mapping[str, str] = {
    "build": "{buildInfo: 1}",
    "parameters": "{getParameter: '*'}",
    "options": "{getCmdLineOpts: 1}",
    "status": "{serverStatus: 1}",
}


def who_answers(build: Mapping[str, Any]) -> Mapping[str, str]:
    """`server.name` and `server.version` by the answer to `buildInfo`, by which other servers say who they are.

    `server.protocol`: the version of MongoDB that it says to be like. One that does not say otherwise is MongoDB.
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
    """Dotted name → value as text, of documents within documents; lists are one value."""
    return dict(_leaves(beginning, tree))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(value, Mapping):
        yield name, value if isinstance(value, str) else repr(value)
        return
    for key, inner in value.items():
        if key not in _PER_CALL:
            yield from _leaves(f"{name}.{key}" if name else key, inner)


class MongoDB:
    """One `mongod` on one data directory, configured by a file in its run directory, and asked by `mongosh`.

    Settings are keys of that file with dots; `setParameter.NAME` for parameters. Nobody needs a password: whoever
    reaches the port may use it. Raises `StudyError` for settings that no study may make.
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
        """See that the data directory is there: an empty one is all that the server needs."""
        _document(plan)
        return ServerCommand(argv=("test", "-d", plan.data_dir), env={}, files={})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """The server in the foreground, its log on standard output. JSON is YAML, which the file is."""
        text = json.dumps(_document(plan), indent=1) + "\n"
        argv = ("mongod", "--config", f"{plan.run_dir}/{CONFIG_FILE}")
        return ServerCommand(argv=argv, env={}, files={CONFIG_FILE: text})

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether a command is answered."""
        done = _ask(plan, inside, {"ping": "{ping: 1}"})
        try:
            return done.code == 0 and json.loads(done.text)["ping"]["ok"] == 1
        except (ValueError, LookupError, TypeError):
            return False

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """`server.…` who answers, keys of the file as it was started, `setParameter.…` and the cache as they are.

        Raises `RunFailed` where FerretDB answers: results bear the name of the server that gave them.
        """
        done = _ask(plan, inside, _QUESTIONS)
        if done.code != 0:
            raise RunFailed(f"mongod did not report its settings: {_last_words(done)}")
        return parse_effective(done.text)

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """A clean shutdown, with a checkpoint. Its answer is the end of the connection, an error to mongosh."""
        done = _ask(plan, inside, {"shutdown": "{shutdown: 1}"}, _SHUTDOWN_TIMEOUT_S)
        words = done.text + done.stderr.decode(errors="replace")
        if _REFUSED in words or (done.code == 0 and '"ok":1' not in words):
            raise RunFailed(f"mongod did not let tare shut it down: {_last_words(done)}")


def parse_effective(text: str) -> Mapping[str, str]:
    """Name → value from the answers to `_QUESTIONS`, one JSON object; raises `RunFailed` on anything else."""
    try:
        parsed = json.loads(text)
        parts = {name: parsed[name] for name in _QUESTIONS}
        refused = [name for name, part in parts.items() if part["ok"] != 1]
        server = who_answers(parts["build"])
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
    """The file as documents within documents: the study's settings, then tare's own."""
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
    """Set what is not set yet; what then stands there."""
    first, dot, rest = key.partition(".")
    if not dot:
        return document.setdefault(first, value)
    inner = document.setdefault(first, {})
    return _put(inner, rest, value) if isinstance(inner, dict) else inner


def _refuse(name: str, key: str) -> None:
    if not _NAME.fullmatch(name):
        raise StudyError(f"{name!r} is not a setting of mongod", hint="keys of its file, with dots")
    if "." not in key:
        raise StudyError(
            f"{name!r} is no key of mongod's configuration file",
            hint=f"like {CACHE_KEY}, or {', '.join(_SHORT)}",
        )
    if any(key == own or key.startswith(f"{own}.") for own in _OWN):
        raise StudyError(f"the server setting {name!r} is reserved for tare", hint="remove it from `settings`")


def _ask(
    plan: ServerPlan, inside: Exec, questions: Mapping[str, str], timeout_s: float = _ASK_TIMEOUT_S
) -> Completed:
    """Commands of the database `admin`, and their answers as one JSON object."""
    asked = ", ".join(f"{name}: db.adminCommand({command})" for name, command in questions.items())
    at = ("--host", plan.own_address, "--port", str(plan.port))
    script = f"print(EJSON.stringify({{{asked}}}))"
    return inside(("mongosh", "--quiet", "--norc", *at, "--eval", script), timeout_s, b"")


def _last_words(done: Completed) -> str:
    lines = (done.text + done.stderr.decode(errors="replace")).strip().splitlines()
    return lines[-1] if lines else f"mongosh ended with {done.code}"
