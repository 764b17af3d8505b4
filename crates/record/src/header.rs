//! Metadata of a trace: the journal's JSON frames, and `trace.json` beside the tables.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::schema::Ticks;
use crate::tail::TailFacts;

/// Written once, before the first row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub trace_version: u32,
    pub probe_version: String,
    /// Requested rate, in ticks per second.
    pub rate_hz: f64,
    /// Rate of the host's own tables, which may be lower.
    pub host_rate_hz: f64,
    pub period_ns: u64,
    pub ticks: Ticks,
    pub page_bytes: u64,
    /// `uname -r`.
    pub kernel: String,
    pub cpus: u64,
    /// `/proc/sys/kernel/random/boot_id`: two traces of one boot share their monotonic clock.
    pub boot_id: String,
    /// Scheduling policy of the sampling thread: `fifo:20`, `rr:20` or `other`.
    pub scheduler: String,
    /// Why the requested policy was refused, if it was.
    pub scheduler_refused: Option<String>,
    /// How control groups are mounted: `v1`, `hybrid`, `v2`, or `none`.
    pub cgroup_layout: String,
    /// Source of block requests: `tp_btf/block_rq_issue`, or `none` and why.
    pub block_source: String,
    pub block_refused: Option<String>,
    /// Where rows are kept until they are in the journal; `None`: in the program's own memory.
    #[serde(default)]
    pub tail: Option<TailFacts>,
    /// Why there is no tail, if there is none.
    #[serde(default)]
    pub tail_refused: Option<String>,
    pub started_monotonic_ns: u64,
    pub started_realtime_ns: u64,
}

/// Kind of object that a row describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    Probe,
    Host,
    Cpu,
    Disk,
    Interface,
    Cgroup,
    Process,
}

impl TargetKind {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Host => "host",
            Self::Cpu => "cpu",
            Self::Disk => "disk",
            Self::Interface => "interface",
            Self::Cgroup => "cgroup",
            Self::Process => "process",
        }
    }
}

/// One sampled object. A container that restarts under its name is a new target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    pub id: u32,
    pub kind: TargetKind,
    pub name: String,
    /// What identifies it among targets of its kind: a path, `pid 12`, a device.
    pub detail: String,
    pub opened_ns: u64,
    /// Group of columns → file that it is read from; `absent: why` if there is none.
    pub sources: BTreeMap<String, String>,
}

/// A single event of a target or of the probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub tick: u64,
    pub target: u32,
    /// `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    pub what: What,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A process ended, or a control group or device was removed: its rows end here.
    Vanished,
    /// A counter decreased: a reset, an overflow, or the kernel's inexactness (iowait).
    CounterFell,
    /// The machine was suspended between two ticks.
    Suspended,
    /// Ticks were missed: the probe could not run until after their deadlines.
    Missed,
    /// Rows were dropped because the writer was too slow. The trace is incomplete.
    Dropped,
    /// A requested target does not exist (yet).
    NotFound,
}

impl What {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Vanished => "vanished",
            Self::CounterFell => "counter_fell",
            Self::Suspended => "suspended",
            Self::Missed => "missed",
            Self::Dropped => "dropped",
            Self::NotFound => "not_found",
        }
    }
}

/// Written last. A journal without a footer was cut short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Footer {
    pub ended_monotonic_ns: u64,
    pub ticks: u64,
    pub missed_ticks: u64,
    pub dropped_rows: u64,
    pub suspended_ns: u64,
    /// CPU time that the whole probe used while it sampled.
    pub probe_cpu_ns: u64,
    pub sampler_cpu_ns: u64,
    /// Largest resident memory while sampling, before the conversion to Parquet.
    pub peak_resident_bytes: u64,
    /// Lateness of a tick: how long after its deadline the sampling thread ran.
    pub lateness_p50_ns: u64,
    pub lateness_p99_ns: u64,
    pub lateness_max_ns: u64,
    /// Why the recording ended: `duration`, `signal`, or the error.
    pub ended_by: String,
}

/// Written when a journal that was cut short is recovered: its tail has been moved into it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// Rows that were taken from the tail.
    pub rows: u64,
    /// Bytes of a last frame that was cut short. Its rows, if any, were still in the tail.
    pub torn_bytes: u64,
    /// Why the tail, or its end, could not be read: rows of up to ten seconds are missing.
    pub missing: Option<String>,
}
