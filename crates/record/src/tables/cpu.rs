//! CPU time of the host.

use crate::schema::table;

table! {
    /// CPU time of the host since boot: one row for each CPU, and one, named `all`, for their sum.
    "cpu" {
        T0_NS "t0_ns" Instant Exact "CLOCK_MONOTONIC" "before the kernel was asked";
        T1_NS "t1_ns" Instant Exact "CLOCK_MONOTONIC" "after it had answered";
        USER_TICKS "user_ticks" Counter UserTick "/proc/stat user" "user mode, guests included";
        NICE_TICKS "nice_ticks" Counter UserTick "/proc/stat nice" "user mode at a low priority, guests included";
        SYSTEM_TICKS "system_ticks" Counter UserTick "/proc/stat system" "kernel mode";
        IDLE_TICKS "idle_ticks" Counter UserTick "/proc/stat idle" "nothing to run";
        IOWAIT_TICKS "iowait_ticks" Counter UserTick "/proc/stat iowait" "idle with a read or write under way; may fall (proc(5))";
        IRQ_TICKS "irq_ticks" Counter UserTick "/proc/stat irq" "interrupts";
        SOFTIRQ_TICKS "softirq_ticks" Counter UserTick "/proc/stat softirq" "soft interrupts";
        STEAL_TICKS "steal_ticks" Counter UserTick "/proc/stat steal" "ready to run, but the hypervisor ran somebody else";
        GUEST_TICKS "guest_ticks" Counter UserTick "/proc/stat guest" "running a guest; also within `user_ticks`";
        GUEST_NICE_TICKS "guest_nice_ticks" Counter UserTick "/proc/stat guest_nice" "running a niced guest; also within `nice_ticks`";
    }
}
