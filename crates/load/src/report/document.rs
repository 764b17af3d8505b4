//! The result document of a run: its types, from which schemas/tare-load.schema.json is generated.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Serialize;

use crate::measure::Usage;

pub const FORMAT: u32 = 1;

/// The whole document. Times are nanoseconds (`…_ns`) or seconds (`…_s`); `null`: not recorded.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Finished {
    /// Version of this format.
    #[cfg_attr(test, schemars(extend("const" = FORMAT)))]
    pub(super) format: u32,
    pub(super) program: Program,
    pub(super) end: Ending,
    pub(super) plan: Planned,
    pub(super) set_up: Opening,
    pub(super) warm_up: PhaseFigures,
    pub(super) measure: Measured,
    pub(super) client: ClientFigures,
    /// `null` without `--turns`.
    pub(super) turns: Option<TurnColumns>,
    pub(super) windows: Vec<WindowFigures>,
}

/// The program that wrote the document.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(super) enum How {
    Complete,
    Interrupted,
    ServerGone,
}

/// How the run ended.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Ending {
    pub(super) how: How,
    pub(super) reason: Option<String>,
}

/// What was asked for.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Planned {
    pub(super) protocol: String,
    pub(super) address: String,
    /// Further nodes of a cluster.
    pub(super) others: Vec<String>,
    pub(super) tls: Option<Verification>,
    pub(super) seed: u64,
    pub(super) connections: usize,
    pub(super) depth: u16,
    pub(super) requests_per_connection: Option<u32>,
    pub(super) threads: usize,
    pub(super) arrivals: Schedule,
    /// `null` in a closed loop.
    pub(super) most_waiting: Option<usize>,
    pub(super) warm_up_s: f64,
    pub(super) measure_s: Option<f64>,
    pub(super) operations: Option<u64>,
    pub(super) window_s: f64,
    pub(super) reply_limit_s: f64,
    pub(super) receive_share: u32,
    pub(super) most_polled_s: f64,
    /// Names of the operations.
    pub(super) kinds: Vec<String>,
}

/// What is checked of the server's certificate.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Verification {
    pub(super) verify: &'static str,
}

/// When requests are sent. In a closed loop only `loop` is there.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Schedule {
    #[serde(rename = "loop")]
    pub(super) way: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) process: Option<&'static str>,
    /// Of a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arrivals: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) highest_per_s: Option<f64>,
}

/// Opening of the connections before the run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Opening {
    pub(super) seconds: f64,
    pub(super) connections: u64,
    pub(super) connect_ns: Option<Quantiles>,
    pub(super) tls: Option<Handshakes>,
}

/// TLS as a part of it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Handshakes {
    /// TLS version and cipher suite of the first connection.
    pub(super) suite: Option<String>,
    pub(super) handshake_ns: Option<Quantiles>,
}

/// The measure phase, with the operations that ended after the last arrival.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Measured {
    #[serde(flatten)]
    pub(super) phase: PhaseFigures,
    pub(super) seconds: f64,
    /// When it began.
    pub(super) mark_realtime_ns: u64,
    pub(super) mark_monotonic_ns: u64,
}

/// Figures of one phase.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct PhaseFigures {
    pub(super) right: u64,
    pub(super) failed: u64,
    /// Right replies within the phase, whenever their requests were sent: throughput is theirs.
    pub(super) completed: u64,
    pub(super) scheduled: u64,
    pub(super) missed: u64,
    pub(super) unfinished: u64,
    pub(super) late_warm_up: u64,
    pub(super) settling: u64,
    pub(super) requests: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    /// How often an operation was begun again after an error.
    pub(super) retries: u64,
    pub(super) disconnects: u64,
    pub(super) reconnects: u64,
    /// From the intended send; of all operations.
    pub(super) latency_ns: Option<Quantiles>,
    pub(super) kinds: Vec<KindFigures>,
    /// Connections that were opened in the phase.
    pub(super) connect: KindFigures,
    pub(super) errors: Vec<ErrorFigures>,
    pub(super) lag_ns: Option<Quantiles>,
    pub(super) waiting_ns: Option<Quantiles>,
    pub(super) unread_ns: Option<Quantiles>,
    pub(super) parts: PartsFigures,
    pub(super) usage: Usage,
    pub(super) per_operation: Option<PerOperation>,
}

/// Operations of one kind, by what their replies were.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct KindFigures {
    pub(super) name: String,
    pub(super) right: u64,
    pub(super) missing: u64,
    pub(super) short: u64,
    pub(super) wrong: u64,
    pub(super) errors: u64,
    pub(super) lost: u64,
    pub(super) latency_ns: Option<Quantiles>,
    /// From the actual send; `null` in a closed loop, where both are equal.
    pub(super) service_ns: Option<Quantiles>,
}

/// Errors with one code.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct ErrorFigures {
    /// `null`: of a connection.
    pub(super) kind: Option<String>,
    pub(super) code: String,
    pub(super) count: u64,
    /// The server's first one.
    pub(super) message: String,
}

/// Parts of the latency of sampled requests around quantiles.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct PartsFigures {
    pub(super) sampled: u64,
    pub(super) p50: Option<MeanParts>,
    pub(super) p99: Option<MeanParts>,
    #[serde(rename = "p99.9")]
    pub(super) p999: Option<MeanParts>,
}

/// Means.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct MeanParts {
    pub(super) count: u64,
    pub(super) lag_ns: f64,
    pub(super) waiting_ns: f64,
    pub(super) server_ns: f64,
    pub(super) unread_ns: f64,
}

/// Cost of one operation to the client itself.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct PerOperation {
    pub(super) cpu_ns: f64,
    pub(super) run_queue_ns: Option<f64>,
    pub(super) switches: f64,
    pub(super) faults: f64,
}

/// The program as a whole.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct ClientFigures {
    pub(super) peak_resident_kib: Option<u64>,
}

/// Each turn's times and counts; times are nanoseconds from the end of the warm-up.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct TurnColumns {
    pub(super) warm_up: usize,
    pub(super) start_ns: Vec<i64>,
    pub(super) settled_ns: Vec<i64>,
    pub(super) end_ns: Vec<i64>,
    pub(super) right: Vec<u64>,
    pub(super) first_half: Vec<u64>,
    pub(super) failed: Vec<u64>,
    pub(super) latency_ns: Vec<u64>,
    pub(super) last_ns: Vec<Option<i64>>,
    pub(super) slices: Option<Vec<Vec<u64>>>,
}

/// A window. A run of hours may have a million, which are kept until its end.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct WindowFigures {
    pub(super) phase: &'static str,
    pub(super) index: u32,
    pub(super) start_s: f64,
    pub(super) end_s: f64,
    /// With turns: how much of it counts.
    pub(super) driven_s: Option<f64>,
    pub(super) right: u64,
    pub(super) failed: u64,
    pub(super) completed: u64,
    pub(super) scheduled: u64,
    pub(super) missed: u64,
    pub(super) latency_ns: Option<Quantiles>,
    pub(super) lag_ns: Option<Quantiles>,
    pub(super) usage: Usage,
}

/// A quantile that no value lies beyond is `null`: it would be the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub(super) struct Quantiles {
    pub(super) count: u64,
    pub(super) mean: f64,
    pub(super) min: u64,
    pub(super) p50: u64,
    pub(super) p90: Option<u64>,
    pub(super) p95: Option<u64>,
    pub(super) p99: Option<u64>,
    #[serde(rename = "p99.9")]
    pub(super) p999: Option<u64>,
    #[serde(rename = "p99.99")]
    pub(super) p9999: Option<u64>,
    pub(super) max: u64,
}
