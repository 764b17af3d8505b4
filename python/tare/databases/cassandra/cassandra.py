"""Cassandra 3.11 and 5.0, installed in /opt/cassandra: a single server or a node of a cluster."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan
from tare.databases.cassandra import cql_query
from tare.databases.cassandra.effective import (
    DERIVED,
    PER_RUN,
    SETTINGS,
    TABLES,
    parse_log,
    parse_settings,
    parse_tables,
)
from tare.databases.cassandra.nodetool import CLASSPATH, HOME, YAML_FILE, jmx_port, must, nodetool
from tare.databases.cassandra.release import V3_11, Release
from tare.databases.cassandra.settings import checked, render_yaml
from tare.databases.extensions import node_address
from tare.databases.tls import KEYSTORE_FILE, authority_of, keystore_file
from tare.sites import Completed

LOGBACK_FILE, LOG_FILE = "logback.xml", "system.log"

_STORAGE_PORT = 7000
_QUERY_TIMEOUT_S, _LOG_TIMEOUT_S = 15.0, 60.0
_DRAIN_TIMEOUT_S, _FORGET_TIMEOUT_S, _STOP_TIMEOUT_S = 3600.0, 30.0, 120.0
_ALIVE = "SELECT JSON release_version FROM system.local"
_DIRECTORIES: Mapping[str, str] = {
    "commitlog_directory": "commitlog",
    "saved_caches_directory": "saved_caches",
    "hints_directory": "hints",
    "cdc_raw_directory": "cdc_raw",
}
_PATTERN = "%-5level [%thread] %date{ISO8601, UTC} %F:%L - %msg%n"
_DEBUG_LOGGERS = ("org.apache.cassandra.db.compaction.CompactionTask", "io.netty.channel.MultithreadEventLoopGroup")
"""Loggers at level DEBUG: the duration of each compaction, and netty's threads, by the CPUs it sees."""


@dataclass(frozen=True)
class Cassandra:
    """One node on one data directory, configured by files in its run directory.

    Settings that a study leaves out are as shipped in cassandra.yaml and jvm.options. A single node is its own seed
    and has a loopback address of its own for traffic between nodes; the seed of a cluster is its first node. Raises
    `StudyError` for settings that a study must not change.
    """

    per_run: ClassVar[frozenset[str]] = PER_RUN
    derived_settings: ClassVar[Mapping[str, frozenset[str]]] = DERIVED
    safe_to_kill: ClassVar[bool] = True
    slow_start_s: ClassVar[float] = 7.0  # measured: 7.6 to 9.5 in all, on one idle CPU
    release: Release = V3_11

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Create the directories; the server fills them when it starts."""
        checked(plan.settings, self.release)
        places = (f"{plan.data_dir}/{name}" for name in ("data", *_DIRECTORIES.values()))
        return ServerCommand(argv=("mkdir", "-p", "--", *places), env={}, files={})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """Run the server in the foreground, with its log on standard output and, for `effective`, in a file.

        The server does not wait 8 s for gossip to settle: a single node has none, and tare asks every node of a
        cluster.
        """
        settings = checked(plan.settings, self.release)
        argv = (
            "java",
            f"-javaagent:{HOME}/lib/{self.release.agent}",
            *settings.jvm,
            f"-Dcassandra.jmx.local.port={jmx_port(plan)}",
            "-Dcom.sun.management.jmxremote.authenticate=false",
            "-Dcom.sun.jndi.rmiURLParsing=legacy",
            f"-Djava.library.path={HOME}/lib/sigar-bin",
            f"-Djava.io.tmpdir={plan.run_dir}",
            f"-Dlogback.configurationFile={plan.run_dir}/{LOGBACK_FILE}",
            f"-Dcassandra.config=file://{plan.run_dir}/{YAML_FILE}",
            f"-Dcassandra.storagedir={plan.data_dir}",
            "-Dcassandra-foreground=yes",
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            "-cp",
            CLASSPATH,
            "org.apache.cassandra.service.CassandraDaemon",
        )
        files = {
            YAML_FILE: render_yaml({**settings.yaml, **self.release.own, **_own(plan)}),
            LOGBACK_FILE: _logback(plan),
        }
        return ServerCommand(argv=argv, env={}, files=files, binary_files=keystore_file(plan))

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether the server answers a query."""
        return _query(plan, inside, _ALIVE).code == 0

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """Read what the server logged at its start, its table of settings if it has one, and its tables.

        All queries run at the same time, as each starts a program and the run waits for them.
        """
        with ThreadPoolExecutor(3) as pool:
            logged = pool.submit(inside, ("cat", f"{plan.run_dir}/{LOG_FILE}"), _LOG_TIMEOUT_S, b"")
            tables = pool.submit(_query, plan, inside, TABLES)
            settings = pool.submit(_query, plan, inside, SETTINGS) if self.release.has_settings_table else None
        startup = parse_log(must(logged.result(), "read its log").text)
        rows = must(tables.result(), "read its tables").text.splitlines()
        read_back = {**startup, **parse_tables(rows)}
        if settings is None:
            return read_back
        return {**read_back, **parse_settings(must(settings.result(), "read its settings").text.splitlines())}

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Drain, which writes all memtables and empties the commit log, then end the daemon with exit code 0.

        In between, remove the other nodes' addresses from its data: they change when nodes are started from a copy,
        and clients would learn of nodes that no longer exist.
        """
        must(nodetool(plan, inside, ("drain",), _DRAIN_TIMEOUT_S), "drain it")
        known = f"{plan.data_dir}/data/system/peer*"
        find = ("find", f"{plan.data_dir}/data/system", "-mindepth", "2", "-path", f"{known}/*", "-delete")
        must(inside(find, _FORGET_TIMEOUT_S, b""), "take the other nodes' addresses out of its data")
        nodetool(plan, inside, ("stopdaemon",), _STOP_TIMEOUT_S)


def execute_statement(plan: ServerPlan, inside: Exec, statement: str) -> None:
    """Execute a statement, in which names must include their keyspace."""
    must(_query(plan, inside, statement), "create what was requested")


def _own(plan: ServerPlan) -> Mapping[str, object]:
    return {
        "cluster_name": "tare",
        "authenticator": "AllowAllAuthenticator",
        "authorizer": "AllowAllAuthorizer",
        "storage_port": _STORAGE_PORT if plan.member is None else plan.member.peer_port or _STORAGE_PORT,
        "start_native_transport": True,
        "native_transport_port": plan.port,
        **_encrypted(plan),
        **_addresses(plan),
        "data_file_directories": [f"{plan.data_dir}/data"],
        **{key: f"{plan.data_dir}/{name}" for key, name in _DIRECTORIES.items()},
    }


def _encrypted(plan: ServerPlan) -> Mapping[str, object]:
    """Options for TLS: with a certificate, clients must use TLS; traffic between nodes is never encrypted."""
    if plan.secrets.certificate is None:
        return {}
    options = {
        "enabled": True,
        "optional": False,
        "keystore": f"{plan.run_dir}/{KEYSTORE_FILE}",
        "keystore_password": plan.secrets.password,
        "store_type": "PKCS12",
    }
    return {"client_encryption_options": options}


def _addresses(plan: ServerPlan) -> Mapping[str, object]:
    """Options for the addresses at which nodes and clients find each other.

    `auto_bootstrap` is off: nodes join an empty cluster and later have their tokens: there is nothing to stream.
    """
    if plan.member is None:
        address = node_address(plan.port)
        return {
            "seed_provider": _seeds(address),
            "listen_address": address,
            "rpc_address": plan.listen,
            "broadcast_rpc_address": plan.own_address,
        }
    return {
        "seed_provider": _seeds(plan.member.seed),
        "listen_address": plan.listen,
        "rpc_address": plan.listen,
        "auto_bootstrap": False,
    }


def _seeds(address: str) -> list[Mapping[str, object]]:
    provider = "org.apache.cassandra.locator.SimpleSeedProvider"
    return [{"class_name": provider, "parameters": [{"seeds": address}]}]


def _logback(plan: ServerPlan) -> str:
    encoder = f"<encoder><pattern>{_PATTERN}</pattern></encoder>"
    classes = "ch.qos.logback.core"
    heard = [f'<logger name="{name}" level="DEBUG"/>\n' for name in _DEBUG_LOGGERS]
    return (
        "<configuration>\n"
        f'<appender name="OUT" class="{classes}.ConsoleAppender">{encoder}</appender>\n'
        f'<appender name="FILE" class="{classes}.FileAppender"><file>{plan.run_dir}/{LOG_FILE}</file>'
        f"{encoder}</appender>\n"
        f"{''.join(heard)}"
        '<root level="INFO"><appender-ref ref="OUT"/><appender-ref ref="FILE"/></root>\n'
        "</configuration>\n"
    )


def _query(plan: ServerPlan, inside: Exec, query: str) -> Completed:
    at = (plan.own_address, str(plan.port), authority_of(plan))
    argv = ("python3", "-I", "-S", "-", *at, query)
    return inside(argv, _QUERY_TIMEOUT_S, inspect.getsource(cql_query).encode())
