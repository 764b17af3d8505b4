//! The result document of a run; docs/reference/load-output.md describes its keys.

use serde_json::{Value, json};

use crate::arrivals::{Arrivals, Spacing};
use crate::drive::{End, OF_CONNECTIONS, Outcome};
use crate::measure::usage::peak_resident_kib;
use crate::measure::{KindWindow, Latencies, Split, Usage, Window};
use crate::plan::Plan;

pub const FORMAT: u32 = 1;

/// Collects the document's figures during the run.
#[derive(Debug, Default)]
pub struct Document {
    windows: Vec<Value>,
}

impl Document {
    /// Adds a window; returns its entry in the document, which is also a line of progress.
    pub fn window(&mut self, window: &Window, mark_ns: u64) -> &Value {
        let latency = window.latency();
        self.windows.push(json!({
            "phase": window.phase.name(),
            "index": window.index,
            "start_s": seconds_from(window.start_ns, mark_ns),
            "end_s": seconds_from(window.end_ns, mark_ns),
            "right": window.right(),
            "failed": window.failed(),
            "scheduled": window.counts.scheduled,
            "missed": window.counts.missed,
            "latency_ns": quantiles(&latency),
            "lag_ns": quantiles(&window.lag),
            "usage": usage(&window.usage),
        }));
        self.windows.last().unwrap_or(&Value::Null)
    }

    #[must_use]
    pub fn finish(self, plan: &Plan, protocol: &str, outcome: &Outcome) -> Value {
        let kinds = plan.workload.kinds();
        json!({
            "format": FORMAT,
            "program": { "name": "tare-load", "version": env!("CARGO_PKG_VERSION") },
            "end": end(&outcome.end),
            "plan": described(plan, protocol),
            "set_up": {
                "seconds": outcome.set_up.seconds,
                "connections": outcome.set_up.connects.len(),
                "connect_ns": quantiles(&outcome.set_up.connects),
                "tls": outcome.set_up.tls.as_ref().map(|tls| json!({
                    "suite": tls.suite,
                    "handshake_ns": quantiles(&tls.handshakes),
                })),
            },
            "warm_up": phase(&outcome.warm_up, kinds),
            "measure": measured(outcome, kinds),
            "client": {
                "peak_resident_kib": peak_resident_kib(),
            },
            "windows": self.windows,
        })
    }
}

fn end(end: &End) -> Value {
    match end {
        End::Complete => json!({ "how": "complete", "reason": null }),
        End::Interrupted => json!({ "how": "interrupted", "reason": "a signal ended the run" }),
        End::Gone(reason) => json!({ "how": "server-gone", "reason": reason }),
    }
}

fn described(plan: &Plan, protocol: &str) -> Value {
    json!({
        "protocol": protocol,
        "address": plan.address,
        "others": plan.others,
        "tls": plan.access.tls.as_ref().map(|tls| json!({ "verify": tls.verify.name() })),
        "seed": plan.seed,
        "connections": plan.connections,
        "depth": plan.depth,
        "threads": plan.threads,
        "arrivals": arrivals(plan.arrivals.as_ref()),
        "most_waiting": plan.arrivals.as_ref().map(|_| plan.most_waiting),
        "warm_up_s": plan.warm_up.as_secs_f64(),
        "measure_s": plan.length.time().map(|time| time.as_secs_f64()),
        "operations": plan.length.operations(),
        "window_s": plan.window.as_secs_f64(),
        "reply_limit_s": plan.limits.reply.as_secs_f64(),
        "receive_share": plan.receive_share,
        "most_polled_s": plan.most_polled.as_secs_f64(),
        "kinds": plan.workload.kinds(),
    })
}

fn arrivals(arrivals: Option<&Arrivals>) -> Value {
    match arrivals {
        None => json!({ "loop": "closed" }),
        Some(Arrivals::Trace(trace)) => {
            json!({ "loop": "open", "process": "trace", "arrivals": trace.times_ns.len() })
        }
        Some(Arrivals::Rate { stages, spacing }) => json!({
            "loop": "open",
            "process": match spacing { Spacing::Even => "even", Spacing::Poisson => "poisson" },
            "first_per_s": stages.first_per_s(),
            "highest_per_s": stages.highest_per_s(),
        }),
    }
}

fn measured(outcome: &Outcome, kinds: &[String]) -> Value {
    let mut measured = phase(&outcome.measure, kinds);
    #[allow(clippy::cast_precision_loss)] // a run lasts less than 104 days
    let seconds = outcome.end_ns.saturating_sub(outcome.mark.monotonic_ns) as f64 / 1e9;
    measured["seconds"] = json!(seconds);
    measured["mark_realtime_ns"] = json!(outcome.mark.realtime_ns);
    measured["mark_monotonic_ns"] = json!(outcome.mark.monotonic_ns);
    measured
}

fn phase(window: &Window, kinds: &[String]) -> Value {
    let ended: u64 = window.kinds.iter().map(KindWindow::ended).sum();
    let of_kinds: Vec<Value> = window
        .kinds
        .iter()
        .zip(kinds)
        .map(|(kind, name)| {
            json!({
                "name": name,
                "right": kind.right,
                "missing": kind.missing,
                "short": kind.short,
                "wrong": kind.wrong,
                "errors": kind.errors,
                "lost": kind.lost,
                "latency_ns": quantiles(&kind.latency),
                "service_ns": quantiles(&kind.service),
            })
        })
        .collect();
    let errors: Vec<Value> = window
        .errors
        .iter()
        .map(|error| {
            let kind = (error.kind != OF_CONNECTIONS)
                .then(|| kinds.get(usize::from(error.kind)))
                .flatten();
            json!({
                "kind": kind,
                "code": error.code.to_string(),
                "count": error.count,
                "message": error.message,
            })
        })
        .collect();
    let counts = &window.counts;
    json!({
        "right": window.right(),
        "failed": window.failed(),
        "scheduled": counts.scheduled,
        "missed": counts.missed,
        "unfinished": counts.unfinished,
        "late_warm_up": counts.late_warm_up,
        "requests": counts.requests,
        "bytes_sent": counts.bytes_sent,
        "bytes_received": counts.bytes_received,
        "disconnects": counts.disconnects,
        "reconnects": counts.reconnects,
        "reconnect_ns": quantiles(&window.connects),
        "latency_ns": quantiles(&window.latency()),
        "kinds": of_kinds,
        "errors": errors,
        "lag_ns": quantiles(&window.lag),
        "waiting_ns": quantiles(&window.waiting),
        "unread_ns": quantiles(&window.unread),
        "parts": parts(&window.split),
        "usage": usage(&window.usage),
        "per_operation": per_operation(&window.usage, ended),
    })
}

/// Quantiles; `null` if no value was recorded.
fn quantiles(values: &Latencies) -> Value {
    if values.is_empty() {
        return Value::Null;
    }
    json!({
        "count": values.len(),
        "mean": values.mean(),
        "min": values.min(),
        "p50": values.value_at_quantile(0.5),
        "p90": values.value_at_quantile(0.9),
        "p95": values.value_at_quantile(0.95),
        "p99": values.value_at_quantile(0.99),
        "p99.9": values.value_at_quantile(0.999),
        "p99.99": values.value_at_quantile(0.9999),
        "max": values.max(),
    })
}

/// Mean parts of sampled requests around each quantile of their latency.
fn parts(split: &Split) -> Value {
    let around = |quantile: f64| {
        split.at(quantile).map(|group| {
            #[allow(clippy::cast_precision_loss)] // sums of some hours
            let mean = |sum: u64| sum as f64 / group.count as f64;
            json!({
                "count": group.count,
                "lag_ns": mean(group.sums.lag_ns),
                "waiting_ns": mean(group.sums.waiting_ns),
                "server_ns": mean(group.sums.server_ns),
                "unread_ns": mean(group.sums.unread_ns),
            })
        })
    };
    json!({
        "sampled": split.count(),
        "p50": around(0.5),
        "p99": around(0.99),
        "p99.9": around(0.999),
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "cpu_ns": usage.cpu_ns,
        "run_queue_ns": usage.run_queue_ns,
        "voluntary_switches": usage.voluntary_switches,
        "involuntary_switches": usage.involuntary_switches,
        "minor_faults": usage.minor_faults,
        "major_faults": usage.major_faults,
        "polled_ns": usage.polled_ns,
    })
}

fn per_operation(usage: &Usage, ended: u64) -> Value {
    if ended == 0 {
        return Value::Null;
    }
    #[allow(clippy::cast_precision_loss)] // some 10^15 operations
    let each = |sum: u64| sum as f64 / ended as f64;
    json!({
        "cpu_ns": each(usage.cpu_ns),
        "run_queue_ns": usage.run_queue_ns.map(each),
        "switches": each(usage.voluntary_switches + usage.involuntary_switches),
        "faults": each(usage.minor_faults + usage.major_faults),
    })
}

#[allow(clippy::cast_precision_loss)] // a run lasts less than 104 days
fn seconds_from(at_ns: u64, mark_ns: u64) -> f64 {
    (at_ns as f64 - mark_ns as f64) / 1e9
}
