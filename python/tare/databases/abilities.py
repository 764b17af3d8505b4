"""Registries of the abilities that only some databases have."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tare.databases import Exec, ServerPlan, mariadb, mysql
from tare.databases.cassandra import cassandra
from tare.databases.cassandra.chronicle import CassandraEvents
from tare.databases.cassandra.nodetool import CassandraCluster
from tare.databases.extensions import Cluster, EventSource
from tare.databases.fake import FakeCluster
from tare.databases.postgresql import postgresql
from tare.errors import StudyError

EVENT_SOURCES: Mapping[str, EventSource] = {"cassandra": CassandraEvents(), "cassandra-5": CassandraEvents()}
"""Database → reader of its account of background work; a database that is missing here has none."""


CLUSTERS: Mapping[str, Cluster] = {"cassandra": CassandraCluster(), "fake": FakeCluster()}
"""Database → how to query its nodes; a database that is missing here is always a single server."""


TLS: frozenset[str] = frozenset(
    {"cassandra", "cassandra-5", "ferretdb", "mariadb", "mysql", "postgresql", "redis", "valkey"}
)
"""Databases that tare can start with a certificate."""


IPV6: frozenset[str] = frozenset({"mariadb", "mysql", "postgresql", "redis", "valkey"})
"""Databases that can listen at ::1."""


LOG_FILES: frozenset[str] = frozenset({"mariadb", "mysql", "postgresql", "redis", "valkey"})
"""Databases that can write their log to a file."""


SOCKETS: Mapping[str, str] = {
    "mariadb": "mariadbd.sock",
    "mysql": "mysqld.sock",
    "postgresql": ".s.PGSQL.{port}",
    "redis": "redis.sock",
    "valkey": "redis.sock",
}
"""Database → name of the Unix socket that it can serve clients at."""


StatementRunner = Callable[[ServerPlan, Exec, str], None]

STATEMENT_RUNNERS: Mapping[str, StatementRunner] = {
    "cassandra": cassandra.execute_statement,
    "cassandra-5": cassandra.execute_statement,
    "mariadb": mariadb.execute_statement,
    "mysql": mysql.execute_statement,
    "postgresql": postgresql.execute_statement,
}
"""Database → function that executes one statement on it, in the schema of the runs if it has schemas."""


def execute_statement(database: str, plan: ServerPlan, inside: Exec, statement: str) -> None:
    """Execute a statement. Raises `RunFailed` with the server's words, `StudyError` if the database takes none."""
    if database not in STATEMENT_RUNNERS:
        raise StudyError(f"{database} does not support setup statements", hint=f"{', '.join(STATEMENT_RUNNERS)} do")
    STATEMENT_RUNNERS[database](plan, inside, statement)
