//! Events of the whole host.

use crate::schema::table;

table! {
    /// Events of the host since boot, and what is ready to run. One row.
    "system" {
        T0_NS "t0_ns" Instant Exact "CLOCK_MONOTONIC" "before the kernel was asked";
        T1_NS "t1_ns" Instant Exact "CLOCK_MONOTONIC" "after it had answered";
        INTERRUPTS "interrupts" Counter Exact "/proc/stat intr" "interrupts served";
        CONTEXT_SWITCHES "context_switches" Counter Exact "/proc/stat ctxt" "switches between threads";
        FORKS "forks" Counter Exact "/proc/stat processes" "processes and threads started";
        RUNNING "running" Gauge Exact "/proc/stat procs_running" "threads ready or running";
        BLOCKED "blocked" Gauge Exact "/proc/stat procs_blocked" "threads waiting for I/O";
        SOFTIRQS "softirqs" Counter Exact "/proc/stat softirq" "soft interrupts of all kinds";
        SOFTIRQ_HI "softirq_hi" Counter Exact "/proc/stat softirq" "HI";
        SOFTIRQ_TIMER "softirq_timer" Counter Exact "/proc/stat softirq" "TIMER";
        SOFTIRQ_NET_TX "softirq_net_tx" Counter Exact "/proc/stat softirq" "NET_TX";
        SOFTIRQ_NET_RX "softirq_net_rx" Counter Exact "/proc/stat softirq" "NET_RX: every packet that crosses a veth or a bridge";
        SOFTIRQ_BLOCK "softirq_block" Counter Exact "/proc/stat softirq" "BLOCK";
        SOFTIRQ_IRQ_POLL "softirq_irq_poll" Counter Exact "/proc/stat softirq" "IRQ_POLL";
        SOFTIRQ_TASKLET "softirq_tasklet" Counter Exact "/proc/stat softirq" "TASKLET";
        SOFTIRQ_SCHED "softirq_sched" Counter Exact "/proc/stat softirq" "SCHED";
        SOFTIRQ_HRTIMER "softirq_hrtimer" Counter Exact "/proc/stat softirq" "HRTIMER";
        SOFTIRQ_RCU "softirq_rcu" Counter Exact "/proc/stat softirq" "RCU";
    }
}
