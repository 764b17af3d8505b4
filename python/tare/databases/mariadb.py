"""MariaDB (10.4 and later): the server of Debian's mariadb-server package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.databases.option_file import Setting, check_settings, render_section
from tare.errors import RunFailed
from tare.sites import Completed

FOLLOWS: Mapping[str, frozenset[str]] = {
    "sut.limits.cpus": frozenset({"thread_pool_size"}),
    "sut.limits.nofile": frozenset(
        {"open_files_limit", "max_connections", "table_open_cache", "innodb_open_files"}
    ),
    "sut.settings.innodb_buffer_pool_size": frozenset({"innodb_buffer_pool_chunk_size"}),
    "sut.settings.innodb_io_capacity": frozenset({"innodb_io_capacity_max"}),
    "sut.settings.max_connections": frozenset({"back_log", "open_files_limit", "thread_cache_size"}),
    "sut.settings.table_open_cache": frozenset({"innodb_open_files", "open_files_limit"}),
}
"""What the server sizes by something else unless it is told (the pages of these variables in MariaDB's manual)."""

PER_RUN: frozenset[str] = frozenset(
    {
        # where this server listens and what its machine is called
        "bind_address", "hostname", "port", "report_host", "report_port", "wsrep_node_address",
        "wsrep_node_incoming_address", "wsrep_node_name",
        # files whose default names have the machine's name in them
        "general_log_file", "log_slow_query_file", "slow_query_log_file",
        # made from the machine's MAC address and the port
        "server_uid",
        # what has been written so far
        "gtid_binlog_pos", "gtid_binlog_state", "gtid_current_pos",
    }
)  # fmt: skip
"""May differ between two runs, or two arms, that are equal in all that matters. All others must agree."""

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MEANING = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\"}


OS_USER = "mysql"
"""The user that the image runs as. It may do all, through the socket and without a password; nobody else may."""
SCHEMA = "tare"
"""The one database that the run's user may use."""
SERVER_FILE, CLIENT_FILE, INIT_FILE = "server.cnf", "client.cnf", "init.sql"
_QUERY_TIMEOUT_S = 60.0
"""A client that starts in an emulated virtual machine may take more than 10 s."""
_SHUTDOWN_TIMEOUT_S = 3600.0
_PLAIN = re.compile(r"[A-Za-z0-9_]+")


def parse_variables(batch: str) -> Mapping[str, str]:
    """Name → value from `mariadb --batch --skip-column-names`; raises `RunFailed` on anything else.

    In batch mode fields are parted by tabs, and line feed, tab, NUL and backslash within them are escaped.
    """
    variables: dict[str, str] = {}
    for line in batch.split("\n"):
        if not line:
            continue
        name, tab, value = line.partition("\t")
        if not tab or "\t" in value or not name or name in variables:
            raise RunFailed(f"the server's variables cannot be read: {line[:80]!r}")
        variables[name] = _ESCAPED.sub(_unescape, value)
    if not variables:
        raise RunFailed("the server told no variables")
    return variables


def _unescape(match: re.Match[str]) -> str:
    return _MEANING.get(match.group(1), match.group(1))


class MariaDB:
    """One server on one data directory, told everything by a single option file in its run directory.

    No other option file is read. Nothing is tuned: beside the study's settings the file holds only addresses
    and paths. Raises `StudyError` for settings that no study may make.
    """

    per_run: ClassVar[frozenset[str]] = PER_RUN
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = FOLLOWS
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Fill an empty data directory: system tables, no test database, no account that has a password.

        `--cross-bootstrap` leaves out what depends on the name of the machine, which is another in every run.
        """
        argv = (
            "mariadb-install-db",
            f"--defaults-file={plan.run_dir}/{SERVER_FILE}",
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={OS_USER}",
            "--skip-test-db",
            "--cross-bootstrap",
        )
        options = render_section("mariadbd", {**_own_options(plan), **_checked(plan)})
        return ServerCommand(argv=argv, env={}, files={SERVER_FILE: options})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """The server in the foreground, its log on standard error.

        The account of the run is made by statements that the server executes before its first connection, so
        that its password is in no argument, and in no snapshot: `shutdown` drops the account.
        """
        own = {**_own_options(plan), "init_file": f"{plan.run_dir}/{INIT_FILE}"}
        files = {
            SERVER_FILE: render_section("mariadbd", {**own, **_checked(plan)}),
            CLIENT_FILE: render_section("client", {"user": OS_USER, "socket": _socket(plan)}),
            INIT_FILE: _init_statements(plan),
        }
        argv = ("mariadbd", f"--defaults-file={plan.run_dir}/{SERVER_FILE}")
        return ServerCommand(argv=argv, env={}, files=files)

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether a query is answered, and the run's account is there."""
        query = f"SELECT COUNT(*) FROM mysql.global_priv WHERE User = '{_plain(plan.secrets.user)}'"  # noqa: S608 - a plain name, checked by _plain
        done = _execute(plan, inside, query)
        return done.code == 0 and done.text.strip() == "1"

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """All global variables."""
        return parse_variables(_must(_execute(plan, inside, "SHOW GLOBAL VARIABLES"), "read its variables").text)

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """A slow shutdown: purge is finished and nothing is left for the next start to do.

        Else every run that starts from a copy would work off the same backlog beside its measurement.
        """
        statements = (
            f"DROP USER IF EXISTS '{_plain(plan.secrets.user)}'@'%'",
            "SET GLOBAL innodb_fast_shutdown = 0",
            "SHUTDOWN",
        )
        done = _execute(plan, inside, "; ".join(statements), timeout_s=_SHUTDOWN_TIMEOUT_S)
        _must(done, "shut it down")


def tell(plan: ServerPlan, inside: Exec, statement: str) -> None:
    """Have it carry out a statement in the schema of the runs."""
    _must(_execute(plan, inside, f"USE {SCHEMA}; {statement}"), "make what it was told to")


def _own_options(plan: ServerPlan) -> dict[str, Setting]:
    """`tmpdir` lies beside the data's copy: /tmp is another file system in a container than outside of one."""
    return {
        "datadir": plan.data_dir,
        "bind_address": plan.listen,
        "port": plan.port,
        "socket": _socket(plan),
        "pid_file": f"{plan.run_dir}/mariadbd.pid",
        "tmpdir": plan.run_dir,
        "skip_name_resolve": True,
    }


def _checked(plan: ServerPlan) -> Mapping[str, Setting]:
    check_settings(plan.settings)
    return plan.settings


def _init_statements(plan: ServerPlan) -> str:
    """One statement a line, as `init_file` wants it."""
    user, password = _plain(plan.secrets.user), _plain(plan.secrets.password)
    lines = (
        f"CREATE DATABASE IF NOT EXISTS {SCHEMA};",
        f"CREATE OR REPLACE USER '{user}'@'%' IDENTIFIED BY '{password}';",
        f"GRANT ALL PRIVILEGES ON {SCHEMA}.* TO '{user}'@'%';",
    )
    return "\n".join((*lines, ""))


def _plain(word: str) -> str:
    """A generated name or password; anything that would need quoting is a fault of ours."""
    if not _PLAIN.fullmatch(word):
        raise ValueError("user and password are to be letters, digits and underscores")
    return word


def _socket(plan: ServerPlan) -> str:
    return f"{plan.run_dir}/mariadbd.sock"


def _execute(plan: ServerPlan, inside: Exec, sql: str, *, timeout_s: float = _QUERY_TIMEOUT_S) -> Completed:
    argv = (
        "mariadb",
        f"--defaults-file={plan.run_dir}/{CLIENT_FILE}",
        "--batch",
        "--skip-column-names",
        f"--execute={sql}",
    )
    return inside(argv, timeout_s, b"")


def _must(done: Completed, what: str) -> Completed:
    if done.code != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise RunFailed(f"MariaDB did not let tare {what}: {words[-1] if words else f'exit code {done.code}'}")
    return done
