"""FerretDB (2.7): MongoDB's protocol in front of PostgreSQL with the extension DocumentDB, as one server."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.databases.ferretdb import together
from tare.databases.mongodb import mongo_query
from tare.databases.mongodb.mongodb import FERRETDB, flat, server_identity
from tare.databases.option_file import Setting
from tare.databases.postgresql.postgresql import (
    ACCESS_FILE,
    CONFIG_FILE,
    MAP_FILE,
    OS_USER,
    SETTINGS,
    TIDY,
    PostgreSQL,
    execute,
    must,
    own_options,
    parse_settings,
)
from tare.databases.postgresql.settings import DERIVED, PER_RUN, checked, render
from tare.databases.tls import CERTIFICATE_FILE, KEY_FILE, authority_of, certificate_files
from tare.errors import RunFailed, StudyError
from tare.sites import Completed

TOGETHER_FILE, STEPS_FILE = "together.py", "steps"

_ASK_TIMEOUT_S = 10.0
_TIDY_TIMEOUT_S = 3600.0
_CONNECTION = "documentdb.localhost_connection_string"
"""Setting by which DocumentDB connects to its own server, for example to create a collection."""
_DOCUMENTDB: Mapping[str, Setting] = {
    "shared_preload_libraries": "pg_cron,pg_documentdb_core,pg_documentdb",
    "cron.database_name": OS_USER,
    "cron.use_background_workers": True,
    "max_worker_processes": 32,
}
"""Settings that DocumentDB needs. pg_cron's jobs have no TCP connections, so they need enough workers."""
_OWN = (frozenset(_DOCUMENTDB) | {_CONNECTION}) - {"max_worker_processes"}


class FerretDB:
    """PostgreSQL and FerretDB on one data directory, started and ended together by `together.py`.

    Settings are PostgreSQL's and DocumentDB's. There is no password: whoever reaches the port may use the server.
    """

    per_run: ClassVar[frozenset[str]] = PER_RUN
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = DERIVED
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Fill an empty data directory, as PostgreSQL does."""
        _refuse(plan.settings)
        return PostgreSQL().initialise(plan)

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """Run both programs under one parent; only FerretDB reaches PostgreSQL, through its socket."""
        _refuse(plan.settings)
        own = {**own_options(_in_clear(plan)), "listen_addresses": "", _CONNECTION: f"host={plan.run_dir}"}
        options = {**own, **_DOCUMENTDB, **checked(plan.settings).server}
        files = {
            CONFIG_FILE: f"include '{plan.data_dir}/{CONFIG_FILE}'\n{render(options)}",
            ACCESS_FILE: "local all all peer map=tare\n",
            MAP_FILE: f"tare {OS_USER} all\n",  # DocumentDB's own workers use another role
            TOGETHER_FILE: inspect.getsource(together),
            STEPS_FILE: together.write_steps(_steps(plan)),
            **certificate_files(plan),
        }
        argv = ("python3", "-I", f"{plan.run_dir}/{TOGETHER_FILE}", "run", f"{plan.run_dir}/{STEPS_FILE}")
        return ServerCommand(argv=argv, env={}, files=files)

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether a command is answered, through FerretDB and PostgreSQL."""
        done = _ask(plan, inside, ({"listDatabases": 1},))
        return done.code == 0 and _answers(done)[0].get("ok") == 1.0

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Read PostgreSQL's settings by name, `server.…` (its identity) and FerretDB's `parameter.…`.

        Raises `RunFailed` if another server answers, as results bear the name of the server.
        """
        settings = must(execute(plan, inside, SETTINGS, database=OS_USER), "read its settings")
        answers = _ask(plan, inside, ({"buildInfo": 1}, {"getParameter": "*"}))
        if answers.code != 0:
            raise RunFailed(f"FerretDB does not answer: {answers.stderr.decode(errors='replace').strip()}")
        build, parameters = _answers(answers)
        server = server_identity(build)
        if server["server.name"] != FERRETDB:
            raise RunFailed(f"{server['server.name']} answers instead of FerretDB", hint="`sut.database`")
        return {**parse_settings(settings.text), **server, **flat("parameter", parameters)}

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Vacuum and write everything, as PostgreSQL does, then end both programs."""
        must(execute(plan, inside, TIDY, database=OS_USER, timeout_s=_TIDY_TIMEOUT_S), "tidy up")
        argv = ("python3", "-I", f"{plan.run_dir}/{TOGETHER_FILE}", "end", f"{plan.run_dir}/{STEPS_FILE}")
        must(inside(argv, _ASK_TIMEOUT_S, b""), "shut it down")


def _refuse(settings: Mapping[str, Setting]) -> None:
    if taken := sorted(_OWN.intersection(settings)):
        raise StudyError(f"the server setting {taken[0]!r} is reserved for tare", hint="remove it from `settings`")


def _steps(plan: ServerPlan) -> Sequence[Sequence[str]]:
    psql = (
        *("psql", "--no-psqlrc", "--quiet", "--no-password", f"--host={plan.run_dir}", f"--port={plan.port}"),
        *(f"--username={OS_USER}", f"--dbname={OS_USER}"),
    )
    url = f"postgres://{OS_USER}@/{OS_USER}?host={plan.run_dir}&port={plan.port}"
    ferretdb = (
        *("ferretdb", *_listening(plan), f"--postgresql-url={url}"),
        *("--no-auth", "--telemetry=disable", "--debug-addr=-", "--log-level=WARN"),
        f"--state-dir={plan.run_dir}",
    )
    return (
        (
            together.START,
            "SIGINT",
            "postgres",
            "-D",
            plan.data_dir,
            "-c",
            f"config_file={plan.run_dir}/{CONFIG_FILE}",
        ),
        (together.UNTIL, *psql, "--command=SELECT 1"),
        (together.ONCE, *psql, "--command=CREATE EXTENSION IF NOT EXISTS documentdb CASCADE"),
        (together.START, "SIGTERM", *ferretdb),
    )


def _in_clear(plan: ServerPlan) -> ServerPlan:
    """Plan without a certificate, for PostgreSQL, which only FerretDB reaches, through its socket."""
    return replace(plan, secrets=replace(plan.secrets, certificate=None))


def _listening(plan: ServerPlan) -> tuple[str, ...]:
    """Options of FerretDB's port. With a certificate, `-` turns the port without TLS off."""
    at = f"{plan.listen}:{plan.port}"
    if plan.secrets.certificate is None:
        return (f"--listen-addr={at}",)
    files = (CERTIFICATE_FILE, "cert"), (KEY_FILE, "key")
    options = (f"--listen-tls-{what}-file={plan.run_dir}/{file}" for file, what in files)
    return ("--listen-addr=-", f"--listen-tls={at}", *options)


def _ask(plan: ServerPlan, inside: Exec, commands: Sequence[Mapping[str, Any]]) -> Completed:
    at = (plan.own_address, str(plan.port), authority_of(plan))
    argv = ("python3", "-I", "-S", "-", *at, *(repr(dict(command)) for command in commands))
    return inside(argv, _ASK_TIMEOUT_S, inspect.getsource(mongo_query).encode())


def _answers(done: Completed) -> list[Mapping[str, Any]]:
    return [ast.literal_eval(line) for line in done.text.splitlines()]
