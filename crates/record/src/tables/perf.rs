//! Counters of `perf_event_open`.

use crate::schema::table;

table! {
    /// Performance counters of control groups since they were opened, where asked for (`--perf`) and the machine has them: sums over all CPUs, one row each.
    "perf" {
        T0_NS "t0_ns" Instant Exact "CLOCK_MONOTONIC" "before the counters were read";
        T1_NS "t1_ns" Instant Exact "CLOCK_MONOTONIC" "after";
        CYCLES "cycles" Counter Exact "PERF_COUNT_HW_CPU_CYCLES" "CPU cycles; absent without a PMU";
        INSTRUCTIONS "instructions" Counter Exact "PERF_COUNT_HW_INSTRUCTIONS" "instructions retired; absent without a PMU";
        CACHE_REFERENCES "cache_references" Counter Exact "PERF_COUNT_HW_CACHE_REFERENCES" "last-level cache references; absent without a PMU";
        CACHE_MISSES "cache_misses" Counter Exact "PERF_COUNT_HW_CACHE_MISSES" "last-level cache misses; absent without a PMU";
        CONTEXT_SWITCHES "context_switches" Counter Exact "PERF_COUNT_SW_CONTEXT_SWITCHES" "switches between threads";
        MIGRATIONS "migrations" Counter Exact "PERF_COUNT_SW_CPU_MIGRATIONS" "moves to another CPU";
        FAULTS "faults" Counter Exact "PERF_COUNT_SW_PAGE_FAULTS" "page faults";
        RUNNING_NS "running_ns" Counter Exact "time_running" "time in which the hardware counters counted; less than the whole where they were multiplexed";
        ENABLED_NS "enabled_ns" Counter Exact "time_enabled" "time in which they should have";
    }
}
