"""PostgreSQL (15 and later): the server of Debian's packages, or of any image with its programs in PATH."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from base64 import b64encode
from collections.abc import Mapping
from typing import ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.databases.postgresql.settings import DERIVED, PER_RUN, checked, render
from tare.databases.tls import CERTIFICATE_FILE, KEY_FILE, certificate_files
from tare.errors import RunFailed
from tare.sites import Completed

_ITERATIONS = 4096
"""Number of iterations that PostgreSQL uses (SCRAM_SHA_256_DEFAULT_ITERATIONS)."""
_SALT_BYTES = 16


OS_USER = "postgres"
"""User that the image runs as, and the superuser: logs in through the socket only, without a password."""
SCHEMA = "tare"
"""The one database that the run's user owns and may use."""
CONFIG_FILE, ACCESS_FILE, MAP_FILE = "postgresql.conf", "pg_hba.conf", "pg_ident.conf"
_QUERY_TIMEOUT_S = 60.0
"""A client that starts in an emulated virtual machine may take more than 10 s."""
_SHUTDOWN_TIMEOUT_S = 3600.0
_PLAIN = re.compile(r"[A-Za-z0-9_]+")
SETTINGS = """
WITH database AS (SELECT to_jsonb(d) AS known FROM pg_database AS d WHERE datname = current_database())
SELECT json_object_agg(name, value) FROM (
  SELECT name, current_setting(name) AS value FROM pg_settings
  UNION SELECT 'lc_' || substr(key, 4), value FROM database, jsonb_each_text(known)
    WHERE key IN ('datcollate', 'datctype')
  UNION SELECT 'locale_provider', CASE known->>'datlocprovider' WHEN 'i' THEN 'icu' ELSE 'builtin' END FROM database
    WHERE known->>'datlocprovider' <> 'c'
  UNION SELECT 'icu_locale', value FROM database, jsonb_each_text(known)
    WHERE key IN ('daticulocale', 'datlocale') AND value IS NOT NULL
) AS all_of_them
"""
"""All settings; from version 16 on, only pg_database has those of the locale. The provider libc is left out."""
TIDY = "VACUUM (ANALYZE); CHECKPOINT"


def verifier(password: str, salt: bytes | None = None) -> str:
    """SCRAM-SHA-256 verifier of a password (RFC 5802) as pg_authid stores it; `salt` is random by default."""
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    return f"SCRAM-SHA-256${_ITERATIONS}:{_text(salt)}${_text(stored)}:{_text(server)}"


def _text(raw: bytes) -> str:
    return b64encode(raw).decode()


class PostgreSQL:
    """One server on one data directory, with the study's settings in a file of its run directory.

    That file includes the one that `initdb` wrote, so that settings that a study leaves out are as shipped. Raises
    `StudyError` for settings that a study must not change.
    """

    per_run: ClassVar[frozenset[str]] = PER_RUN
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = DERIVED
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Fill an empty data directory. Text is UTF-8 and, unless the study says otherwise, sorts by its bytes."""
        argv = (
            "initdb",
            f"--pgdata={plan.data_dir}",
            f"--username={OS_USER}",
            "--encoding=UTF8",
            "--locale=C",
            "--auth-local=peer",
            "--auth-host=scram-sha-256",
            *checked(plan.settings).initdb,
        )
        return ServerCommand(argv=argv, env={}, files={})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """Run the server in the foreground, with its log on standard error."""
        by = "host" if plan.secrets.certificate is None else "hostssl"
        user = f"{SCHEMA} {_plain(plan.secrets.user)}"
        access = f"{by} {user} all scram-sha-256" if plan.socket is None else f"local {user} scram-sha-256"
        own = {**own_options(plan), **_log(plan), "listen_addresses": plan.listen}
        files = {
            CONFIG_FILE: f"include '{plan.data_dir}/{CONFIG_FILE}'\n"
            + render({**own, **checked(plan.settings).server}),
            ACCESS_FILE: f"local all {OS_USER} peer\n{access}\n",
            MAP_FILE: "",
            **certificate_files(plan),
        }
        argv = ("postgres", "-D", plan.data_dir, "-c", f"config_file={plan.run_dir}/{CONFIG_FILE}")
        return ServerCommand(argv=argv, env={}, files=files)

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether the server answers a query and has the run's account, which the same query creates if missing.

        The server cannot execute a file of statements at its start. Only the password's verifier is sent.
        """
        done = execute(plan, inside, _account(plan), database=OS_USER)
        return done.code == 0 and done.text.split() == ["ready"]

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Read all settings as SHOW prints them, with units, including those that `initdb` fixed."""
        return parse_settings(must(execute(plan, inside, SETTINGS), "read its settings").text)

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Vacuum and analyse, remove the account's password, write everything, and stop.

        Otherwise autovacuum would work off the load's backlog in every run, during the measurement.
        """
        forget = f"ALTER ROLE {_plain(plan.secrets.user)} PASSWORD NULL"
        must(execute(plan, inside, f"{forget}; {TIDY}", timeout_s=_SHUTDOWN_TIMEOUT_S), "tidy up")
        argv = ("pg_ctl", "stop", "--mode=fast", "--no-wait", f"--pgdata={plan.data_dir}")
        must(inside(argv, _QUERY_TIMEOUT_S, b""), "shut it down")


def execute_statement(plan: ServerPlan, inside: Exec, statement: str) -> None:
    """Execute a statement as the run's user, who then owns what the statement creates."""
    must(execute(plan, inside, f"SET ROLE {_plain(plan.secrets.user)}; {statement}"), "create what was requested")


def own_options(plan: ServerPlan) -> dict[str, str | int]:
    """Options that tare sets: port, and the places of access files, socket and certificate in the run directory."""
    tls: dict[str, str | int] = {}
    if plan.secrets.certificate is not None:
        tls = {
            "ssl": "on",
            "ssl_cert_file": f"{plan.run_dir}/{CERTIFICATE_FILE}",
            "ssl_key_file": f"{plan.run_dir}/{KEY_FILE}",
        }
    return {
        "hba_file": f"{plan.run_dir}/{ACCESS_FILE}",
        "ident_file": f"{plan.run_dir}/{MAP_FILE}",
        "port": plan.port,
        "unix_socket_directories": _sockets(plan),
        **tls,
    }


def parse_settings(text: str) -> Mapping[str, str]:
    """Parse name → value from one JSON object; raises `RunFailed` on anything else."""
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise RunFailed(f"the server's settings cannot be read: {text[:80]!r}") from error
    if not isinstance(parsed, dict) or not parsed or not all(isinstance(value, str) for value in parsed.values()):
        raise RunFailed(f"the server returned no settings: {text[:80]!r}")
    return parsed


def execute(
    plan: ServerPlan, inside: Exec, sql: str, *, database: str = SCHEMA, timeout_s: float = _QUERY_TIMEOUT_S
) -> Completed:
    """Execute statements as the superuser until the first that fails; they are sent on standard input."""
    argv = (
        *("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--no-password"),
        "--set=ON_ERROR_STOP=1",
        *(f"--host={_sockets(plan)}", f"--port={plan.port}", f"--username={OS_USER}", f"--dbname={database}"),
    )
    return inside(argv, timeout_s, f"{sql};\n".encode())


def must(done: Completed, what: str) -> Completed:
    """Return a call that succeeded; raise `RunFailed` with the server's first error if it failed."""
    if done.code != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = next((line for line in lines if "ERROR" in line or "FATAL" in line or "error:" in line), None)
        raise RunFailed(
            f"PostgreSQL did not let tare {what}: {reason or (lines or [f'exit code {done.code}'])[-1]}"
        )
    return done


def _log(plan: ServerPlan) -> dict[str, str | int]:
    """Settings that have a process of its own collect the log in a file; empty where it goes to standard error."""
    if plan.log_file is None:
        return {}
    directory, _, name = plan.log_file.rpartition("/")
    collected = {"logging_collector": "on", "log_directory": directory, "log_filename": name}
    return {**collected, "log_rotation_age": 0, "log_rotation_size": 0}


def _sockets(plan: ServerPlan) -> str:
    """Directory of the server's Unix socket, which the server names by its port."""
    return plan.run_dir if plan.socket is None else plan.socket.rpartition("/")[0]


def _account(plan: ServerPlan) -> str:
    """Statements that create the run's account. They may be repeated: `gexec` executes a row's text, if any."""
    user = _plain(plan.secrets.user)
    role = f"SELECT 'CREATE ROLE {user} LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{user}')"  # noqa: S608 - a plain name, checked by _plain
    database = (
        f"SELECT 'CREATE DATABASE {SCHEMA} OWNER {user}'"  # noqa: S608 - a plain name, checked by _plain
        f" WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{SCHEMA}')"
    )
    password = f"ALTER ROLE {user} PASSWORD '{verifier(_plain(plan.secrets.password))}';"
    return "\n".join((f"{role} \\gexec", password, f"{database} \\gexec", "SELECT 'ready'"))


def _plain(word: str) -> str:
    """Return a generated name or password; one that would need quoting is a bug of tare: `ValueError`."""
    if not _PLAIN.fullmatch(word):
        raise ValueError("user and password must be letters, digits and underscores")
    return word
