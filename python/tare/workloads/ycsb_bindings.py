"""How YCSB reaches each kind of database: classes, and the properties that name the server.

Names of properties are those of YCSB's own bindings, so that a user's own YCSB takes the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tare.errors import StudyError
from tare.workloads import Target

SCHEMA = "tare"
"""The schema, keyspace or database that the run's user may use."""

OWN_CLASSPATH = "/opt/ycsb/lib/*"
"""Where the recipe `ycsb` puts the jars."""


@dataclass(frozen=True)
class Binding:
    """One kind of database. `own`: tare's class; `upstream`, `folder`: YCSB's, and where its distribution has it.

    `server`: properties that name the server. `loading`: those of the load phase alone. `creates`: YCSB's own
    program that makes the table, which its binding does not. `known`: names that a study may set.
    """

    own: str
    upstream: str
    folder: str
    server: Callable[[Target], Mapping[str, str]]
    known: frozenset[str]
    loading: Mapping[str, str] = field(default_factory=dict)
    creates: tuple[str, ...] = ()


_JDBC: Mapping[str, tuple[str, str]] = {
    "mariadb": ("org.mariadb.jdbc.Driver", "jdbc:mariadb"),
    "postgresql": ("org.postgresql.Driver", "jdbc:postgresql"),
}
"""Database → driver and the beginning of its URL."""


def _jdbc(target: Target) -> Mapping[str, str]:
    if target.database not in _JDBC:
        raise StudyError(
            f"YCSB has no JDBC driver for {target.database}", hint=f"it has them for {', '.join(_JDBC)}"
        )
    driver, scheme = _JDBC[target.database]
    return {
        "db.driver": driver,
        "db.url": f"{scheme}://{target.endpoint.address}:{target.endpoint.port}/{SCHEMA}",
        "db.user": target.secrets.user,
        "db.passwd": target.secrets.password,
    }


def _mongodb(target: Target) -> Mapping[str, str]:
    return {"mongodb.url": f"mongodb://{target.endpoint.address}:{target.endpoint.port}/{SCHEMA}"}


def _cql(target: Target) -> Mapping[str, str]:
    return {
        "hosts": target.addresses,
        "port": str(target.endpoint.port),
        "cassandra.keyspace": SCHEMA,
    }


def _redis(target: Target) -> Mapping[str, str]:
    return {
        "redis.host": target.endpoint.address,
        "redis.port": str(target.endpoint.port),
        "redis.password": target.secrets.password,
    }


BINDINGS: Mapping[str, Binding] = {
    "jdbc": Binding(
        own="tare.ycsb.JdbcBinding",
        upstream="site.ycsb.db.JdbcDBClient",
        folder="jdbc-binding",
        server=_jdbc,
        known=frozenset({"jdbc.fetchsize", "jdbc.autocommit", "jdbc.batchupdateapi", "db.batchsize"}),
        loading={"jdbc.createtable": "true"},
        creates=("site.ycsb.db.JdbcDBCreateTable", "-n", "usertable"),
    ),
    "mongodb": Binding(
        own="tare.ycsb.MongoDbBinding",
        upstream="site.ycsb.db.MongoDbClient",
        folder="mongodb-binding",
        server=_mongodb,
        known=frozenset(
            {"mongodb.batchsize", "mongodb.readPreference", "mongodb.upsert", "mongodb.writeConcern"}
        ),
    ),
    "cql": Binding(
        own="tare.ycsb.CqlBinding",
        upstream="site.ycsb.db.CassandraCQLClient",
        folder="cassandra-binding",
        server=_cql,
        known=frozenset(
            {
                "cassandra.readconsistencylevel", "cassandra.writeconsistencylevel", "cassandra.coreconnections",
                "cassandra.maxconnections", "cassandra.connecttimeoutmillis", "cassandra.readtimeoutmillis",
                "cassandra.replicationfactor", "cassandra.tableoptions",
            }
        ),
        loading={"cassandra.createtable": "true"},
    ),
    "redis": Binding(
        own="tare.ycsb.RedisBinding",
        upstream="site.ycsb.db.RedisClient",
        folder="redis-binding",
        server=_redis,
        known=frozenset({"redis.timeout"}),
    ),
}  # fmt: skip

BINDING_OF: Mapping[str, str] = {
    "mariadb": "jdbc",
    "postgresql": "jdbc",
    "mongodb": "mongodb",
    "ferretdb": "mongodb",
    "cassandra": "cql",
    "cassandra-5": "cql",
    "redis": "redis",
}
"""Database → its binding."""
