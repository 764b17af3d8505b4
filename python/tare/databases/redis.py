"""Redis (7 and later) and Valkey, its fork since Redis 7.2, as Debian packages them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.databases.option_file import Setting
from tare.databases.tls import CERTIFICATE_FILE, KEY_FILE, certificate_files
from tare.errors import RunFailed, StudyError
from tare.sites import Completed

SECRET = frozenset({"masterauth", "requirepass", "tls-client-key-file-pass", "tls-key-file-pass"})
"""Settings of CONFIG GET that hold passwords."""

PER_RUN: frozenset[str] = frozenset({"bind", "port", "tls-port", "tls-cert-file", "tls-key-file"})
"""Settings that may differ between two runs or arms that are otherwise equal. All others must agree."""

DERIVED: Mapping[str, frozenset[str]] = {
    "sut.limits.nofile": frozenset({"maxclients"}),
    "sut.tls": frozenset({"tls-auth-clients"}),
    "sut.network": frozenset({"unixsocket", "unixsocketperm"}),
    "sut.log_target": frozenset({"logfile"}),
}
"""Settings that the server lowers by its limit of open files, and that tare sets for TLS, Unix sockets and logs."""

_OWN = SECRET | {
    "aclfile", "bind", "cluster-enabled", "daemonize", "dir", "include", "logfile", "masteruser", "pidfile", "port",
    "protected-mode", "rename-command", "replicaof", "slaveof", "supervised", "syslog-enabled",
    "tls-auth-clients", "tls-ca-cert-dir", "tls-ca-cert-file", "tls-cert-file", "tls-key-file", "tls-port",
    "unixsocket", "unixsocketperm", "user",
}  # fmt: skip
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VALUE = re.compile(r"[ !$-&(-\[\]-~]*")
"""Printable ASCII without quotes, backslash and `#`."""


_COUNT = re.compile(r"\d+"), "a whole number of 0 or more"
_MEMORY = re.compile(r"\d+([kmg]b?|b)?", re.IGNORECASE), "a size, such as 512mb"
_FLAG = re.compile(r"yes|no", re.IGNORECASE), "true or false"
_WORD = re.compile(r"[a-z0-9-]+", re.IGNORECASE), "one of the server's words"
_KINDS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "save": (re.compile(r'""|\d+ \d+( \d+ \d+)*'), "empty, or pairs of seconds and changes such as 900 1"),
    **dict.fromkeys(("databases", "hz", "io-threads", "maxclients", "tcp-backlog", "timeout"), _COUNT),
    **dict.fromkeys(("auto-aof-rewrite-percentage", "maxmemory-samples", "repl-timeout", "tcp-keepalive"), _COUNT),
    **dict.fromkeys(("maxmemory", "auto-aof-rewrite-min-size", "repl-backlog-size"), _MEMORY),
    **dict.fromkeys(("appendonly", "aof-use-rdb-preamble", "no-appendfsync-on-rewrite", "rdbchecksum"), _FLAG),
    **dict.fromkeys(("rdbcompression", "activerehashing", "io-threads-do-reads", "dynamic-hz"), _FLAG),
    **dict.fromkeys(("appendfsync", "maxmemory-policy"), _WORD),
}  # fmt: skip
"""Settings that benchmarks change → pattern of valid values and its description. The server judges all others."""


CONFIG_FILE = "redis.conf"
_ASK_TIMEOUT_S = 60.0
"""A client that starts in an emulated virtual machine may take more than 10 s."""
_SAVE_TIMEOUT_S = 3600.0
_FACTS = ("redis_version", "redis_mode", "multiplexing_api", "mem_allocator")
_VALKEY_FACTS = ("valkey_version", "redis_version", "server_mode", "multiplexing_api", "mem_allocator")


@dataclass(frozen=True)
class Product:
    """One product of the family: its name, its programs, and the facts that INFO reports."""

    name: str
    server: str
    client: str
    facts: tuple[str, ...]


REDIS = Product("Redis", "redis-server", "redis-cli", _FACTS)
VALKEY = Product("Valkey", "valkey-server", "valkey-cli", _VALKEY_FACTS)


def check_settings(settings: Mapping[str, Setting]) -> None:
    """Raise `StudyError` for the first setting that a study must not change; the server judges unknown names."""
    for name, value in settings.items():
        if not _NAME.fullmatch(name):
            raise StudyError(f"{name!r} is not a setting of Redis", hint="lowercase letters, digits and `-` only")
        if name in _OWN:
            raise StudyError(f"the server setting {name!r} is reserved for tare", hint="remove it from `settings`")
        text = _render(name, value)
        if name in _KINDS and not _KINDS[name][0].fullmatch(text):
            raise StudyError(f"the server setting {name!r} must be {_KINDS[name][1]}, not {value!r}")


def render(settings: Mapping[str, Setting]) -> str:
    """Render settings as lines of redis.conf; a value of several words gives several arguments (`save: 900 1`)."""
    return "".join(f"{name} {_render(name, value)}\n" for name, value in settings.items())


def _render(name: str, value: Setting) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    if not _VALUE.fullmatch(text):
        raise StudyError(
            f"the value of the server setting {name!r} cannot be written in redis.conf: {text!r}",
            hint="printable ASCII without quotes, backslashes and `#`",
        )
    return text if text.strip() else '""'


class Redis:
    """One server on one data directory, configured by a file in its run directory.

    Settings that a study leaves out have the server's built-in values, as no redis.conf is read. Raises
    `StudyError` for settings that a study must not change.
    """

    per_run: ClassVar[frozenset[str]] = PER_RUN
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = DERIVED
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def __init__(self, product: Product = REDIS) -> None:
        self._product = product

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Check that the data directory exists; the server needs nothing in it."""
        check_settings(plan.settings)
        return ServerCommand(argv=("test", "-d", plan.data_dir), env={}, files={})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """Run the server in the foreground, with its log on standard output; only the file has the password."""
        check_settings(plan.settings)
        file = render({**_own_options(plan), **plan.settings})
        argv = (self._product.server, f"{plan.run_dir}/{CONFIG_FILE}")
        return ServerCommand(argv=argv, env={}, files={CONFIG_FILE: file, **certificate_files(plan)})

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether the server answers PING; a server that still loads its data answers something else."""
        done = self._ask(plan, inside, "PING")
        return done.code == 0 and done.text.splitlines() == ["OK", "PONG"]

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Read all of CONFIG GET but passwords and, as `info.…`, facts of INFO about the program.

        Raises `RunFailed` if the other product answers, as results bear the name of the server.
        """
        asked = self._ask(plan, inside, "CONFIG GET *", options=("--json",))
        settings = self._must(asked, "read its settings").text
        facts = self._must(self._ask(plan, inside, "INFO"), "read its INFO").text
        return {**parse_settings(settings), **parse_facts(facts, self._product)}

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Write all data to disk, whatever the study says about saving, and stop.

        A server that shuts down answers by ending the connection.
        """
        done = self._ask(plan, inside, "SHUTDOWN SAVE", timeout_s=_SAVE_TIMEOUT_S)
        answers = [line for line in done.text.splitlines() if line]
        if answers != ["OK"]:
            answer = answers[-1] if answers else "no answer"
            raise RunFailed(f"{self._product.name} did not let tare shut it down: {answer}")

    def _ask(
        self,
        plan: ServerPlan,
        inside: Exec,
        command: str,
        *,
        options: Sequence[str] = (),
        timeout_s: float = _ASK_TIMEOUT_S,
    ) -> Completed:
        """Send the password and a command on standard input, so that no argument has the password; two answers."""
        words = f"AUTH {plan.secrets.password}\n{command}\n"
        return inside((self._product.client, "-s", _socket(plan), *options), timeout_s, words.encode())

    def _must(self, done: Completed, what: str) -> Completed:
        if done.code != 0:
            lines = (done.text + done.stderr.decode(errors="replace")).strip().splitlines()
            reason = lines[-1] if lines else f"{self._product.client} ended with {done.code}"
            raise RunFailed(f"{self._product.name} did not let tare {what}: {reason}")
        return done


def parse_settings(text: str) -> Mapping[str, str]:
    """Parse name → value from the client's JSON, where names and values alternate after the password's answer."""
    try:
        words = json.loads(text.split("\n", 1)[1])
        settings = dict(zip(words[::2], words[1::2], strict=True))
    except (ValueError, LookupError, TypeError) as error:
        raise RunFailed(f"the settings of Redis cannot be read: {text[:80]!r}") from error
    if not settings:
        raise RunFailed("Redis returned no settings")
    return {name: value for name, value in settings.items() if name not in SECRET}


def parse_facts(text: str, product: Product = REDIS) -> Mapping[str, str]:
    """Parse `info.NAME` → value from INFO: facts about the program."""
    info = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    if "valkey_version" in info and product is not VALKEY:
        raise RunFailed(f"Valkey answers instead of {product.name}", hint="`sut.database: valkey`")
    if missing := [name for name in product.facts if name not in info]:
        raise RunFailed(f"{product.name} does not report its {', '.join(missing)}")
    return {f"info.{name}": info[name] for name in product.facts}


def _own_options(plan: ServerPlan) -> dict[str, Setting]:
    """Options that tare sets. With a certificate, the port speaks TLS only and requires no client certificates."""
    port: dict[str, Setting] = {"port": plan.port}
    if plan.secrets.certificate is not None:
        port = {
            "port": 0,
            "tls-port": plan.port,
            "tls-cert-file": f"{plan.run_dir}/{CERTIFICATE_FILE}",
            "tls-key-file": f"{plan.run_dir}/{KEY_FILE}",
            "tls-auth-clients": "no",
        }
    return {
        "bind": plan.listen,
        **port,
        "unixsocket": _socket(plan),
        "unixsocketperm": "700" if plan.socket is None else "777",
        "dir": plan.data_dir,
        "daemonize": "no",
        **({} if plan.log_file is None else {"logfile": plan.log_file}),
        "requirepass": plan.secrets.password,
    }


def _socket(plan: ServerPlan) -> str:
    return plan.socket or f"{plan.run_dir}/redis.sock"
