"""Settings in force of Cassandra, by name, parsed from its log, its table of settings and its schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from tare.errors import RunFailed

PER_RUN: frozenset[str] = frozenset(
    {
        "broadcast_rpc_address",
        "listen_address",
        "native_transport_port",
        "rpc_address",
        "seed_provider",
        "seed_provider.parameters",
        "storage_port",
    }
)
"""Settings that differ from run to run: where this server listens."""

_SHARES_OF_HEAP = frozenset(
    {
        "counter_cache_size", "file_cache_size", "index_summary_capacity", "key_cache_size", "memtable_heap_space",
        "memtable_offheap_space", "native_transport_max_concurrent_requests_in_bytes",
        "native_transport_max_concurrent_requests_in_bytes_per_ip", "native_transport_max_message_size",
        "native_transport_max_request_data_in_flight", "native_transport_max_request_data_in_flight_per_ip",
        "networking_cache_size", "prepared_statements_cache_size", "repair_session_space",
    }
)  # fmt: skip
"""Settings of 5.0 that are a share of the heap by default; the server reports their old names too."""
_SHARES_OF_DISK = frozenset({"commitlog_total_space", "commitlog_total_space_in_mb"})
_IN_FORCE: Mapping[str, str] = {
    "key_cache_size": "key_cache_capacity",
    "index_summary_capacity": "index_summary_capacity",
    "memtable_heap_space": "memtable_on_heap",
    "memtable_offheap_space": "memtable_off_heap",
}
"""Setting → name under which its value in force is read back; until 4.0, names of settings include a unit."""

DERIVED: Mapping[str, frozenset[str]] = {
    "sut.nodes": frozenset({"auto_bootstrap"}),
    "sut.tls": frozenset({"client_encryption_options.enabled", "client_encryption_options.store_type"}),
    "sut.settings.heap": frozenset(
        {
            "jvm.arguments", "jvm.heap", "in_force.index_summary_capacity", "in_force.key_cache_capacity",
            "in_force.memtable_off_heap", "in_force.memtable_on_heap",
            *(f"{name}{unit}" for name in _SHARES_OF_HEAP for unit in ("", "_in_mb", "_mb")),
        }
    ),
    **{f"sut.storage.{key}": _SHARES_OF_DISK for key in ("device", "file_system", "kind", "size")},
    "sut.limits.cpus": frozenset({"jvm.processors"}),
    "sut.limits.cpu_quota": frozenset({"jvm.processors"}),
    "sut.settings.new_size": frozenset({"jvm.arguments", "jvm.heap"}),
    "sut.settings.jvm": frozenset({"jvm.arguments", "jvm.heap", "jvm.processors"}),
    **{
        f"sut.settings.{name}{unit}": frozenset({f"in_force.{read_back}"})
        for name, read_back in _IN_FORCE.items()
        for unit in ("", "_in_mb")
    },
    "sut.settings.disk_access_mode": frozenset({"in_force.disk_access_mode"}),
    "workload.compaction": frozenset({"table.tare.counter1.compaction", "table.tare.standard1.compaction"}),
    "workload.properties.cassandra.tableoptions": frozenset(
        f"table.tare.usertable.{name}" for name in ("caching", "compaction", "compression", "gc_grace_seconds")
    ),
}  # fmt: skip

TABLES = (
    "SELECT JSON keyspace_name, table_name, compaction, compression, caching, gc_grace_seconds"
    " FROM system_schema.tables"
)
SETTINGS = "SELECT JSON name, value FROM system_views.settings"
"""Query of the settings in force, for 4.0 and later."""

_SYSTEM = "system"
_CONFIGURATION = re.compile(r"Node configuration:\[(.*)\]\s*$", re.MULTILINE)
_IDENTITY = re.compile(r"@[0-9a-f]+$|^<REDACTED>$")
"""Values to leave out: Java's identity of an object, which differs at every start, and redacted secrets."""
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "jvm.version": re.compile(r"JVM vendor/version: (.+)$", re.MULTILINE),
    "jvm.heap": re.compile(r"Heap size: (.+)$", re.MULTILINE),
    "in_force.disk_access_mode": re.compile(
        r"DiskAccessMode(?: 'auto' determined to be| is|:?) (\S+?),", re.MULTILINE
    ),
    "in_force.memtable_on_heap": re.compile(r"memtable on-heap threshold is enabled at (\S+)"),
    "in_force.memtable_off_heap": re.compile(r"memtable off-heap threshold is enabled at (\S+)"),
    "in_force.key_cache_capacity": re.compile(r"key cache with capacity of (\d+ Mi?Bs)"),
    "in_force.index_summary_capacity": re.compile(r"index summary manager with a memory pool size of (\d+ Mi?B)"),
    "cassandra.version": re.compile(r"Cassandra version: (\S+)"),
}
_ARGUMENTS = re.compile(r"JVM Arguments: \[(.*)\]\s*$", re.MULTILINE)
_PORT = "-Dcassandra.jmx.local.port="
_LOOPS = re.compile(r" - -Dio\.netty\.eventLoopThreads: (\d+)$", re.MULTILINE)
_LOOPS_SET = "-Dio.netty.eventLoopThreads="
_LOOPS_PER_CPU = 2
"""netty 4.0 starts twice as many event loops as `Runtime.availableProcessors`, unless set otherwise."""


def parse_log(text: str) -> Mapping[str, str]:
    """Parse name → value from the log of a start.

    Names are keys of cassandra.yaml as the server read them (`null` if the server chose the value) and, as
    `in_force.…` and `jvm.…`, the values it chose. Raises `RunFailed` if the log has no configuration.
    """
    match = _CONFIGURATION.search(text)
    arguments = _ARGUMENTS.search(text)
    if match is None or arguments is None:
        raise RunFailed("Cassandra's log does not contain its configuration", hint="sut.stdout among the raw files")
    pairs = (entry.partition("=") for entry in match.group(1).split("; "))
    settings = {name: value for name, equals, value in pairs if equals and not _IDENTITY.search(value)}
    for name, pattern in _PATTERNS.items():
        if hit := pattern.search(text):
            settings[name] = hit.group(1)
    loops = _LOOPS.search(text)
    if loops is not None and _LOOPS_SET not in arguments.group(1):
        settings["jvm.processors"] = str(int(loops.group(1)) // _LOOPS_PER_CPU)
    kept = [word for word in arguments.group(1).split(", ") if not word.startswith(_PORT)]
    return {**settings, "jvm.arguments": " ".join(kept)}


def parse_settings(rows: Sequence[str]) -> Mapping[str, str]:
    """Parse name → value in force from rows of `system_views.settings`; `null` where there is no value."""
    pairs = ((row["name"], _text(row["value"])) for row in map(json.loads, rows))
    return {name: value for name, value in pairs if not _IDENTITY.search(value)}


def parse_tables(rows: Sequence[str]) -> Mapping[str, str]:
    """Parse `table.KEYSPACE.TABLE.PROPERTY` → value of every table except system tables."""
    settings: dict[str, str] = {}
    for row in rows:
        columns = json.loads(row)
        keyspace, table = columns.pop("keyspace_name"), columns.pop("table_name")
        if keyspace.split("_")[0] == _SYSTEM:
            continue
        for name, value in columns.items():
            settings[f"table.{keyspace}.{table}.{name}"] = _text(value)
    return settings


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
