//! Clocks, in nanoseconds, and the sleep to an absolute deadline.

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};
use tare_record::schema::Ticks;

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `CLOCK_MONOTONIC`: the time base of every trace.
#[must_use]
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

#[must_use]
pub fn realtime_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// `CLOCK_BOOTTIME`: like monotonic, but continues while the machine is suspended.
#[must_use]
pub fn boottime_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Boottime))
}

#[must_use]
pub fn process_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

#[must_use]
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Sleeps until `deadline_ns` of `CLOCK_MONOTONIC`; a signal may end it early.
pub fn sleep_until(deadline_ns: u64) {
    let deadline = Timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as i64,
        tv_nsec: (deadline_ns % 1_000_000_000) as i64,
    };
    // An interrupted sleep is an early return, which the caller must expect anyway.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &deadline);
}

/// This kernel's scheduler tick and unit of `/proc/stat`.
#[must_use]
pub fn ticks() -> Ticks {
    Ticks {
        jiffy_ns: nanoseconds(clock_getres(ClockId::MonotonicCoarse)),
        user_hz: rustix::param::clock_ticks_per_second(),
    }
}
