"""Which database has which extension."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tare.databases import Exec, ServerPlan, mariadb, mysql
from tare.databases.cassandra import cassandra
from tare.databases.cassandra.chronicle import CassandraChronicler
from tare.databases.cassandra.nodetool import CassandraCluster
from tare.databases.extensions import Chronicler, Cluster
from tare.databases.fake import FakeCluster
from tare.databases.postgresql import postgresql
from tare.errors import StudyError

CHRONICLERS: Mapping[str, Chronicler] = {"cassandra": CassandraChronicler(), "cassandra-5": CassandraChronicler()}
"""Database → who asks it; one that is not here has nothing to tell."""


CLUSTERS: Mapping[str, Cluster] = {"cassandra": CassandraCluster(), "fake": FakeCluster()}
"""Database → how its nodes are asked; one that is not here is one server."""


TLS: frozenset[str] = frozenset(
    {"cassandra", "cassandra-5", "ferretdb", "mariadb", "mysql", "postgresql", "redis", "valkey"}
)
"""Databases that tare starts with a certificate, where it is asked to; of the others it knows no way."""


Tell = Callable[[ServerPlan, Exec, str], None]

TELL: Mapping[str, Tell] = {
    "cassandra": cassandra.tell,
    "cassandra-5": cassandra.tell,
    "mariadb": mariadb.tell,
    "mysql": mysql.tell,
    "postgresql": postgresql.tell,
}
"""Database → who has it carry out one statement, in the schema of the runs where it has one."""


def tell(database: str, plan: ServerPlan, inside: Exec, statement: str) -> None:
    """Raises `RunFailed` with the server's words, `StudyError` of a database that takes no statements here."""
    if database not in TELL:
        raise StudyError(f"{database} takes no setup statements", hint=f"{', '.join(TELL)} are")
    TELL[database](plan, inside, statement)
