"""MySQL (8.0 and later) and Percona Server: one adapter, and which of them answers is what the server says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.databases.batch_client import CLIENT_FILE, OS_USER, SCHEMA, BatchClient, parse_variables, plain
from tare.databases.option_file import Setting, check_settings, render_section, tls_options
from tare.databases.tls import certificate_files
from tare.errors import RunFailed

FOLLOWS: Mapping[str, frozenset[str]] = {
    "sut.limits.cpus": frozenset(
        {
            "innodb_buffer_pool_instances", "innodb_log_writer_threads", "innodb_page_cleaners",
            "innodb_parallel_read_threads", "innodb_purge_threads", "innodb_read_io_threads",
        }
    ),
    "sut.limits.memory": frozenset({"temptable_max_ram"}),
    "sut.limits.nofile": frozenset(
        {"innodb_open_files", "max_connections", "open_files_limit", "table_definition_cache", "table_open_cache"}
    ),
    "sut.tls": frozenset({"ssl_ca"}),
    "sut.settings.innodb_buffer_pool_size": frozenset(
        {"innodb_buffer_pool_chunk_size", "innodb_buffer_pool_instances", "innodb_page_cleaners"}
    ),
    "sut.settings.innodb_io_capacity": frozenset({"innodb_io_capacity_max"}),
    "sut.settings.max_connections": frozenset(
        {"back_log", "host_cache_size", "open_files_limit", "table_definition_cache", "thread_cache_size"}
    ),
    "sut.settings.table_open_cache": frozenset({"innodb_open_files", "open_files_limit", "table_definition_cache"}),
}  # fmt: skip
"""What the server sizes by something else unless it is set (the pages of these variables in MySQL's manual)."""

PER_RUN: frozenset[str] = frozenset(
    {
        # where this server listens and what its machine is called
        "bind_address", "hostname", "port", "report_host", "report_port",
        # files whose default names have the machine's name in them
        "general_log_file", "relay_log", "relay_log_basename", "relay_log_index", "slow_query_log_file",
        # in the run directory, else in the data directory
        "ssl_cert", "ssl_key",
        # made at random with the data directory, and what has been written so far
        "server_uuid", "gtid_executed", "gtid_purged",
    }
)  # fmt: skip
"""May differ between two runs, or two arms, that are equal in all that matters. All others must agree."""

OWN: frozenset[str] = frozenset(
    {
        "admin_address", "daemonize", "early_plugin_load", "initialize", "initialize_insecure", "mysqlx",
        "plugin_dir", "plugin_load", "plugin_load_add", "secure_file_priv",
    }
)  # fmt: skip
"""What tare sets itself, beside what it sets of every server of the family."""

SERVER_FILE, INIT_FILE = "server.cnf", "init.sql"
OLDEST = 8
"""The first release of MySQL that has what is used here."""
_SHUTDOWN_TIMEOUT_S = 3600.0
_CLIENT = BatchClient("mysql", "MySQL")
tell = _CLIENT.tell


class MySQL:
    """One server on one data directory, configured by a single option file in its run directory.

    No other option file is read. Nothing is tuned: beside the study's settings the file holds only addresses, paths
    and what keeps further ports closed. Raises `StudyError` for settings that no study may make.
    """

    per_run: ClassVar[frozenset[str]] = PER_RUN
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = FOLLOWS
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 1.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Fill an empty data directory: system tables and certificates; `serve` drops the `root` that it makes."""
        argv = ("mysqld", f"--defaults-file={plan.run_dir}/{SERVER_FILE}", "--initialize-insecure")
        options = render_section("mysqld", {**_own_options(plan), **_checked(plan)})
        return ServerCommand(argv=argv, env={}, files={SERVER_FILE: options})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """The server in the foreground, its log on standard error.

        Accounts are made by statements that it executes before its first connection, so that the run's password is
        in no argument, and in no snapshot: `shutdown` drops the account.
        """
        own = {
            **_own_options(plan),
            **tls_options(plan),
            "plugin_load_add": "auth_socket.so",
            "init_file": f"{plan.run_dir}/{INIT_FILE}",
        }
        files = {
            SERVER_FILE: render_section("mysqld", {**own, **_checked(plan)}),
            CLIENT_FILE: render_section("client", {"user": OS_USER, "socket": _socket(plan)}),
            INIT_FILE: _init_statements(plan),
            **certificate_files(plan),
        }
        argv = ("mysqld", f"--defaults-file={plan.run_dir}/{SERVER_FILE}")
        return ServerCommand(argv=argv, env={}, files=files)

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether a query is answered, and the run's account is there."""
        done = _CLIENT.execute(plan, inside, _account("COUNT(*)", plan))
        return done.code == 0 and done.text.strip() == "1"

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """All global variables, `server.product`, and as `account.plugin` how the run's account is let in.

        Raises `RunFailed` where MariaDB or an older MySQL answers: results bear the name of who gave them.
        """
        asked = _CLIENT.execute(plan, inside, "SHOW GLOBAL VARIABLES")
        variables = parse_variables(_CLIENT.must(asked, "read its variables").text)
        plugin = _CLIENT.must(_CLIENT.execute(plan, inside, _account("plugin", plan)), "read its accounts").text
        return {**variables, "server.product": who_answers(variables), "account.plugin": plugin.strip()}

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """A slow shutdown: purge is finished and nothing is left for the next start to do.

        Else every run that starts from a copy would work off the same backlog beside its measurement.
        """
        statements = (
            "SET sql_log_bin = 0",
            f"DROP USER IF EXISTS '{plain(plan.secrets.user)}'@'%'",
            "SET GLOBAL innodb_fast_shutdown = 0",
            "SHUTDOWN",
        )
        _CLIENT.must(
            _CLIENT.execute(plan, inside, "; ".join(statements), timeout_s=_SHUTDOWN_TIMEOUT_S), "shut it down"
        )


def who_answers(variables: Mapping[str, str]) -> str:
    """`MySQL` or `Percona Server`, by the server's own version and its comment."""
    version, comment = variables.get("version", ""), variables.get("version_comment", "")
    if "mariadb" in f"{version} {comment}".lower():
        raise RunFailed("MariaDB answers instead of MySQL", hint="`sut.database: mariadb`")
    major = version.partition(".")[0]
    if not major.isdecimal():
        raise RunFailed(f"the server reports no version that tare can read: {version!r}")
    if int(major) < OLDEST:
        raise RunFailed(f"MySQL {version} is too old", hint=f"{OLDEST}.0 or later")
    return "Percona Server" if "percona" in comment.lower() else "MySQL"


def _own_options(plan: ServerPlan) -> dict[str, Setting]:
    """`tmpdir` lies beside the data's copy: /tmp is another file system in a container than outside of one.

    The X protocol would open a port of its own, 33060 for every server of the machine.
    """
    return {
        "datadir": plan.data_dir,
        "bind_address": plan.listen,
        "port": plan.port,
        "socket": _socket(plan),
        "pid_file": f"{plan.run_dir}/mysqld.pid",
        "tmpdir": plan.run_dir,
        "secure_file_priv": "NULL",
        "skip_name_resolve": True,
        "mysqlx": False,
    }


def _checked(plan: ServerPlan) -> Mapping[str, Setting]:
    check_settings(plan.settings, own=OWN)
    return plan.settings


def _init_statements(plan: ServerPlan) -> str:
    """One statement a line, as `init_file` wants it; none of them in the binary log."""
    user, password = plain(plan.secrets.user), plain(plan.secrets.password)
    encrypted = "" if plan.secrets.certificate is None else " REQUIRE SSL"
    lines = (
        "SET sql_log_bin = 0;",
        f"CREATE USER IF NOT EXISTS '{OS_USER}'@'localhost' IDENTIFIED WITH auth_socket;",
        f"GRANT ALL PRIVILEGES ON *.* TO '{OS_USER}'@'localhost' WITH GRANT OPTION;",
        "DROP USER IF EXISTS 'root'@'localhost';",
        f"CREATE DATABASE IF NOT EXISTS {SCHEMA};",
        f"DROP USER IF EXISTS '{user}'@'%';",
        f"CREATE USER '{user}'@'%' IDENTIFIED BY '{password}'{encrypted};",
        f"GRANT ALL PRIVILEGES ON {SCHEMA}.* TO '{user}'@'%';",
    )
    return "\n".join((*lines, ""))


def _account(column: str, plan: ServerPlan) -> str:
    return f"SELECT {column} FROM mysql.user WHERE User = '{plain(plan.secrets.user)}'"  # noqa: S608 - a plain name


def _socket(plan: ServerPlan) -> str:
    return f"{plan.run_dir}/mysqld.sock"
