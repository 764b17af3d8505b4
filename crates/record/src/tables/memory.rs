//! Memory of the host.

use crate::schema::table;

table! {
    /// Memory of the host and its paging events. One row.
    "memory" {
        MEMINFO_T0_NS "meminfo_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before /proc/meminfo was read";
        MEMINFO_T1_NS "meminfo_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        TOTAL_BYTES "total_bytes" Gauge Exact "/proc/meminfo MemTotal" "memory that the kernel manages";
        FREE_BYTES "free_bytes" Gauge Exact "/proc/meminfo MemFree" "unused";
        AVAILABLE_BYTES "available_bytes" Gauge Exact "/proc/meminfo MemAvailable" "what could be had without swapping, as the kernel estimates it";
        BUFFERS_BYTES "buffers_bytes" Gauge Exact "/proc/meminfo Buffers" "page cache of block devices";
        CACHED_BYTES "cached_bytes" Gauge Exact "/proc/meminfo Cached" "page cache of files, shared memory included";
        SWAP_CACHED_BYTES "swap_cached_bytes" Gauge Exact "/proc/meminfo SwapCached" "swapped back in and still on swap";
        ACTIVE_BYTES "active_bytes" Gauge Exact "/proc/meminfo Active" "used of late";
        INACTIVE_BYTES "inactive_bytes" Gauge Exact "/proc/meminfo Inactive" "first to be reclaimed";
        SWAP_TOTAL_BYTES "swap_total_bytes" Gauge Exact "/proc/meminfo SwapTotal" "swap there is";
        SWAP_FREE_BYTES "swap_free_bytes" Gauge Exact "/proc/meminfo SwapFree" "swap unused";
        DIRTY_BYTES "dirty_bytes" Gauge Exact "/proc/meminfo Dirty" "written by programs, not yet to the disk";
        WRITEBACK_BYTES "writeback_bytes" Gauge Exact "/proc/meminfo Writeback" "on the way to the disk";
        ANON_BYTES "anon_bytes" Gauge Exact "/proc/meminfo AnonPages" "memory of programs, no file behind it";
        MAPPED_BYTES "mapped_bytes" Gauge Exact "/proc/meminfo Mapped" "files mapped into programs";
        SHMEM_BYTES "shmem_bytes" Gauge Exact "/proc/meminfo Shmem" "shared memory and tmpfs";
        SLAB_BYTES "slab_bytes" Gauge Exact "/proc/meminfo Slab" "the kernel's own objects";
        SLAB_RECLAIMABLE_BYTES "slab_reclaimable_bytes" Gauge Exact "/proc/meminfo SReclaimable" "of these, what could be given back";
        COMMITTED_BYTES "committed_bytes" Gauge Exact "/proc/meminfo Committed_AS" "promised to programs";
        VMSTAT_T0_NS "vmstat_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before /proc/vmstat was read";
        VMSTAT_T1_NS "vmstat_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        PGPGIN_KIB "pgpgin_kib" Counter Exact "/proc/vmstat pgpgin" "KiB read from block devices";
        PGPGOUT_KIB "pgpgout_kib" Counter Exact "/proc/vmstat pgpgout" "KiB written to block devices";
        SWAP_IN_PAGES "swap_in_pages" Counter Exact "/proc/vmstat pswpin" "pages swapped in";
        SWAP_OUT_PAGES "swap_out_pages" Counter Exact "/proc/vmstat pswpout" "pages swapped out";
        FAULTS "faults" Counter Exact "/proc/vmstat pgfault" "page faults of all kinds";
        MAJOR_FAULTS "major_faults" Counter Exact "/proc/vmstat pgmajfault" "page faults that had to read";
        SCAN_KSWAPD_PAGES "scan_kswapd_pages" Counter Exact "/proc/vmstat pgscan_kswapd" "pages looked at by the background reclaim";
        SCAN_DIRECT_PAGES "scan_direct_pages" Counter Exact "/proc/vmstat pgscan_direct" "pages looked at by programs that had to wait for memory";
        STEAL_KSWAPD_PAGES "steal_kswapd_pages" Counter Exact "/proc/vmstat pgsteal_kswapd" "pages reclaimed in the background";
        STEAL_DIRECT_PAGES "steal_direct_pages" Counter Exact "/proc/vmstat pgsteal_direct" "pages reclaimed by programs that waited";
        REFAULT_FILE_PAGES "refault_file_pages" Counter Exact "/proc/vmstat workingset_refault_file" "file pages read again soon after they had been dropped";
        OOM_KILLS "oom_kills" Counter Exact "/proc/vmstat oom_kill" "processes killed for lack of memory";
    }
}
