"""Every database by name."""

from __future__ import annotations

from collections.abc import Mapping

from tare.databases import Database
from tare.databases.cassandra.cassandra import Cassandra
from tare.databases.cassandra.release import V5_0
from tare.databases.fake import FakeDatabase
from tare.databases.ferretdb.ferretdb import FerretDB
from tare.databases.mariadb import MariaDB
from tare.databases.mongodb.mongodb import MongoDB
from tare.databases.postgresql.postgresql import PostgreSQL
from tare.databases.redis import Redis

DATABASES: Mapping[str, Database] = {
    "cassandra": Cassandra(),
    "cassandra-5": Cassandra(V5_0),
    "ferretdb": FerretDB(),
    "mariadb": MariaDB(),
    "mongodb": MongoDB(),
    "postgresql": PostgreSQL(),
    "redis": Redis(),
    "fake": FakeDatabase(),
}
