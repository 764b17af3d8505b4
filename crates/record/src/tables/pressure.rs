//! Pressure of the whole host.

use crate::schema::table;

table! {
    /// Pressure stall information of the host, read at most ten times a second. The totals are brought up to date by the reading. One row.
    "pressure" {
        CPU_T0_NS "cpu_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before /proc/pressure/cpu was read";
        CPU_T1_NS "cpu_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        CPU_SOME_US "cpu_some_us" Counter Exact "/proc/pressure/cpu some" "time in which some thread waited for a CPU";
        CPU_FULL_US "cpu_full_us" Counter Exact "/proc/pressure/cpu full" "always 0 for a whole host";
        MEMORY_T0_NS "memory_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before /proc/pressure/memory was read";
        MEMORY_T1_NS "memory_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        MEMORY_SOME_US "memory_some_us" Counter Exact "/proc/pressure/memory some" "time in which some thread waited for memory";
        MEMORY_FULL_US "memory_full_us" Counter Exact "/proc/pressure/memory full" "time in which all of them did";
        IO_T0_NS "io_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before /proc/pressure/io was read";
        IO_T1_NS "io_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        IO_SOME_US "io_some_us" Counter Exact "/proc/pressure/io some" "time in which some thread waited for I/O";
        IO_FULL_US "io_full_us" Counter Exact "/proc/pressure/io full" "time in which all of them did";
    }
}
