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
from tare.databases.postgresql.settings import FOLLOWS, PER_RUN, checked, render
from tare.databases.tls import CERTIFICATE_FILE, KEY_FILE, certificate_files
from tare.errors import RunFailed
from tare.sites import Completed

_ITERATIONS = 4096
"""PostgreSQL's own number (SCRAM_SHA_256_DEFAULT_ITERATIONS)."""
_SALT_BYTES = 16


OS_USER = "postgres"
"""The user that the image runs as, and the superuser: gets in through the socket alone, without a password."""
SCHEMA = "tare"
"""The one database that the run's user may use, and owns."""
CONFIG_FILE, ACCESS_FILE, MAP_FILE = "postgresql.conf", "pg_hba.conf", "pg_ident.conf"
_QUERY_TIMEOUT_S = 60.0
"""A client that starts in an emulated virtual machine may take more than 10 s."""
_SHUTDOWN_TIMEOUT_S = 3600.0
_PLAIN = re.compile(r"[A-Za-z0-9_]+")
SETTINGS = "SELECT json_object_agg(name, current_setting(name)) FROM pg_settings"
TIDY = "VACUUM (ANALYZE); CHECKPOINT"


def verifier(password: str, salt: bytes | None = None) -> str:
    """The SCRAM-SHA-256 verifier of RFC 5802 as pg_authid holds it; a random salt where none is given."""
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    return f"SCRAM-SHA-256${_ITERATIONS}:{_text(salt)}${_text(stored)}:{_text(server)}"


def _text(raw: bytes) -> str:
    return b64encode(raw).decode()


class PostgreSQL:
    """One server on one data directory, given the study's settings by a file in its run directory.

    That file includes the one which `initdb` wrote, so that what a study does not say is as it is shipped. Raises
    `StudyError` for settings that no study may make.
    """

    per_run: ClassVar[frozenset[str]] = PER_RUN
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = FOLLOWS
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Fill an empty data directory; text is UTF-8 and sorted by its bytes, whatever locales the image has."""
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
        """The server in the foreground, its log on standard error."""
        by = "host" if plan.secrets.certificate is None else "hostssl"
        files = {
            CONFIG_FILE: f"include '{plan.data_dir}/{CONFIG_FILE}'\n"
            + render({**own_options(plan), "listen_addresses": plan.listen, **checked(plan.settings).server}),
            ACCESS_FILE: f"local all {OS_USER} peer\n{by} {SCHEMA} {_plain(plan.secrets.user)} all scram-sha-256\n",
            MAP_FILE: "",
            **certificate_files(plan),
        }
        argv = ("postgres", "-D", plan.data_dir, "-c", f"config_file={plan.run_dir}/{CONFIG_FILE}")
        return ServerCommand(argv=argv, env={}, files=files)

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether a query is answered, and the run's account is there: the same query makes it where it is not.

        The server has no file of statements to begin with. Only the password's verifier is sent.
        """
        done = execute(plan, inside, _account(plan), database=OS_USER)
        return done.code == 0 and done.text.split() == ["ready"]

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """All settings as SHOW prints them, units included, among them those that were fixed by `initdb`."""
        return parse_settings(must(execute(plan, inside, SETTINGS), "read its settings").text)

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Vacuum and analyse, take the account's password, write everything, and stop.

        Else autovacuum would do in every run what the load has left to be done, beside the measurement.
        """
        forget = f"ALTER ROLE {_plain(plan.secrets.user)} PASSWORD NULL"
        must(execute(plan, inside, f"{forget}; {TIDY}", timeout_s=_SHUTDOWN_TIMEOUT_S), "tidy up")
        argv = ("pg_ctl", "stop", "--mode=fast", "--no-wait", f"--pgdata={plan.data_dir}")
        must(inside(argv, _QUERY_TIMEOUT_S, b""), "shut it down")


def tell(plan: ServerPlan, inside: Exec, statement: str) -> None:
    """Have it carry out a statement as the run's user, who then owns what it makes."""
    must(execute(plan, inside, f"SET ROLE {_plain(plan.secrets.user)}; {statement}"), "create what was requested")


def own_options(plan: ServerPlan) -> dict[str, str | int]:
    """Where things are: configuration, socket and certificate in the run directory."""
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
        "unix_socket_directories": plan.run_dir,
        **tls,
    }


def parse_settings(text: str) -> Mapping[str, str]:
    """Name → value from one JSON object; raises `RunFailed` on anything else."""
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
    """Carry out statements as the superuser until the first that fails; they are in no argument."""
    argv = (
        *("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--no-password"),
        "--set=ON_ERROR_STOP=1",
        *(f"--host={plan.run_dir}", f"--port={plan.port}", f"--username={OS_USER}", f"--dbname={database}"),
    )
    return inside(argv, timeout_s, f"{sql};\n".encode())


def must(done: Completed, what: str) -> Completed:
    """What was done, if it was; else `RunFailed` with the server's first complaint."""
    if done.code != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = next((line for line in lines if "ERROR" in line or "FATAL" in line or "error:" in line), None)
        raise RunFailed(
            f"PostgreSQL did not let tare {what}: {reason or (lines or [f'exit code {done.code}'])[-1]}"
        )
    return done


def _account(plan: ServerPlan) -> str:
    """Statements that may be carried out again; `gexec` has what a row says carried out, if there is a row."""
    user = _plain(plan.secrets.user)
    role = f"SELECT 'CREATE ROLE {user} LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{user}')"  # noqa: S608 - a plain name, checked by _plain
    database = (
        f"SELECT 'CREATE DATABASE {SCHEMA} OWNER {user}'"  # noqa: S608 - a plain name, checked by _plain
        f" WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{SCHEMA}')"
    )
    password = f"ALTER ROLE {user} PASSWORD '{verifier(_plain(plan.secrets.password))}';"
    return "\n".join((f"{role} \\gexec", password, f"{database} \\gexec", "SELECT 'ready'"))


def _plain(word: str) -> str:
    """A generated name or password; anything that would need quoting is a fault of ours."""
    if not _PLAIN.fullmatch(word):
        raise ValueError("user and password must be letters, digits and underscores")
    return word
