//! One process.

use crate::schema::table;

table! {
    /// Processes, one row each; of a tree, every member. Its threads are summed by the kernel.
    "process" {
        PID "pid" Gauge Exact "discovery" "process id";
        CPU_T0_NS "cpu_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before its CPU clock was read";
        CPU_T1_NS "cpu_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        CPU_NS "cpu_ns" Counter Tick "clock_gettime of the process's CPU clock" "CPU time of all threads, each as of its last scheduler tick or switch";
        STAT_T0_NS "stat_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before /proc/PID/stat was read";
        STAT_T1_NS "stat_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        USER_TICKS "user_ticks" Counter UserTick "/proc/PID/stat utime" "CPU time in user mode";
        SYSTEM_TICKS "system_ticks" Counter UserTick "/proc/PID/stat stime" "CPU time in kernel mode";
        CHILD_USER_TICKS "child_user_ticks" Counter UserTick "/proc/PID/stat cutime" "user time of children that ended and were waited for";
        CHILD_SYSTEM_TICKS "child_system_ticks" Counter UserTick "/proc/PID/stat cstime" "system time of children that ended and were waited for";
        MINOR_FAULTS "minor_faults" Counter Exact "/proc/PID/stat minflt" "page faults that did not read";
        MAJOR_FAULTS "major_faults" Counter Exact "/proc/PID/stat majflt" "page faults that had to read";
        THREADS "threads" Gauge Exact "/proc/PID/stat num_threads" "threads";
        VIRTUAL_BYTES "virtual_bytes" Gauge Exact "/proc/PID/stat vsize" "address space";
        RESIDENT_BYTES "resident_bytes" Gauge Exact "/proc/PID/stat rss" "memory in use; a sum that the kernel keeps loosely";
        IO_DELAY_TICKS "io_delay_ticks" Counter UserTick "/proc/PID/stat delayacct_blkio_ticks" "time waited for block I/O, where delay accounting is on";
        IO_T0_NS "io_t0_ns" Instant Exact "CLOCK_MONOTONIC" "before /proc/PID/io was read";
        IO_T1_NS "io_t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        READ_CALL_BYTES "read_call_bytes" Counter Exact "/proc/PID/io rchar" "bytes asked for by read calls, from the cache or not";
        WRITTEN_CALL_BYTES "written_call_bytes" Counter Exact "/proc/PID/io wchar" "bytes given to write calls";
        READ_CALLS "read_calls" Counter Exact "/proc/PID/io syscr" "read calls";
        WRITE_CALLS "write_calls" Counter Exact "/proc/PID/io syscw" "write calls";
        READ_BYTES "read_bytes" Counter Exact "/proc/PID/io read_bytes" "bytes that it caused to be fetched from a device";
        WRITTEN_BYTES "written_bytes" Counter Exact "/proc/PID/io write_bytes" "bytes that it caused to be sent to a device, when it dirtied the page";
        CANCELLED_BYTES "cancelled_bytes" Counter Exact "/proc/PID/io cancelled_write_bytes" "of these, dropped before they were sent";
    }
}
