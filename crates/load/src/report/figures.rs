//! Fills the document from the figures of a run.

use super::document::{
    ClientFigures, Ending, ErrorFigures, FORMAT, Finished, Handshakes, How, KindFigures, MeanParts,
    Measured, Opening, PartsFigures, PerOperation, PhaseFigures, Planned, Program, Quantiles,
    Schedule, TurnColumns, Verification, WindowFigures,
};
use crate::arrivals::{Arrivals, Spacing};
use crate::drive::{End, OF_CONNECTIONS, Outcome, SetUp, Turn, TurnFigures, Turns};
use crate::measure::usage::peak_resident_kib;
use crate::measure::{KindWindow, Latencies, Split, Usage, Window};
use crate::plan::{CONNECT, Plan};

/// Collects the document's figures during the run.
#[derive(Debug, Default)]
pub struct Document {
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
        let mark = outcome.mark;
        Finished {
            format: FORMAT,
            program: Program::this(),
            end: ending(&outcome.end),
            plan: planned(plan, protocol),
            set_up: opening(&outcome.set_up),
            warm_up: phase(&outcome.warm_up, kinds),
            measure: Measured {
                phase: phase(&outcome.measure, kinds),
                seconds: seconds(outcome),
                mark_realtime_ns: mark.realtime_ns,
                mark_monotonic_ns: mark.monotonic_ns,
            },
            client: ClientFigures { peak_resident_kib: peak_resident_kib() },
            turns: outcome
                .turns
                .as_ref()
                .map(|(turns, figures)| turn_columns(turns, figures, mark.monotonic_ns)),
            windows: self.windows,
        }
    }
}

impl Program {
    pub(super) fn this() -> Self {
        Self { name: "tare-load", version: env!("CARGO_PKG_VERSION") }
    }
}

fn turn_columns(turns: &Turns, figures: &[TurnFigures], mark_ns: u64) -> TurnColumns {
    let times = |time: fn(&Turn) -> u64| {
        turns.all.iter().map(|turn| time(turn) as i64 - mark_ns as i64).collect()
    };
    let counts = |count: fn(&TurnFigures) -> u64| figures.iter().map(count).collect();
    let last = |one: &TurnFigures| (one.last_ns > 0).then(|| one.last_ns as i64 - mark_ns as i64);
    TurnColumns {
        warm_up: turns.warm_up,
        start_ns: times(|turn| turn.start_ns),
        settled_ns: times(|turn| turn.settled_ns),
        end_ns: times(|turn| turn.end_ns),
        right: counts(|one| one.right),
        first_half: counts(|one| one.first_half),
        failed: counts(|one| one.failed),
        latency_ns: counts(|one| one.latency_ns),
        last_ns: figures.iter().map(last).collect(),
        slices: (turns.slices > 0).then(|| figures.iter().map(|one| one.slices.clone()).collect()),
    }
}

fn ending(end: &End) -> Ending {
    match end {
        End::Complete => Ending { how: How::Complete, reason: None },
        End::Interrupted => {
            Ending { how: How::Interrupted, reason: Some("a signal ended the run".to_owned()) }
        }
        End::Gone(reason) => Ending { how: How::ServerGone, reason: Some(reason.clone()) },
    }
}

fn planned(plan: &Plan, protocol: &str) -> Planned {
    let tls = plan.access.tls.as_ref();
    Planned {
        protocol: protocol.to_owned(),
        address: plan.address.clone(),
        others: plan.others.clone(),
        tls: tls.map(|tls| Verification { verify: tls.verify.name() }),
        seed: plan.seed,
        connections: plan.connections,
        depth: plan.depth,
        requests_per_connection: plan.requests_per_connection,
        threads: plan.threads,
        arrivals: schedule(plan.arrivals.as_ref()),
        most_waiting: plan.arrivals.as_ref().map(|_| plan.most_waiting),
        warm_up_s: plan.warm_up.as_secs_f64(),
        measure_s: plan.length.time().map(|time| time.as_secs_f64()),
        operations: plan.length.operations(),
        window_s: plan.window.as_secs_f64(),
        reply_limit_s: plan.limits.reply.as_secs_f64(),
        receive_share: plan.receive_share,
        most_polled_s: plan.most_polled.as_secs_f64(),
        kinds: plan.workload.kinds().to_vec(),
    }
}

fn schedule(arrivals: Option<&Arrivals>) -> Schedule {
    match arrivals {
        None => Schedule { way: "closed", ..Schedule::default() },
        Some(Arrivals::Trace(trace)) => Schedule {
            way: "open",
            process: Some("trace"),
            arrivals: Some(trace.times_ns.len()),
            ..Schedule::default()
        },
        Some(Arrivals::Rate { stages, spacing }) => Schedule {
            way: "open",
            process: Some(match spacing {
                Spacing::Even => "even",
                Spacing::Poisson => "poisson",
            }),
            first_per_s: Some(stages.first_per_s()),
            highest_per_s: Some(stages.highest_per_s()),
            ..Schedule::default()
        },
    }
}

fn opening(set_up: &SetUp) -> Opening {
    Opening {
        seconds: set_up.seconds,
        connections: set_up.connects.len(),
        connect_ns: quantiles(&set_up.connects),
        tls: set_up.tls.as_ref().map(|tls| Handshakes {
            suite: tls.suite.clone(),
            handshake_ns: quantiles(&tls.handshakes),
        }),
    }
}

/// Length of the measure phase.
pub(super) fn seconds(outcome: &Outcome) -> f64 {
    seconds_from(outcome.end_ns.max(outcome.mark.monotonic_ns), outcome.mark.monotonic_ns)
}

fn phase(window: &Window, kinds: &[String]) -> PhaseFigures {
    let counted: u64 = window.kinds.iter().map(KindWindow::ended).sum();
    let counts = &window.counts;
    let errors = window.errors.iter().map(|error| {
        let kind = (error.kind != OF_CONNECTIONS).then(|| kinds.get(usize::from(error.kind)));
        ErrorFigures {
            kind: kind.flatten().cloned(),
            code: error.code.to_string(),
            count: error.count,
            message: error.message.clone(),
        }
    });
    PhaseFigures {
        right: window.right(),
        failed: window.failed(),
        completed: counts.completed,
        scheduled: counts.scheduled,
        missed: counts.missed,
        unfinished: counts.unfinished,
        late_warm_up: counts.late_warm_up,
        settling: counts.settling,
        requests: counts.requests,
        bytes_sent: counts.bytes_sent,
        bytes_received: counts.bytes_received,
        retries: counts.retries,
        disconnects: counts.disconnects,
        reconnects: counts.reconnects,
        latency_ns: quantiles(&window.latency()),
        kinds: window.kinds.iter().zip(kinds).map(|(kind, name)| of_kind(kind, name)).collect(),
        connect: of_kind(&window.connect, CONNECT),
        errors: errors.collect(),
        lag_ns: quantiles(&window.lag),
        waiting_ns: quantiles(&window.waiting),
        unread_ns: quantiles(&window.unread),
        parts: parts(&window.split),
        usage: window.usage,
        per_operation: per_operation(&window.usage, counted + counts.settling),
    }
}

fn of_kind(kind: &KindWindow, name: &str) -> KindFigures {
    KindFigures {
        name: name.to_owned(),
        right: kind.right,
        missing: kind.missing,
        short: kind.short,
        wrong: kind.wrong,
        errors: kind.errors,
        lost: kind.lost,
        latency_ns: quantiles(&kind.latency),
        service_ns: quantiles(&kind.service),
    }
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
fn parts(split: &Split) -> PartsFigures {
    let around = |quantile: f64| {
        split.at(quantile).map(|group| {
            #[allow(clippy::cast_precision_loss)] // sums of some hours
            let mean = |sum: u64| sum as f64 / group.count as f64;
            MeanParts {
                count: group.count,
                lag_ns: mean(group.sums.lag_ns),
                waiting_ns: mean(group.sums.waiting_ns),
                server_ns: mean(group.sums.server_ns),
                unread_ns: mean(group.sums.unread_ns),
            }
        })
    };
    let (p50, p99, p999) = (around(0.5), around(0.99), around(0.999));
    PartsFigures { sampled: split.count(), p50, p99, p999 }
}

fn per_operation(usage: &Usage, ended: u64) -> Option<PerOperation> {
    if ended == 0 {
        return None;
    }
    #[allow(clippy::cast_precision_loss)] // some 10^15 operations
    let each = |sum: u64| sum as f64 / ended as f64;
    Some(PerOperation {
        cpu_ns: each(usage.cpu_ns),
        run_queue_ns: usage.run_queue_ns.map(each),
        switches: each(usage.voluntary_switches + usage.involuntary_switches),
        faults: each(usage.minor_faults + usage.major_faults),
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
    use serde_json::{Value, json};

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
        let told = serde_json::to_value(document.window(&window, 1_000_000_000)).expect("JSON");
        assert_eq!((&told["start_s"], &told["end_s"]), (&json!(2.0), &json!(2.5)));
        assert_eq!(told["usage"]["cpu_ns"], 0);
    }
}
