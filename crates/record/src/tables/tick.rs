//! The probe's own table.

use crate::schema::table;

table! {
    /// One row per tick: when it was due, when it ran, what the probe itself used.
    "tick" {
        DUE_NS "due_ns" Instant Exact "clock_nanosleep(TIMER_ABSTIME)" "deadline of this tick";
        WOKE_NS "woke_ns" Instant Exact "CLOCK_MONOTONIC" "when the sampling thread ran; minus `due_ns` it is the lateness";
        DONE_NS "done_ns" Instant Exact "CLOCK_MONOTONIC" "when the last source of this tick had been read and handed on";
        REALTIME_NS "realtime_ns" Gauge Exact "CLOCK_REALTIME" "wall clock at `woke_ns`, to lay other tools' output beside the trace";
        BOOTTIME_NS "boottime_ns" Gauge Exact "CLOCK_BOOTTIME" "runs through suspend; its distance to `woke_ns` grows by the time suspended";
        MISSED_TICKS "missed_ticks" Gauge Exact "tare-probe" "ticks between the row before and this one whose deadline passed unserved";
        DROPPED_ROWS "dropped_rows" Counter Exact "tare-probe" "rows lost so far because the writer did not keep up; anything but 0 is an error of the trace";
        PROBE_CPU_NS "probe_cpu_ns" Counter Exact "CLOCK_PROCESS_CPUTIME_ID" "CPU time of the probe, all threads; read at most once a second";
        SAMPLER_CPU_NS "sampler_cpu_ns" Counter Exact "CLOCK_THREAD_CPUTIME_ID" "CPU time of the sampling thread; read at most once a second";
        RESIDENT_BYTES "resident_bytes" Gauge Exact "/proc/self/statm" "resident memory of the probe; read at most once a second";
    }
}
