"""Defaults that ship with Cassandra 5.0: values of its cassandra.yaml and options of its JVM on Java 17.

Since 4.1, the units of sizes and times are in the values instead of the names.
"""

from __future__ import annotations

from collections.abc import Mapping

from tare.databases.option_file import Setting

AUTO: frozenset[str] = frozenset(
    {"counter_cache_size", "index_summary_capacity", "key_cache_size", "prepared_statements_cache_size"}
)
"""Settings that ship without a value, so that the server derives one from its heap; a study writes `auto`."""

SHIPPED: Mapping[str, Setting] = {
    "num_tokens": 16,
    "hinted_handoff_enabled": True,
    "max_hint_window": "3h",
    "hinted_handoff_throttle": "1024KiB",
    "max_hints_delivery_threads": 2,
    "hints_flush_period": "10000ms",
    "max_hints_file_size": "128MiB",
    "auto_hints_cleanup_enabled": False,
    "batchlog_replay_throttle": "1024KiB",
    "roles_validity": "2000ms",
    "permissions_validity": "2000ms",
    "credentials_validity": "2000ms",
    "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
    "cdc_enabled": False,
    "disk_failure_policy": "stop",
    "commit_failure_policy": "stop",
    "key_cache_save_period": "4h",
    "row_cache_size": "0MiB",
    "row_cache_save_period": "0s",
    "counter_cache_save_period": "7200s",
    "commitlog_sync": "periodic",
    "commitlog_sync_period": "10000ms",
    "commitlog_segment_size": "32MiB",
    "commitlog_disk_access_mode": "legacy",
    "concurrent_reads": 32,
    "concurrent_writes": 32,
    "concurrent_counter_writes": 32,
    "concurrent_materialized_view_writes": 32,
    "memtable_allocation_type": "heap_buffers",
    "index_summary_resize_interval": "60m",
    "trickle_fsync": False,
    "trickle_fsync_interval": "10240KiB",
    "incremental_backups": False,
    "snapshot_before_compaction": False,
    "auto_snapshot": True,
    "snapshot_links_per_second": 0,
    "column_index_cache_size": "2KiB",
    "concurrent_materialized_view_builders": 1,
    "compaction_throughput": "64MiB/s",
    "sstable_preemptive_open_interval": "50MiB",
    "uuid_sstable_identifiers_enabled": False,
    "read_request_timeout": "5000ms",
    "range_request_timeout": "10000ms",
    "write_request_timeout": "2000ms",
    "counter_write_request_timeout": "5000ms",
    "cas_contention_timeout": "1000ms",
    "truncate_request_timeout": "60000ms",
    "request_timeout": "10000ms",
    "slow_query_log_timeout": "500ms",
    "endpoint_snitch": "SimpleSnitch",
    "dynamic_snitch_update_interval": "100ms",
    "dynamic_snitch_reset_interval": "600000ms",
    "dynamic_snitch_badness_threshold": 1.0,
    "internode_compression": "dc",
    "inter_dc_tcp_nodelay": False,
    "trace_type_query_ttl": "1d",
    "trace_type_repair_ttl": "7d",
    "user_defined_functions_enabled": False,
    "tombstone_warn_threshold": 1000,
    "tombstone_failure_threshold": 100000,
    "batch_size_warn_threshold": "5KiB",
    "batch_size_fail_threshold": "50KiB",
    "unlogged_batch_across_partitions_warn_threshold": 10,
    "diagnostic_events_enabled": False,
    "repaired_data_tracking_for_range_reads_enabled": False,
    "repaired_data_tracking_for_partition_reads_enabled": False,
    "report_unconfirmed_repaired_data_mismatches": False,
    "materialized_views_enabled": False,
    "sasi_indexes_enabled": False,
    "transient_replication_enabled": False,
    "drop_compact_storage_enabled": False,
    "storage_compatibility_mode": "CASSANDRA_4",
}
"""Settings with single values, which a study may change; all others are reserved for tare."""

_EXPORTED = (
    "java.base/jdk.internal.misc", "java.base/java.lang.ref", "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry", "java.rmi/sun.rmi.server", "java.rmi/sun.rmi.transport.tcp", "java.sql/java.sql",
    "jdk.attach/sun.tools.attach", "jdk.compiler/com.sun.tools.javac.file", "jdk.unsupported/sun.misc",
)  # fmt: skip
_OPENED = (
    "java.base/java.io", "java.base/java.lang", "java.base/java.lang.module", "java.base/java.lang.reflect",
    "java.base/java.util", "java.base/jdk.internal.loader", "java.base/jdk.internal.math",
    "java.base/jdk.internal.module", "java.base/jdk.internal.ref", "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar", "java.base/sun.nio.ch", "jdk.compiler/com.sun.tools.javac",
    "jdk.management/com.sun.management.internal",
)  # fmt: skip
"""Java's internal packages that Cassandra uses."""

JVM: tuple[str, ...] = (
    "-ea", "-da:net.openhft...", "-XX:+UseThreadPriorities", "-Xss256k", "-XX:+AlwaysPreTouch", "-XX:+UseTLAB",
    "-XX:+ResizeTLAB", "-XX:+UseNUMA", "-XX:+PerfDisableSharedMem", "-Djava.net.preferIPv4Stack=true",
    "-XX:+UseG1GC", "-XX:+ParallelRefProcEnabled", "-XX:MaxTenuringThreshold=1", "-XX:G1HeapRegionSize=16m",
    "-XX:G1RSetUpdatingPauseTimePercent=5", "-XX:MaxGCPauseMillis=300", "-XX:InitiatingHeapOccupancyPercent=70",
    "-Djdk.attach.allowAttachSelf=true", "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.useCacheForAllThreads=true", "-Dio.netty.allocator.maxOrder=11",
    *(f"--add-exports={package}=ALL-UNNAMED" for package in _EXPORTED),
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
)  # fmt: skip
"""JVM options as shipped, without heap dumps, for which no run should wait."""
