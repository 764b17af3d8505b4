//! Block devices of the host.

use crate::schema::table;

table! {
    /// Block devices and partitions of the host, one row each. `ram`, `loop` and `zram` devices that were never used have none.
    "disk" {
        T0_NS "t0_ns" Instant Exact "CLOCK_MONOTONIC" "before the kernel was asked";
        T1_NS "t1_ns" Instant Exact "CLOCK_MONOTONIC" "after it had answered";
        READS "reads" Counter Exact "/proc/diskstats 1" "reads completed";
        READS_MERGED "reads_merged" Counter Exact "/proc/diskstats 2" "reads merged into others";
        READ_SECTORS "read_sectors" Counter Exact "/proc/diskstats 3" "sectors of 512 bytes read";
        READ_MS "read_ms" Counter Exact "/proc/diskstats 4" "time of all reads, added up";
        WRITES "writes" Counter Exact "/proc/diskstats 5" "writes completed";
        WRITES_MERGED "writes_merged" Counter Exact "/proc/diskstats 6" "writes merged into others";
        WRITTEN_SECTORS "written_sectors" Counter Exact "/proc/diskstats 7" "sectors of 512 bytes written";
        WRITE_MS "write_ms" Counter Exact "/proc/diskstats 8" "time of all writes, added up";
        IN_FLIGHT "in_flight" Gauge Exact "/proc/diskstats 9" "requests under way";
        BUSY_MS "busy_ms" Counter Tick "/proc/diskstats 10" "time with any request under way; seen at the scheduler's tick";
        WEIGHTED_MS "weighted_ms" Counter Tick "/proc/diskstats 11" "time of all requests, those under way included";
        DISCARDS "discards" Counter Exact "/proc/diskstats 12" "discards completed";
        DISCARDS_MERGED "discards_merged" Counter Exact "/proc/diskstats 13" "discards merged into others";
        DISCARDED_SECTORS "discarded_sectors" Counter Exact "/proc/diskstats 14" "sectors of 512 bytes discarded";
        DISCARD_MS "discard_ms" Counter Exact "/proc/diskstats 15" "time of all discards";
        FLUSHES "flushes" Counter Exact "/proc/diskstats 16" "flushes completed: what fsync comes down to";
        FLUSH_MS "flush_ms" Counter Exact "/proc/diskstats 17" "time of all flushes";
    }
}
