"""MySQL (8.0 and later) and Percona Server: one adapter for both; the server reports which one it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.databases.batch_client import CLIENT_FILE, OS_USER, SCHEMA, BatchClient, parse_variables, plain
from tare.databases.option_file import Setting, check_settings, log_options, render_section, tls_options
from tare.databases.tls import certificate_files
from tare.errors import RunFailed

_PERFORMANCE_SCHEMA = frozenset(
    {
        "performance_schema_digests_size", "performance_schema_events_stages_history_long_size",
        "performance_schema_events_statements_history_long_size",
        "performance_schema_events_transactions_history_long_size",
        "performance_schema_events_waits_history_long_size",
    }
)  # fmt: skip
"""Sized by the number of connections and tables ("Performance Schema Startup Configuration" in the manual)."""
DERIVED: Mapping[str, frozenset[str]] = {
    "sut.limits.cpus": frozenset(
        {
            "innodb_buffer_pool_instances", "innodb_log_writer_threads", "innodb_page_cleaners",
            "innodb_parallel_read_threads", "innodb_purge_threads", "innodb_read_io_threads",
        }
    ),
    "sut.limits.memory": frozenset({"temptable_max_ram"}),
    "sut.limits.nofile": frozenset(
        {"innodb_open_files", "max_connections", "open_files_limit", "table_definition_cache", "table_open_cache"}
    )
    | _PERFORMANCE_SCHEMA,
    "sut.settings.character_set_server": frozenset(
        {"character_set_database", "collation_database", "collation_server"}
    ),
    "sut.tls": frozenset({"ssl_ca"}),
    "sut.network": frozenset({"socket"}),
    "sut.log_target": frozenset({"log_error"}),
    "sut.settings.innodb_buffer_pool_size": frozenset(
        {"innodb_buffer_pool_chunk_size", "innodb_buffer_pool_instances", "innodb_page_cleaners"}
    ),
    "sut.settings.innodb_io_capacity": frozenset({"innodb_io_capacity_max"}),
    "sut.settings.max_connections": frozenset(
        {"back_log", "host_cache_size", "open_files_limit", "table_definition_cache", "thread_cache_size"}
    )
    | _PERFORMANCE_SCHEMA,
    "sut.settings.table_definition_cache": _PERFORMANCE_SCHEMA,
    "sut.settings.table_open_cache": _PERFORMANCE_SCHEMA
    | {"innodb_open_files", "open_files_limit", "table_definition_cache"},
}  # fmt: skip
"""Variables that the server derives from something else unless they are set (their pages in MySQL's manual)."""

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
"""Variables that may differ between two runs or arms that are otherwise equal. All others must agree."""

OWN: frozenset[str] = frozenset(
    {
        "admin_address", "daemonize", "early_plugin_load", "initialize", "initialize_insecure", "mysqlx",
        "plugin_dir", "plugin_load", "plugin_load_add", "secure_file_priv",
    }
)  # fmt: skip
"""Options that tare sets itself, in addition to those of every server of the family."""

SERVER_FILE, INIT_FILE = "server.cnf", "init.sql"
OLDEST = 8
"""First major release of MySQL with all that is used here."""
_SHUTDOWN_TIMEOUT_S = 3600.0
_CLIENT = BatchClient("mysql", "MySQL")
execute_statement = _CLIENT.execute_statement


class MySQL:
    """One server on one data directory, configured by a single option file in its run directory.

    No other option file is read. Nothing is tuned: apart from the study's settings, the file holds only addresses,
    paths and options that keep other ports closed. Raises `StudyError` for settings that a study must not change.
    """

    per_run: ClassVar[frozenset[str]] = PER_RUN
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = DERIVED
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 1.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Fill an empty data directory: system tables, certificates and a `root`, which `serve` drops."""
        argv = ("mysqld", f"--defaults-file={plan.run_dir}/{SERVER_FILE}", "--initialize-insecure")
        options = render_section("mysqld", {**_own_options(plan), **_checked(plan)})
        return ServerCommand(argv=argv, env={}, files={SERVER_FILE: options})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """Run the server in the foreground, with its log on standard error.

        Statements that the server executes before its first connection create the accounts, so that the run's
        password is in no argument. It is in no snapshot either, as `shutdown` drops the account.
        """
        own = {
            **_own_options(plan),
            **tls_options(plan),
            **log_options(plan),
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
        """Whether the server answers a query and has the run's account."""
        done = _CLIENT.execute(plan, inside, _account("COUNT(*)", plan))
        return done.code == 0 and done.text.strip() == "1"

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Read all global variables; add `server.product` and, as `account.plugin`, how the run's account logs in.

        Raises `RunFailed` if MariaDB or an older MySQL answers, as results bear the name of the server.
        """
        asked = _CLIENT.execute(plan, inside, "SHOW GLOBAL VARIABLES")
        variables = parse_variables(_CLIENT.must(asked, "read its variables").text)
        plugin = _CLIENT.must(_CLIENT.execute(plan, inside, _account("plugin", plan)), "read its accounts").text
        return {**variables, "server.product": server_product(variables), "account.plugin": plugin.strip()}

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Shut down slowly: finish the purge and leave nothing to do for the next start.

        Otherwise every run that starts from a copy would work off the same backlog during its measurement.
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


def server_product(variables: Mapping[str, str]) -> str:
    """Name of the server, `MySQL` or `Percona Server`, by its version and version comment."""
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
    """Options that tare sets. `tmpdir` is the run directory, as /tmp is another file system in a container.

    The X protocol is off, as it would open port 33060 for every server of the machine.
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
    """Statements that create the accounts, one on each line, as `init_file` requires; not in the binary log."""
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
    return plan.socket or f"{plan.run_dir}/mysqld.sock"
