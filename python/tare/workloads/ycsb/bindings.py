"""Bindings of YCSB to each kind of database: classes, and the properties that name the server.

Properties have the names of YCSB's own bindings, so that a user's own YCSB accepts the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tare.errors import StudyError
from tare.workloads import Target
from tare.workloads.ycsb.values import Value, flag, one_of, table_options, whole

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SCHEMA = "tare"
"""Schema, keyspace or database that the run's user may use."""

OWN_CLASSPATH = "/opt/ycsb/lib/*"
"""Jars of the recipe `ycsb`."""


@dataclass(frozen=True)
class Binding:
    """Binding to one kind of database.

    `own`: tare's class. `upstream`, `folder`: YCSB's class and its folder in the distribution. `server`: properties
    that name the server. `loading`: properties of the load phase only. `table`: statements that create the table,
    which YCSB's own binding does not do; `None`: there is no table. `known`: properties that a study may set, with
    the check of their values; `upstream_only`: those that tare's class does not read. `names`: properties that
    only tare sets, about the server and what tare creates there. `requests`: kind of operation → round trips of
    tare's class; kinds with a varying number are absent.
    """

    own: str
    upstream: str
    folder: str
    server: Callable[[Target], Mapping[str, str]]
    known: Mapping[str, Value]
    names: frozenset[str]
    requests: Mapping[str, int]
    upstream_only: frozenset[str] = frozenset()
    loading: Mapping[str, str] = field(default_factory=dict)
    table: Callable[[Mapping[str, str]], tuple[str, ...]] | None = None


@dataclass(frozen=True)
class _Jdbc:
    """A JDBC driver. `scheme`: beginning of its URL; `options`: end of its URL."""

    driver: str
    scheme: str
    options: str = ""


_JDBC: Mapping[str, _Jdbc] = {
    "mariadb": _Jdbc("org.mariadb.jdbc.Driver", "jdbc:mariadb"),
    # without TLS, caching_sha2_password needs the server's public key
    "mysql": _Jdbc("org.mariadb.jdbc.Driver", "jdbc:mariadb", "?allowPublicKeyRetrieval=true"),
    "postgresql": _Jdbc("org.postgresql.Driver", "jdbc:postgresql"),
}
"""Database → driver. MySQL uses MariaDB's driver, so that the same client can compare both databases."""


def _jdbc(target: Target) -> Mapping[str, str]:
    if target.database not in _JDBC:
        raise StudyError(
            f"YCSB has no JDBC driver for {target.database}", hint=f"it has them for {', '.join(_JDBC)}"
        )
    jdbc = _JDBC[target.database]
    return {
        "db.driver": jdbc.driver,
        "db.url": f"{jdbc.scheme}://{target.endpoint}/{SCHEMA}{jdbc.options}",
        "db.user": target.secrets.user,
        "db.passwd": target.secrets.password,
    }


def _mongodb(target: Target) -> Mapping[str, str]:
    return {"mongodb.url": f"mongodb://{target.endpoint}/{SCHEMA}"}


def _cql(target: Target) -> Mapping[str, str]:
    return {
        "hosts": target.addresses,
        "port": str(target.endpoint.port),
        "cassandra.keyspace": SCHEMA,
    }


def _fields(properties: Mapping[str, str], kind: str) -> str:
    names = (
        _name(f"{properties.get('fieldnameprefix', 'field')}{n}")
        for n in range(int(properties.get("fieldcount", "10")))
    )
    return ", ".join(f"{name} {kind}" for name in names)


def _jdbc_table(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Statements that create the table; YCSB's own program gives the key no length, which MariaDB rejects."""
    name = _name(properties.get("table", "usertable"))
    return (f"CREATE TABLE {name} (YCSB_KEY VARCHAR(255) PRIMARY KEY, {_fields(properties, 'TEXT')})",)


def _cql_table(properties: Mapping[str, str]) -> tuple[str, ...]:
    copies = int(properties.get("cassandra.replicationfactor", "1"))
    replication = f"{{'class': 'SimpleStrategy', 'replication_factor': {copies}}}"
    name, options = _name(properties.get("table", "usertable")), properties.get("cassandra.tableoptions", "")
    table = f"CREATE TABLE {SCHEMA}.{name} (y_id varchar PRIMARY KEY, {_fields(properties, 'varchar')})"
    return (
        f"CREATE KEYSPACE {SCHEMA} WITH replication = {replication}",
        f"{table} WITH {options}" if options else table,
    )


def _name(word: str) -> str:
    if not _PLAIN.fullmatch(word):
        raise StudyError(f"{word!r} is not a plain name of a table or field")
    return word


def _redis(target: Target) -> Mapping[str, str]:
    return {
        "redis.host": target.endpoint.address,
        "redis.port": str(target.endpoint.port),
        "redis.password": target.secrets.password,
    }


_ONE_EACH: Mapping[str, int] = dict.fromkeys(("read", "update", "insert", "delete"), 1)
_LEVEL = one_of(
    "ANY", "ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_ONE", "LOCAL_QUORUM", "EACH_QUORUM", "SERIAL",
    "LOCAL_SERIAL",
)  # fmt: skip

BindingName = Literal["jdbc", "mongodb", "cql", "redis"]
"""Names that a study may set as `binding`: the keys of `BINDINGS`."""

BINDINGS: Mapping[BindingName, Binding] = {
    "jdbc": Binding(
        own="tare.ycsb.JdbcBinding",
        upstream="site.ycsb.db.JdbcDBClient",
        folder="jdbc-binding",
        server=_jdbc,
        known={
            "jdbc.fetchsize": whole(-(2**31)), "jdbc.autocommit": flag, "jdbc.batchupdateapi": flag,
            "db.batchsize": whole(-1),
        },
        names=frozenset({"db.driver", "db.url", "db.user", "db.passwd", "jdbc.createtable"}),
        requests=_ONE_EACH,
        upstream_only=frozenset({"jdbc.batchupdateapi", "db.batchsize"}),
        loading={"jdbc.createtable": "true"},
        table=_jdbc_table,
    ),
    "mongodb": Binding(
        own="tare.ycsb.MongoDbBinding",
        upstream="site.ycsb.db.MongoDbClient",
        folder="mongodb-binding",
        server=_mongodb,
        known={
            "batchsize": whole(1), "mongodb.maxconnections": whole(1), "mongodb.upsert": flag,
            "mongodb.readPreference": one_of(
                "primary", "primary_preferred", "secondary", "secondary_preferred", "nearest"
            ),
            "mongodb.writeConcern": one_of(
                "errors_ignored", "unacknowledged", "acknowledged", "journaled", "replica_acknowledged", "majority"
            ),
        },
        names=frozenset({"mongodb.url"}),
        requests=_ONE_EACH,
        upstream_only=frozenset({"batchsize"}),
    ),
    "cql": Binding(
        own="tare.ycsb.CqlBinding",
        upstream="site.ycsb.db.CassandraCQLClient",
        folder="cassandra-binding",
        server=_cql,
        known={
            "cassandra.readconsistencylevel": _LEVEL, "cassandra.writeconsistencylevel": _LEVEL,
            "cassandra.coreconnections": whole(1), "cassandra.maxconnections": whole(1),
            "cassandra.connecttimeoutmillis": whole(1), "cassandra.readtimeoutmillis": whole(),
            "cassandra.replicationfactor": whole(1), "cassandra.tableoptions": table_options,
            "cassandra.tracing": flag,
        },
        names=frozenset(
            {
                "hosts", "port", "cassandra.keyspace", "cassandra.username", "cassandra.password",
                "cassandra.createtable",
            }
        ),
        requests=_ONE_EACH,
        upstream_only=frozenset({"cassandra.tracing"}),
        loading={"cassandra.createtable": "true"},
        table=_cql_table,
    ),
    "redis": Binding(
        own="tare.ycsb.RedisBinding",
        upstream="site.ycsb.db.RedisClient",
        folder="redis-binding",
        server=_redis,
        known={"redis.timeout": whole()},
        names=frozenset({"redis.host", "redis.port", "redis.password"}),
        requests={"read": 1, "update": 1, "insert": 2, "delete": 2},
    ),
}  # fmt: skip

BINDING_OF: Mapping[str, BindingName] = {
    "mariadb": "jdbc",
    "mysql": "jdbc",
    "postgresql": "jdbc",
    "mongodb": "mongodb",
    "ferretdb": "mongodb",
    "cassandra": "cql",
    "cassandra-5": "cql",
    "redis": "redis",
    "valkey": "redis",
}
"""Database → name of its binding."""
