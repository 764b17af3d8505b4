//! One control group.

use crate::schema::table;

table! {
    /// Control groups, one row each. A group of columns whose window is absent was not read in this tick; a window without values means that the kernel had none to give. Files that serve each group stand in the table `target`.
    "cgroup" {
        USAGE_T0_NS "usage_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before CPU usage was read";
        USAGE_T1_NS "usage_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        USAGE_NS "usage_ns" Counter Tick "cpuacct.usage | cpu.stat usage_usec" "CPU time";
        SPLIT_T0_NS "split_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before user and system time were read";
        SPLIT_T1_NS "split_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        USER_NS "user_ns" Counter UserTick "cpuacct.stat user | cpu.stat user_usec" "CPU time in user mode; on v1 shown in units of 1 / USER_HZ";
        SYSTEM_NS "system_ns" Counter UserTick "cpuacct.stat system | cpu.stat system_usec" "CPU time in kernel mode; on v1 shown in units of 1 / USER_HZ";
        THROTTLE_T0_NS "throttle_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before throttling was read";
        THROTTLE_T1_NS "throttle_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        PERIODS "periods" Counter Exact "cpu.stat nr_periods" "enforcement periods that passed while it had a quota and wanted to run";
        THROTTLED_PERIODS "throttled_periods" Counter Exact "cpu.stat nr_throttled" "of these, periods in which the quota ran out";
        THROTTLED_NS "throttled_ns" Counter Exact "cpu.stat throttled_time | throttled_usec" "time held back, summed over CPUs";
        MEMORY_T0_NS "memory_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before memory usage was read";
        MEMORY_T1_NS "memory_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        MEMORY_BYTES "memory_bytes" Gauge Exact "memory.usage_in_bytes | memory.current" "memory charged, page cache included";
        MEMSTAT_T0_NS "memstat_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before memory.stat was read";
        MEMSTAT_T1_NS "memstat_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        ANON_BYTES "anon_bytes" Gauge Exact "memory.stat total_rss | anon" "memory of programs, no file behind it";
        CACHE_BYTES "cache_bytes" Gauge Exact "memory.stat total_cache | file" "page cache, shared memory included";
        SHMEM_BYTES "shmem_bytes" Gauge Exact "memory.stat total_shmem | shmem" "shared memory and tmpfs";
        MAPPED_BYTES "mapped_bytes" Gauge Exact "memory.stat total_mapped_file | file_mapped" "files mapped into programs";
        DIRTY_BYTES "dirty_bytes" Gauge Exact "memory.stat total_dirty | file_dirty" "written, not yet to the disk";
        WRITEBACK_BYTES "writeback_bytes" Gauge Exact "memory.stat total_writeback | file_writeback" "on the way to the disk";
        ACTIVE_ANON_BYTES "active_anon_bytes" Gauge Exact "memory.stat total_active_anon | active_anon" "programs' memory used of late";
        INACTIVE_ANON_BYTES "inactive_anon_bytes" Gauge Exact "memory.stat total_inactive_anon | inactive_anon" "programs' memory not used of late";
        ACTIVE_FILE_BYTES "active_file_bytes" Gauge Exact "memory.stat total_active_file | active_file" "page cache used of late";
        INACTIVE_FILE_BYTES "inactive_file_bytes" Gauge Exact "memory.stat total_inactive_file | inactive_file" "page cache that goes first: what docker stats takes off the usage";
        FAULTS "faults" Counter Exact "memory.stat total_pgfault | pgfault" "page faults";
        MAJOR_FAULTS "major_faults" Counter Exact "memory.stat total_pgmajfault | pgmajfault" "page faults that had to read";
        PIDS_T0_NS "pids_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before pids.current was read";
        PIDS_T1_NS "pids_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        PIDS "pids" Gauge Exact "pids.current" "processes and threads";
        IO_T0_NS "io_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before bytes and operations were read";
        IO_T1_NS "io_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after both";
        READ_BYTES "read_bytes" Counter Exact "blkio.throttle.io_service_bytes_recursive | io.stat rbytes" "bytes read from devices; absent on v1 until a throttle rule exists";
        WRITTEN_BYTES "written_bytes" Counter Exact "blkio.throttle.io_service_bytes_recursive | io.stat wbytes" "bytes written to devices; absent on v1 until a throttle rule exists";
        READS "reads" Counter Exact "blkio.throttle.io_serviced_recursive | io.stat rios" "reads";
        WRITES "writes" Counter Exact "blkio.throttle.io_serviced_recursive | io.stat wios" "writes";
        BFQ_T0_NS "bfq_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before BFQ's bytes and operations were read";
        BFQ_T1_NS "bfq_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after both";
        BFQ_READ_BYTES "bfq_read_bytes" Counter Exact "blkio.bfq.io_service_bytes_recursive" "bytes read from devices that BFQ schedules";
        BFQ_WRITTEN_BYTES "bfq_written_bytes" Counter Exact "blkio.bfq.io_service_bytes_recursive" "bytes written to them";
        BFQ_READS "bfq_reads" Counter Exact "blkio.bfq.io_serviced_recursive" "reads from them";
        BFQ_WRITES "bfq_writes" Counter Exact "blkio.bfq.io_serviced_recursive" "writes to them";
        BLOCK_AT_NS "block_at_ns" Instant Exact "CLOCK_MONOTONIC" "when the counters of the tracing program were read";
        BLOCK_READ_BYTES "block_read_bytes" Counter Exact "tp_btf/block_rq_issue" "bytes read by block requests issued since the target was opened";
        BLOCK_WRITTEN_BYTES "block_written_bytes" Counter Exact "tp_btf/block_rq_issue" "bytes written by block requests issued since the target was opened";
        BLOCK_READS "block_reads" Counter Exact "tp_btf/block_rq_issue" "reads issued since the target was opened";
        BLOCK_WRITES "block_writes" Counter Exact "tp_btf/block_rq_issue" "writes issued since the target was opened";
        PRESSURE_T0_NS "pressure_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before pressure was read; at most ten times a second";
        PRESSURE_T1_NS "pressure_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after all three files";
        CPU_SOME_US "cpu_some_us" Counter Exact "cpu.pressure some" "time in which some thread of the group waited for a CPU";
        CPU_FULL_US "cpu_full_us" Counter Exact "cpu.pressure full" "time in which all of them did";
        MEMORY_SOME_US "memory_some_us" Counter Exact "memory.pressure some" "time in which some thread waited for memory";
        MEMORY_FULL_US "memory_full_us" Counter Exact "memory.pressure full" "time in which all of them did";
        IO_SOME_US "io_some_us" Counter Exact "io.pressure some" "time in which some thread waited for I/O";
        IO_FULL_US "io_full_us" Counter Exact "io.pressure full" "time in which all of them did";
        LIMIT_T0_NS "limit_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before limits were read; at most once a second";
        LIMIT_T1_NS "limit_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        MEMORY_LIMIT_BYTES "memory_limit_bytes" Gauge Exact "memory.limit_in_bytes | memory.max" "memory it may use; absent where there is no limit";
        QUOTA_US "quota_us" Gauge Exact "cpu.cfs_quota_us | cpu.max" "CPU time it may use in a period; absent where there is no quota";
        PERIOD_US "period_us" Gauge Exact "cpu.cfs_period_us | cpu.max" "length of a period";
    }
}
