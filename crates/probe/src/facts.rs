//! Facts about the machine in a trace.

use std::fs;

/// `uname -r`.
#[must_use]
pub fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// CPUs that the kernel schedules on: the `cpuN` lines of `/proc/stat`.
#[must_use]
pub fn cpu_numbers() -> Vec<u64> {
    let stat = fs::read("/proc/stat").unwrap_or_default();
    crate::parse::stat::entries(&stat)
        .filter_map(|line| match line {
            crate::parse::stat::Line::Cpu { number, .. } => number,
            crate::parse::stat::Line::Other { .. } => None,
        })
        .collect()
}

/// The kernel's id of this boot; empty if it cannot be read.
#[must_use]
pub fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[must_use]
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}
