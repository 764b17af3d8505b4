//! Stacks that were sampled, as `profile.parquet` has them.

use serde::{Deserialize, Serialize};

/// What a profile says of itself, in its file's footer under `tare.profile`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Facts {
    pub profile_version: u32,
    pub probe_version: String,
    pub kernel: String,
    pub rate_hz: u64,
    /// CPU time that one sample stands for.
    pub period_ns: u64,
    pub cpus: u64,
    /// Of `CLOCK_MONOTONIC`.
    pub began_ns: u64,
    pub ended_ns: u64,
    /// How long a slot lasts from its `at_ns` on.
    pub slot_ns: u64,
    pub samples: u64,
    /// Samples that found no room.
    pub lost: u64,
    /// Samples whose stack was one too many; they are counted as `[more stacks]`.
    pub crowded: u64,
    /// Why the kernel's functions have no names.
    pub kernel_symbols_missing: Option<String>,
    /// CPU time of the sampling program.
    pub cpu_ns: u64,
}

/// So many samples of one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// When the slot began.
    pub at_ns: u64,
    /// The target that it is of, or `kernel`, `softirq`, `idle`, `engine`, `tare-probe`, `other`.
    pub subject: String,
    /// The process's name.
    pub command: String,
    /// From the root to the leaf, divided by semicolons; functions of the kernel end with `_[k]`.
    pub stack: String,
    pub samples: u64,
}
