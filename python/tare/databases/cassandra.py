"""Cassandra 3.11, a single node: Apache's binary distribution in /opt/cassandra, on Java 8."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import ClassVar

from tare.databases import Exec, ServerCommand, ServerPlan, cql_query
from tare.databases.cassandra_effective import FOLLOWS, PER_RUN, TABLES, parse_log, parse_tables
from tare.databases.cassandra_nodetool import CLASSPATH, HOME, YAML_FILE, jmx_port, must, nodetool
from tare.databases.cassandra_settings import checked, render_yaml
from tare.sites import Completed

LOGBACK_FILE, LOG_FILE = "logback.xml", "system.log"

_STORAGE_PORT = 7000
_QUERY_TIMEOUT_S, _LOG_TIMEOUT_S = 15.0, 10.0
_DRAIN_TIMEOUT_S, _STOP_TIMEOUT_S = 3600.0, 120.0
_ALIVE = "SELECT JSON release_version FROM system.local"
_DIRECTORIES: Mapping[str, str] = {
    "commitlog_directory": "commitlog",
    "saved_caches_directory": "saved_caches",
    "hints_directory": "hints",
    "cdc_raw_directory": "cdc_raw",
}
_PATTERN = "%-5level [%thread] %date{ISO8601, UTC} %F:%L - %msg%n"
_TELLING = ("org.apache.cassandra.db.compaction.CompactionTask", "io.netty.channel.MultithreadEventLoopGroup")
"""Who is heard at DEBUG: how long each compaction took, and how many threads netty takes, by the CPUs it sees."""


class Cassandra:
    """One node on one data directory, its own and only seed; told everything by files in its run directory.

    What is shipped in cassandra.yaml and jvm.options holds where a study says nothing. Each node has a loopback
    address of its own for what nodes say to each other, made from its port. Raises `StudyError` for settings that
    no study may make.
    """

    per_run: ClassVar[frozenset[str]] = PER_RUN
    follows: ClassVar[Mapping[str, frozenset[str]]] = FOLLOWS

    def initialise(self, plan: ServerPlan) -> ServerCommand:
        """Make the directories; the server fills them when it starts."""
        checked(plan.settings)
        places = (f"{plan.data_dir}/{name}" for name in ("data", *_DIRECTORIES.values()))
        return ServerCommand(argv=("mkdir", "-p", "--", *places), env={}, files={})

    def serve(self, plan: ServerPlan) -> ServerCommand:
        """The server in the foreground, its log on standard output and, to be read back, in its run directory.

        A node that is alone has nobody to settle gossip with: it does not wait 8 s for that.
        """
        told = checked(plan.settings)
        argv = (
            "java",
            f"-javaagent:{HOME}/lib/jamm-0.3.0.jar",
            *told.jvm,
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
        files = {YAML_FILE: render_yaml({**told.yaml, **_own(plan)}), LOGBACK_FILE: _logback(plan)}
        return ServerCommand(argv=argv, env={}, files=files)

    def ready(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether a query is answered."""
        return _query(plan, inside, _ALIVE).code == 0

    def effective(self, plan: ServerPlan, inside: Exec) -> Mapping[str, str]:
        """The configuration that the server logged when it started, and the definitions of its tables."""
        done = inside(("cat", f"{plan.run_dir}/{LOG_FILE}"), _LOG_TIMEOUT_S, b"")
        log = must(done, "read its log").text
        rows = must(_query(plan, inside, TABLES), "read its tables").text.splitlines()
        return {**parse_log(log), **parse_tables(rows)}

    def shutdown(self, plan: ServerPlan, inside: Exec) -> None:
        """Drain, which writes all memtables and empties the commit log, then end the daemon with exit code 0."""
        must(nodetool(plan, inside, ("drain",), _DRAIN_TIMEOUT_S), "drain it")
        nodetool(plan, inside, ("stopdaemon",), _STOP_TIMEOUT_S)


def node_address(port: int) -> str:
    """A loopback address that no other node of the machine has: no port but the native one has then to be free."""
    return f"127.{64 + (port >> 8) % 128}.{port & 255}.{1 + (port >> 15)}"


def _own(plan: ServerPlan) -> Mapping[str, object]:
    address = node_address(plan.port)
    seeds = {"class_name": "org.apache.cassandra.locator.SimpleSeedProvider", "parameters": [{"seeds": address}]}
    return {
        "cluster_name": "tare",
        "seed_provider": [seeds],
        "authenticator": "AllowAllAuthenticator",
        "authorizer": "AllowAllAuthorizer",
        "listen_address": address,
        "storage_port": _STORAGE_PORT,
        "start_native_transport": True,
        "start_rpc": False,
        "native_transport_port": plan.port,
        "rpc_address": plan.listen,
        "broadcast_rpc_address": "127.0.0.1",
        "data_file_directories": [f"{plan.data_dir}/data"],
        **{key: f"{plan.data_dir}/{name}" for key, name in _DIRECTORIES.items()},
    }


def _logback(plan: ServerPlan) -> str:
    encoder = f"<encoder><pattern>{_PATTERN}</pattern></encoder>"
    classes = "ch.qos.logback.core"
    heard = [f'<logger name="{name}" level="DEBUG"/>\n' for name in _TELLING]
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
    argv = ("python3", "-I", "-", "127.0.0.1", str(plan.port), query)
    return inside(argv, _QUERY_TIMEOUT_S, inspect.getsource(cql_query).encode())
