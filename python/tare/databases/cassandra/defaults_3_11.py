"""Defaults that ship with Cassandra 3.11.2: values of its cassandra.yaml and options of its jvm.options.

Without these files, the server uses others: `disk_failure_policy: ignore`, and Thrift is on.
"""

from __future__ import annotations

from collections.abc import Mapping

from tare.databases.option_file import Setting

AUTO: frozenset[str] = frozenset(
    {
        "counter_cache_size_in_mb", "index_summary_capacity_in_mb", "key_cache_size_in_mb",
        "prepared_statements_cache_size_mb", "thrift_prepared_statements_cache_size_mb",
    }
)  # fmt: skip
"""Settings that ship without a value, so that the server derives one from its heap; a study writes `auto`."""

SHIPPED: Mapping[str, Setting] = {
    "num_tokens": 256,
    "hinted_handoff_enabled": True,
    "max_hint_window_in_ms": 10800000,
    "hinted_handoff_throttle_in_kb": 1024,
    "max_hints_delivery_threads": 2,
    "hints_flush_period_in_ms": 10000,
    "max_hints_file_size_in_mb": 128,
    "batchlog_replay_throttle_in_kb": 1024,
    "roles_validity_in_ms": 2000,
    "permissions_validity_in_ms": 2000,
    "credentials_validity_in_ms": 2000,
    "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
    "cdc_enabled": False,
    "disk_failure_policy": "stop",
    "commit_failure_policy": "stop",
    "key_cache_save_period": 14400,
    "row_cache_size_in_mb": 0,
    "row_cache_save_period": 0,
    "counter_cache_save_period": 7200,
    "commitlog_sync": "periodic",
    "commitlog_sync_period_in_ms": 10000,
    "commitlog_segment_size_in_mb": 32,
    "concurrent_reads": 32,
    "concurrent_writes": 32,
    "concurrent_counter_writes": 32,
    "concurrent_materialized_view_writes": 32,
    "memtable_allocation_type": "heap_buffers",
    "index_summary_resize_interval_in_minutes": 60,
    "trickle_fsync": False,
    "trickle_fsync_interval_in_kb": 10240,
    "incremental_backups": False,
    "snapshot_before_compaction": False,
    "auto_snapshot": True,
    "column_index_size_in_kb": 64,
    "column_index_cache_size_in_kb": 2,
    "compaction_throughput_mb_per_sec": 16,
    "sstable_preemptive_open_interval_in_mb": 50,
    "read_request_timeout_in_ms": 5000,
    "range_request_timeout_in_ms": 10000,
    "write_request_timeout_in_ms": 2000,
    "counter_write_request_timeout_in_ms": 5000,
    "cas_contention_timeout_in_ms": 1000,
    "truncate_request_timeout_in_ms": 60000,
    "request_timeout_in_ms": 10000,
    "slow_query_log_timeout_in_ms": 500,
    "cross_node_timeout": False,
    "endpoint_snitch": "SimpleSnitch",
    "dynamic_snitch_update_interval_in_ms": 100,
    "dynamic_snitch_reset_interval_in_ms": 600000,
    "dynamic_snitch_badness_threshold": 0.1,
    "internode_compression": "dc",
    "inter_dc_tcp_nodelay": False,
    "tracetype_query_ttl": 86400,
    "tracetype_repair_ttl": 604800,
    "enable_user_defined_functions": False,
    "enable_scripted_user_defined_functions": False,
    "enable_materialized_views": True,
    "tombstone_warn_threshold": 1000,
    "tombstone_failure_threshold": 100000,
    "batch_size_warn_threshold_in_kb": 5,
    "batch_size_fail_threshold_in_kb": 50,
    "unlogged_batch_across_partitions_warn_threshold": 10,
    "compaction_large_partition_warning_threshold_mb": 100,
    "gc_warn_threshold_in_ms": 1000,
    "back_pressure_enabled": False,
}
"""Settings with single values, which a study may change; all others are reserved for tare."""

JVM: tuple[str, ...] = (
    "-ea", "-XX:+UseThreadPriorities", "-XX:ThreadPriorityPolicy=42", "-Xss256k", "-XX:StringTableSize=1000003",
    "-XX:+AlwaysPreTouch", "-XX:-UseBiasedLocking", "-XX:+UseTLAB", "-XX:+ResizeTLAB", "-XX:+UseNUMA",
    "-XX:+PerfDisableSharedMem", "-Djava.net.preferIPv4Stack=true", "-XX:+UseParNewGC", "-XX:+UseConcMarkSweepGC",
    "-XX:+CMSParallelRemarkEnabled", "-XX:SurvivorRatio=8", "-XX:MaxTenuringThreshold=1",
    "-XX:CMSInitiatingOccupancyFraction=75", "-XX:+UseCMSInitiatingOccupancyOnly", "-XX:CMSWaitDuration=10000",
    "-XX:+CMSParallelInitialMarkEnabled", "-XX:+CMSEdenChunksRecordAlways", "-XX:+CMSClassUnloadingEnabled",
    "-XX:+UseCondCardMark",
)  # fmt: skip
"""JVM options as shipped, without the garbage collection log and heap dumps, for which no run should wait."""
