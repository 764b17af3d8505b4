//! `perf_event_open(2)`: counters of a control group, and samples of everything that runs on a CPU.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `PERF_COUNT_SW_CPU_CLOCK`, a timer of high resolution on each CPU: it needs no hardware counters.
const CPU_CLOCK: u64 = 0;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
/// `comm`, `task`: names and parents of processes; `comm_exec`: which names come by execve(2).
const FLAGS_OF_CLOCK: u64 = 1 << 9 | 1 << 13 | 1 << 24;
const FLAG_USE_CLOCKID: u64 = 1 << 25;
const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const FORMAT_TOTAL_TIME_ENABLED: u64 = 1;
const FORMAT_TOTAL_TIME_RUNNING: u64 = 1 << 1;
const FORMAT_GROUP: u64 = 1 << 3;
const FLAG_PID_CGROUP: libc::c_ulong = 1 << 2;
const FLAG_CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// First published version of the kernel's struct, which newer kernels recognize by its size.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// Version 5 of the struct (Linux 4.3); the clock of these times exists since version 3.
#[repr(C)]
#[derive(Default)]
struct SamplingAttributes {
    counting: Attributes,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// A counter, by its number in `linux/perf_event.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Hardware(u64),
    Software(u64),
}

/// Opens a counter of a control group on one CPU, in the group of `leader` if there is one.
///
/// A read of the leader returns, as 64-bit words: how many counters, time enabled, time running, and
/// the counters in the order in which they were opened.
///
/// # Errors
/// `ENOENT` if this machine has no such counter, `EACCES` because of `perf_event_paranoid`.
pub fn open_for_group(
    group: BorrowedFd<'_>,
    cpu: u64,
    event: Event,
    leader: Option<&OwnedFd>,
) -> io::Result<OwnedFd> {
    let (kind, config) = match event {
        Event::Hardware(config) => (TYPE_HARDWARE, config),
        Event::Software(config) => (TYPE_SOFTWARE, config),
    };
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        read_format: FORMAT_GROUP | FORMAT_TOTAL_TIME_ENABLED | FORMAT_TOTAL_TIME_RUNNING,
        ..Attributes::default()
    };
    // SAFETY: `attributes` has the size that it says and outlives the call, which only reads it.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            group.as_raw_fd(),
            cpu as libc::c_int,
            leader.map_or(-1, AsRawFd::as_raw_fd),
            FLAG_PID_CGROUP | FLAG_CLOSE_ON_EXEC,
        )
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// Samples the stacks of all processes on one CPU, at each `period_ns` of its clock.
///
/// A sample has process and thread, time of `CLOCK_MONOTONIC`, and call chain. Names, forks and exits
/// of processes are recorded, too.
///
/// # Errors
/// `EACCES` or `EPERM` because of `perf_event_paranoid`, a missing `CAP_PERFMON`, or a container's filter.
pub fn open_cpu_clock(cpu: u64, period_ns: u64) -> io::Result<OwnedFd> {
    let attributes = SamplingAttributes {
        counting: Attributes {
            kind: TYPE_SOFTWARE,
            size: size_of::<SamplingAttributes>() as u32,
            config: CPU_CLOCK,
            sample_period: period_ns,
            sample_type: SAMPLE_TID | SAMPLE_TIME | SAMPLE_CALLCHAIN,
            flags: FLAGS_OF_CLOCK | FLAG_USE_CLOCKID,
            ..Attributes::default()
        },
        clockid: libc::CLOCK_MONOTONIC,
        ..SamplingAttributes::default()
    };
    // SAFETY: `attributes` has the size that it says and outlives the call, which only reads it.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            -1,
            cpu as libc::c_int,
            -1,
            FLAG_CLOSE_ON_EXEC,
        )
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}
