//! System calls that rustix does not wrap: the only module with `unsafe`.
//!
//! Each function is a safe wrapper of one call; its `SAFETY` comment says why the call can only
//! access memory that it was given.
#![allow(unsafe_code)] // see above

pub mod bpf;
pub mod map;
pub mod perf;

use std::io;

/// Scheduling policy of the sampling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Fifo(u8),
    RoundRobin(u8),
    Other,
}

/// Sets the calling thread's real-time policy (`sched_setscheduler(2)`).
///
/// # Errors
/// `EPERM` without `CAP_SYS_NICE`, or in a v1 control group without a real-time budget.
pub fn set_policy(policy: Policy) -> io::Result<()> {
    let (number, priority) = match policy {
        Policy::Fifo(priority) => (libc::SCHED_FIFO, priority),
        Policy::RoundRobin(priority) => (libc::SCHED_RR, priority),
        Policy::Other => (libc::SCHED_OTHER, 0),
    };
    // The kernel's `struct sched_param` is one int; musl's has more fields, and its wrapper refuses
    // to make this call at all.
    let priority = libc::c_int::from(priority);
    // SAFETY: `priority` outlives the call, which only reads it; 0 names the calling thread.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            number | libc::SCHED_RESET_ON_FORK,
            &raw const priority,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// CPU time of all threads of a process; for running ones, until their last scheduler tick.
///
/// `None` if the process has ended or must not be read. The clock's number is the kernel's
/// `MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)` (include/linux/posix-timers_types.h).
#[must_use]
pub fn process_cpu_ns(pid: u32) -> Option<u64> {
    const CPUCLOCK_SCHED: libc::clockid_t = 2;
    let clock = (!(pid as libc::clockid_t) << 3) | CPUCLOCK_SCHED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call, which writes only to it; an unknown clock is an error.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Blocks `SIGINT` and `SIGTERM` in this thread and those that it starts, or unblocks them.
///
/// Only the sampling thread receives them, so that they interrupt its sleep.
pub fn take_stop_signals(take: bool) {
    let how = if take { libc::SIG_UNBLOCK } else { libc::SIG_BLOCK };
    // SAFETY: `set` is initialised by `sigemptyset` before it is read, and outlives the calls.
    unsafe {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_cpu_clock_runs() {
        let pid = std::process::id();
        let before = process_cpu_ns(pid).expect("own process");
        let mut sum = 0_u64;
        for number in 0..2_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
        assert!(process_cpu_ns(pid).expect("own process") > before);
    }

    #[test]
    fn a_process_that_is_not_there_has_no_clock() {
        assert_eq!(process_cpu_ns(4_194_304), None, "beyond the largest pid there can be");
    }
}
