//! The result document of a run; docs/reference/load-output.md describes its keys.

use serde::Serialize;
use serde_json::{Value, json};

use crate::arrivals::{Arrivals, Spacing};
use crate::drive::{End, OF_CONNECTIONS, Outcome, Turn, TurnFigures, Turns};
use crate::measure::usage::peak_resident_kib;
use crate::measure::{KindWindow, Latencies, Split, Usage, Window};
use crate::plan::{CONNECT, Plan};

pub const FORMAT: u32 = 1;

/// Collects the document's figures during the run.
#[derive(Debug, Default)]
pub struct Document {
    windows: Vec<WindowFigures>,
}

/// A window in the document. A run of hours may have a million, which are kept until its end.
#[derive(Debug, Serialize)]
pub struct WindowFigures {
    phase: &'static str,
    index: u32,
    start_s: f64,
    end_s: f64,
    driven_s: Option<f64>,
    right: u64,
    failed: u64,
    completed: u64,
    scheduled: u64,
    missed: u64,
    latency_ns: Option<Quantiles>,
    lag_ns: Option<Quantiles>,
    usage: Usage,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Quantiles {
    count: u64,
    mean: f64,
    min: u64,
    pub(super) p50: u64,
    p90: Option<u64>,
    pub(super) p95: Option<u64>,
    pub(super) p99: Option<u64>,
    #[serde(rename = "p99.9")]
    pub(super) p999: Option<u64>,
    #[serde(rename = "p99.99")]
    p9999: Option<u64>,
    pub(super) max: u64,
}

/// The whole document, to be written as JSON.
#[derive(Debug, Serialize)]
pub struct Finished {
    #[serde(flatten)]
    figures: Value,
    windows: Vec<WindowFigures>,
}

impl Document {
    /// Adds a window; returns its entry in the document, which is also a line of progress.
    pub fn window(&mut self, window: &Window, mark_ns: u64) -> &WindowFigures {
        let figures = WindowFigures {
            phase: window.phase.name(),
            index: window.index,
            start_s: seconds_from(window.start_ns, mark_ns),
            end_s: seconds_from(window.end_ns, mark_ns),
            driven_s: window.driven_ns.map(in_seconds),
            right: window.right(),
            failed: window.failed(),
            completed: window.counts.completed,
            scheduled: window.counts.scheduled,
            missed: window.counts.missed,
            latency_ns: quantiles(&window.latency()),
            lag_ns: quantiles(&window.lag),
            usage: window.usage,
        };
        self.windows.push(figures);
        &self.windows[self.windows.len() - 1]
    }

    #[must_use]
    pub fn finish(self, plan: &Plan, protocol: &str, outcome: &Outcome) -> Finished {
        let kinds = plan.workload.kinds();
        let figures = json!({
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
            "turns": outcome.turns.as_ref().map(|(turns, figures)| {
                of_turns(turns, figures, outcome.mark.monotonic_ns)
            }),
        });
        Finished { figures, windows: self.windows }
    }
}

/// Each turn's times and counts, as columns; times are nanoseconds from the end of the warm-up.
fn of_turns(turns: &Turns, figures: &[TurnFigures], mark_ns: u64) -> Value {
    let times = |time: fn(&Turn) -> u64| -> Vec<i64> {
        turns.all.iter().map(|turn| time(turn) as i64 - mark_ns as i64).collect()
    };
    let counts =
        |count: fn(&TurnFigures) -> u64| -> Vec<u64> { figures.iter().map(count).collect() };
    let last = |one: &TurnFigures| (one.last_ns > 0).then(|| one.last_ns as i64 - mark_ns as i64);
    json!({
        "warm_up": turns.warm_up,
        "start_ns": times(|turn| turn.start_ns),
        "settled_ns": times(|turn| turn.settled_ns),
        "end_ns": times(|turn| turn.end_ns),
        "right": counts(|one| one.right),
        "first_half": counts(|one| one.first_half),
        "failed": counts(|one| one.failed),
        "latency_ns": counts(|one| one.latency_ns),
        "last_ns": figures.iter().map(last).collect::<Vec<_>>(),
        "slices": (turns.slices > 0)
            .then(|| figures.iter().map(|one| &one.slices).collect::<Vec<_>>()),
    })
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
        "requests_per_connection": plan.requests_per_connection,
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
    measured["seconds"] = json!(seconds(outcome));
    measured["mark_realtime_ns"] = json!(outcome.mark.realtime_ns);
    measured["mark_monotonic_ns"] = json!(outcome.mark.monotonic_ns);
    measured
}

/// Length of the measure phase.
pub(super) fn seconds(outcome: &Outcome) -> f64 {
    seconds_from(outcome.end_ns.max(outcome.mark.monotonic_ns), outcome.mark.monotonic_ns)
}

fn of_kind(kind: &KindWindow, name: &str) -> Value {
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
}

fn phase(window: &Window, kinds: &[String]) -> Value {
    let counted: u64 = window.kinds.iter().map(KindWindow::ended).sum();
    let ended = counted + window.counts.settling;
    let of_kinds: Vec<Value> =
        window.kinds.iter().zip(kinds).map(|(kind, name)| of_kind(kind, name)).collect();
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
        "completed": counts.completed,
        "scheduled": counts.scheduled,
        "missed": counts.missed,
        "unfinished": counts.unfinished,
        "late_warm_up": counts.late_warm_up,
        "settling": counts.settling,
        "requests": counts.requests,
        "bytes_sent": counts.bytes_sent,
        "bytes_received": counts.bytes_received,
        "disconnects": counts.disconnects,
        "reconnects": counts.reconnects,
        "connect": of_kind(&window.connect, CONNECT),
        "latency_ns": quantiles(&window.latency()),
        "kinds": of_kinds,
        "errors": errors,
        "lag_ns": quantiles(&window.lag),
        "waiting_ns": quantiles(&window.waiting),
        "unread_ns": quantiles(&window.unread),
        "parts": parts(&window.split),
        "usage": window.usage,
        "per_operation": per_operation(&window.usage, ended),
    })
}

/// `None` if no value was recorded. A quantile that no value lies beyond is `None`: it would be the maximum.
pub(super) fn quantiles(values: &Latencies) -> Option<Quantiles> {
    if values.is_empty() {
        return None;
    }
    // One of so many values lies beyond the quantile.
    let beyond_one_of = |least: u64, quantile: f64| {
        (values.len() >= least).then(|| values.value_at_quantile(quantile))
    };
    Some(Quantiles {
        count: values.len(),
        mean: values.mean(),
        min: values.min(),
        p50: values.value_at_quantile(0.5),
        p90: beyond_one_of(10, 0.9),
        p95: beyond_one_of(20, 0.95),
        p99: beyond_one_of(100, 0.99),
        p999: beyond_one_of(1_000, 0.999),
        p9999: beyond_one_of(10_000, 0.9999),
        max: values.max(),
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
fn in_seconds(length_ns: u64) -> f64 {
    length_ns as f64 / 1e9
}

#[allow(clippy::cast_precision_loss)] // a run lasts less than 104 days
fn seconds_from(at_ns: u64, mark_ns: u64) -> f64 {
    (at_ns as f64 - mark_ns as f64) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::latencies;

    #[test]
    fn a_quantile_that_no_value_lies_beyond_is_not_told() {
        let mut values = latencies();
        assert_eq!(quantiles(&values), None);
        (1..=50).for_each(|value| values.saturating_record(value));
        let found = quantiles(&values).expect("values");
        assert_eq!((found.p50, found.p95, found.p99, found.p9999), (25, Some(48), None, None));
        (51..=100).for_each(|value| values.saturating_record(value));
        assert_eq!(quantiles(&values).and_then(|found| found.p99), Some(99));
        let told = serde_json::to_value(quantiles(&values)).expect("JSON");
        assert_eq!(
            (&told["p99"], &told["p99.9"], &told["max"]),
            (&json!(99), &Value::Null, &json!(100))
        );
    }

    #[test]
    fn windows_take_little_memory_until_they_are_written() {
        assert!(size_of::<WindowFigures>() <= 512, "{}", size_of::<WindowFigures>());
        let mut document = Document::default();
        let mut window = Window::new(1);
        (window.start_ns, window.end_ns) = (3_000_000_000, 3_500_000_000);
        document.window(&window, 1_000_000_000);
        let finished = Finished { figures: json!({ "format": FORMAT }), windows: document.windows };
        let told = serde_json::to_value(&finished).expect("JSON");
        assert_eq!((&told["format"], &told["windows"][0]["start_s"]), (&json!(1), &json!(2.0)));
        assert_eq!(told["windows"][0]["end_s"], 2.5);
        assert_eq!(told["windows"][0]["usage"]["cpu_ns"], 0);
    }
}
