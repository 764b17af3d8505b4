"""Registry of all databases."""

from __future__ import annotations

from collections.abc import Mapping

from tare.databases import Database
from tare.databases.cassandra.cassandra import Cassandra
from tare.databases.cassandra.release import V5_0
from tare.databases.echo import Echo
from tare.databases.fake import FakeDatabase
from tare.databases.ferretdb.ferretdb import FerretDB
from tare.databases.mariadb import MariaDB
from tare.databases.mongodb.mongodb import MongoDB
from tare.databases.mysql import MySQL
from tare.databases.postgresql.postgresql import PostgreSQL
from tare.databases.redis import VALKEY, Redis
from tare.plugins import Implementations, breach_of

BUILT_IN: Mapping[str, Database] = {
    "cassandra": Cassandra(),
    "cassandra-5": Cassandra(V5_0),
    "echo": Echo(),
    "ferretdb": FerretDB(),
    "mariadb": MariaDB(),
    "mongodb": MongoDB(),
    "mysql": MySQL(),
    "postgresql": PostgreSQL(),
    "redis": Redis(),
    "valkey": Redis(VALKEY),
    "fake": FakeDatabase(),
}
"""Name → implementation of the databases that come with tare."""

DATABASES: Implementations[Database] = Implementations("database", BUILT_IN, breach_of(Database))
"""Built-in databases and those of plug-ins: docs/guides/plugins.md."""
