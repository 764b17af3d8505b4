"""MariaDB (10.4 and later), as in Debian's package mariadb-server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.databases.batch_client import CLIENT_FILE, OS_USER, SCHEMA, BatchClient, parse_variables, plain
from tare.databases.kinds import check_kind
from tare.databases.option_file import Setting, check_settings, log_options, render_section, tls_options
from tare.databases.tls import certificate_files

DERIVED: Mapping[str, frozenset[str]] = {
    "sut.limits.cpus": frozenset({"thread_pool_size"}),
    # from the disk's block size, which the server reads below /sys/dev/block; Podman hides that
    **dict.fromkeys(
        ("sut.engine", "sut.storage.kind", "sut.storage.file_system", "sut.storage.device"),
        frozenset({"innodb_log_file_buffering", "innodb_log_write_ahead_size"}),
    ),
    "sut.settings.character_set_server": frozenset(
        {
            "character_set_client", "character_set_connection", "character_set_database", "character_set_results",
            "collation_connection", "collation_database", "collation_server",
        }
    ),
    "sut.limits.nofile": frozenset(
        {
            "open_files_limit", "max_connections", "table_open_cache", "table_open_cache_instances",
            "innodb_open_files",
        }
    ),
    "sut.tls": frozenset({"have_ssl"}),
    "sut.network": frozenset({"socket"}),
    "sut.log_target": frozenset({"log_error"}),
    "sut.settings.innodb_buffer_pool_size": frozenset({"innodb_buffer_pool_chunk_size"}),
    "sut.settings.innodb_io_capacity": frozenset({"innodb_io_capacity_max"}),
    "sut.settings.max_connections": frozenset(
        {"back_log", "open_files_limit", "table_open_cache_instances", "thread_cache_size"}
    ),
    "sut.settings.table_open_cache": frozenset(
        {"innodb_open_files", "open_files_limit", "table_open_cache_instances"}
    ),
}  # fmt: skip
"""Variables that the server derives from something else unless they are set (their pages in MariaDB's manual)."""

PER_RUN: frozenset[str] = frozenset(
    {
        # where this server listens and what its machine is called
        "bind_address", "hostname", "port", "report_host", "report_port", "wsrep_node_address",
        "wsrep_node_incoming_address", "wsrep_node_name",
        # files whose default names have the machine's name in them
        "general_log_file", "log_slow_query_file", "slow_query_log_file",
        # in the run directory
        "ssl_cert", "ssl_key",
        # made from the machine's MAC address and the port
        "server_uid",
        # what has been written so far
        "gtid_binlog_pos", "gtid_binlog_state", "gtid_current_pos",
    }
)  # fmt: skip
"""Variables that may differ between two runs or arms that are otherwise equal. All others must agree."""

SERVER_FILE, INIT_FILE = "server.cnf", "init.sql"
_SHUTDOWN_TIMEOUT_S = 3600.0
_CLIENT = BatchClient("mariadb", "MariaDB")
execute_statement = _CLIENT.execute_statement


class MariaDB:
    """One server on one data directory, configured by a single option file in its run directory.

    No other option file is read. Nothing is tuned: apart from the study's settings, the file holds only addresses
    and paths. Raises `StudyError` for settings that a study must not change.
    """

    per_run: ClassVar[frozenset[str]] = PER_RUN
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = DERIVED
    safe_to_kill: ClassVar[bool] = False
    slow_start_s: ClassVar[float] = 0.0

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Fill an empty data directory: system tables, no test database, no account with a password.

        `--cross-bootstrap` leaves out what depends on the name of the machine, which differs in every run.
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
        """Run the server in the foreground, with its log on standard error by default.

        Statements that the server executes before its first connection create the run's account, so that its
        password is in no argument. It is in no snapshot either, as `shutdown` drops the account.
        """
        own = {
            **_own_options(plan),
            **tls_options(plan),
            **log_options(plan),
            "init_file": f"{plan.run_dir}/{INIT_FILE}",
        }
        files = {
            SERVER_FILE: render_section("mariadbd", {**own, **_checked(plan)}),
            CLIENT_FILE: render_section("client", {"user": OS_USER, "socket": _socket(plan)}),
            INIT_FILE: _init_statements(plan),
            **certificate_files(plan),
        }
        argv = ("mariadbd", f"--defaults-file={plan.run_dir}/{SERVER_FILE}")
        return ServerCommand(argv=argv, env={}, files=files)

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether the server answers a query and has the run's account."""
        query = f"SELECT COUNT(*) FROM mysql.global_priv WHERE User = '{plain(plan.secrets.user)}'"  # noqa: S608 - a plain name, checked by plain
        done = _CLIENT.execute(plan, inside, query)
        return done.code == 0 and done.text.strip() == "1"

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Read all global variables."""
        return parse_variables(
            _CLIENT.must(_CLIENT.execute(plan, inside, "SHOW GLOBAL VARIABLES"), "read its variables").text
        )

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Shut down slowly: finish the purge and leave nothing to do for the next start.

        Otherwise every run that starts from a copy would work off the same backlog during its measurement.
        """
        statements = (
            f"DROP USER IF EXISTS '{plain(plan.secrets.user)}'@'%'",
            "SET GLOBAL innodb_fast_shutdown = 0",
            "SHUTDOWN",
        )
        done = _CLIENT.execute(plan, inside, "; ".join(statements), timeout_s=_SHUTDOWN_TIMEOUT_S)
        _CLIENT.must(done, "shut it down")


def _own_options(plan: ServerPlan) -> dict[str, Setting]:
    """Options that tare sets. `tmpdir` is the run directory, as /tmp is another file system in a container."""
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
    for name, value in plan.settings.items():
        check_kind("mariadb", name, value)
    return plan.settings


def _init_statements(plan: ServerPlan) -> str:
    """Statements that create the run's account, one on each line, as `init_file` requires."""
    user, password = plain(plan.secrets.user), plain(plan.secrets.password)
    encrypted = "" if plan.secrets.certificate is None else " REQUIRE SSL"
    lines = (
        f"CREATE DATABASE IF NOT EXISTS {SCHEMA};",
        f"CREATE OR REPLACE USER '{user}'@'%' IDENTIFIED BY '{password}'{encrypted};",
        f"GRANT ALL PRIVILEGES ON {SCHEMA}.* TO '{user}'@'%';",
    )
    return "\n".join((*lines, ""))


def _socket(plan: ServerPlan) -> str:
    return plan.socket or f"{plan.run_dir}/mariadbd.sock"
