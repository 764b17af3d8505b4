//! Sampled stacks, the content of `profile.parquet`.

use serde::{Deserialize, Serialize};

/// Metadata of a profile, in its file's footer under `tare.profile`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Facts {
    pub profile_version: u32,
    pub probe_version: String,
    pub kernel: String,
    pub rate_hz: u64,
    /// CPU time that one sample represents.
    pub period_ns: u64,
    pub cpus: u64,
    /// By `CLOCK_MONOTONIC`.
    pub began_ns: u64,
    pub ended_ns: u64,
    /// Length of a slot, which starts at its `at_ns`.
    pub slot_ns: u64,
    pub samples: u64,
    /// Samples that were lost because a buffer was full.
    pub lost: u64,
    /// Samples above the limit of different stacks; they are counted as `[more stacks]`.
    pub crowded: u64,
    /// Why the kernel's functions have no names, if so.
    pub kernel_symbols_missing: Option<String>,
    /// CPU time of the sampling program.
    pub cpu_ns: u64,
}

/// Number of samples of one stack in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// When the slot began.
    pub at_ns: u64,
    /// Name of the target, or `kernel`, `softirq`, `idle`, `engine`, `tare-probe`, `other`.
    pub subject: String,
    /// The process's name.
    pub command: String,
    /// From the root to the leaf, divided by semicolons; functions of the kernel end with `_[k]`.
    pub stack: String,
    pub samples: u64,
}
