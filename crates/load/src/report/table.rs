//! The result of a run for a person: a few lines in a terminal.

use std::fmt::Write;

use super::document::{Quantiles, WindowFigures};
use super::figures::{quantiles, seconds};
use crate::drive::{End, OF_CONNECTIONS, Outcome};
use crate::measure::{Latencies, Window};
use crate::plan::{CONNECT, Plan};

/// Most errors that are listed; the document has all.
const MOST_ERRORS: usize = 5;

/// Rates, quantiles by kind of operation, errors, and the client's own share.
#[must_use]
pub fn table(plan: &Plan, protocol: &str, outcome: &Outcome) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, plan, protocol, outcome);
    out
}

fn write(out: &mut String, plan: &Plan, protocol: &str, outcome: &Outcome) -> std::fmt::Result {
    let measure = &outcome.measure;
    let seconds = seconds(outcome);
    let way = if plan.arrivals.is_some() { "open loop" } else { "closed loop" };
    let connections = plan.connections;
    writeln!(out, "{protocol} at {}, {way}, connections: {connections}", plan.address)?;
    match &outcome.end {
        End::Complete => {}
        End::Interrupted => writeln!(out, "interrupted")?,
        End::Gone(reason) => writeln!(out, "the server went away: {reason}")?,
    }
    #[allow(clippy::cast_precision_loss)] // some 10^15 operations
    let rate = measure.counts.completed as f64 / seconds;
    writeln!(out, "\n{rate:.0} operations/s in {seconds:.1} s")?;
    if plan.arrivals.is_some() {
        let counts = &measure.counts;
        writeln!(out, "{} arrivals, {} of them missed", counts.scheduled, counts.missed)?;
    }
    let kinds = plan.workload.kinds();
    let width = kinds.iter().map(String::len).max().unwrap_or(0).max("operation".len());
    writeln!(
        out,
        "\n{:width$} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  latency in ms",
        "operation", "right", "failed", "p50", "p95", "p99", "p99.9", "max"
    )?;
    for (kind, name) in measure.kinds.iter().zip(kinds) {
        row(out, name, width, [kind.right, kind.failed()], &kind.latency)?;
    }
    if kinds.len() > 1 {
        row(out, "all", width, [measure.right(), measure.failed()], &measure.latency())?;
    }
    if plan.requests_per_connection.is_some() {
        let connect = &measure.connect;
        row(out, CONNECT, width, [connect.right, connect.failed()], &connect.latency)?;
    }
    errors(out, measure, kinds)?;
    client(out, measure, seconds)
}

impl WindowFigures {
    /// One line of progress.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = format!("{} {:.0} s", self.phase, self.end_s);
        if self.phase == "warm-up" {
            line = format!("{} {:.0} s left", self.phase, -self.end_s);
        }
        #[allow(clippy::cast_precision_loss)] // some 10^15 operations
        let rate = self.completed as f64 / self.driven_s.unwrap_or(self.end_s - self.start_s);
        let _ = write!(line, "  {rate:.0} operations/s");
        if let Some(found) = &self.latency_ns {
            let _ = write!(line, "  p50 {:.3} ms", in_ms(found.p50));
            if let Some(p99) = found.p99 {
                let _ = write!(line, "  p99 {:.3} ms", in_ms(p99));
            }
        }
        for (count, word) in [(self.failed, "failed"), (self.missed, "missed")] {
            if count > 0 {
                let _ = write!(line, "  {count} {word}");
            }
        }
        line
    }
}

fn row(
    out: &mut String,
    name: &str,
    width: usize,
    [right, failed]: [u64; 2],
    latency: &Latencies,
) -> std::fmt::Result {
    write!(out, "{name:width$} {right:>11} {failed:>9}")?;
    let found = quantiles(latency);
    let of = |pick: fn(&Quantiles) -> Option<u64>| found.as_ref().and_then(pick);
    for value in [
        of(|found| Some(found.p50)),
        of(|found| found.p95),
        of(|found| found.p99),
        of(|found| found.p999),
        of(|found| Some(found.max)),
    ] {
        match value {
            Some(value) => write!(out, " {:>9.3}", in_ms(value))?,
            None => write!(out, " {:>9}", "-")?,
        }
    }
    writeln!(out)
}

fn errors(out: &mut String, measure: &Window, kinds: &[String]) -> std::fmt::Result {
    let mut errors: Vec<_> = measure.errors.iter().collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    if !errors.is_empty() {
        writeln!(out, "\nerrors")?;
    }
    for error in errors.iter().take(MOST_ERRORS) {
        let of_kind = (error.kind != OF_CONNECTIONS)
            .then(|| kinds.get(usize::from(error.kind)))
            .flatten()
            .map_or("connection", String::as_str);
        writeln!(out, "{:>11} {of_kind} {}: {}", error.count, error.code, error.message)?;
    }
    match errors.len().saturating_sub(MOST_ERRORS) {
        0 => Ok(()),
        more => writeln!(out, "{more} other codes"),
    }
}

/// What the client itself took and caused.
fn client(out: &mut String, measure: &Window, seconds: f64) -> std::fmt::Result {
    let ended = measure.right() + measure.failed();
    if ended == 0 {
        return Ok(());
    }
    #[allow(clippy::cast_precision_loss)] // some days
    let cpu_ns = measure.usage.cpu_ns as f64;
    #[allow(clippy::cast_precision_loss)] // some 10^15 operations
    let each_us = cpu_ns / ended as f64 / 1e3;
    let cpus = cpu_ns / 1e9 / seconds;
    writeln!(out, "\nclient: {each_us:.1} µs of CPU for an operation, {cpus:.2} CPUs")?;
    if let Some(late) = quantiles(&measure.lag).and_then(|lag| lag.p99) {
        writeln!(
            out,
            "client: 99 % of the requests were at most {:.3} ms late by it",
            in_ms(late)
        )?;
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // an hour at most
fn in_ms(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::arrivals::{Arrivals, Spacing, Stages};
    use crate::drive::{Mark, SetUp};
    use crate::measure::latencies;
    use crate::measure::window::Outcome as Ending;
    use crate::plan::{Length, Limits};
    use crate::protocol::{Access, Label};
    use crate::workload::job::{Dialect, Job};

    fn plan(open: bool) -> Plan {
        let job = "{format: 1, operations: [{name: get, steps: [{send: GET k}]}, \
            {name: set, steps: [{send: SET k v}]}]}";
        let second = Duration::from_secs(1);
        Plan {
            address: "db:6379".to_owned(),
            others: Vec::new(),
            access: Access::default(),
            before: Vec::new(),
            workload: Arc::new(Job::parse(job, Dialect::Words).expect("a job")),
            after: Vec::new(),
            seed: 1,
            connections: 4,
            depth: 1,
            requests_per_connection: None,
            threads: 1,
            arrivals: open.then(|| Arrivals::Rate {
                stages: Stages::constant(500.0),
                spacing: Spacing::Even,
            }),
            most_waiting: 1,
            warm_up: second,
            length: Length::Time(second),
            turns: None,
            window: second,
            limits: Limits { connect: second, reply: second, drain: second, reconnect: second },
            receive_share: 0,
            most_polled: second,
        }
    }

    fn outcome() -> Outcome {
        let mut measure = Window::new(2);
        for number in 1..=1_000 {
            measure.end(0, Ending::Right, number * 1_000, None);
            measure.lag.saturating_record(number * 100);
        }
        measure.end(1, Ending::Error(Label::new(b"OOM")), 1, None);
        measure.error(1, Label::new(b"OOM"), "OOM no memory");
        measure.counts.completed = 1_000;
        (measure.counts.scheduled, measure.counts.missed) = (1_003, 2);
        measure.usage.cpu_ns = 20_020_000;
        Outcome {
            end: End::Complete,
            set_up: SetUp { seconds: 0.1, connects: latencies(), tls: None },
            warm_up: Window::new(2),
            measure,
            mark: Mark { monotonic_ns: 1_000_000_000, realtime_ns: 0 },
            end_ns: 3_000_000_000,
            turns: None,
        }
    }

    #[test]
    fn a_person_reads_rates_quantiles_errors_and_the_clients_share() {
        assert_eq!(
            table(&plan(true), "redis", &outcome()),
            "redis at db:6379, open loop, connections: 4

500 operations/s in 2.0 s
1003 arrivals, 2 of them missed

operation       right    failed       p50       p95       p99     p99.9       max  latency in ms
get              1000         0     0.500     0.950     0.990     0.999     1.000
set                 0         1         -         -         -         -         -
all              1000         1     0.500     0.950     0.990     0.999     1.000

errors
          1 set OOM: OOM no memory

client: 20.0 µs of CPU for an operation, 0.01 CPUs
client: 99 % of the requests were at most 0.099 ms late by it
"
        );
    }

    #[test]
    fn a_window_is_one_line_of_progress() {
        let mut window = outcome().measure;
        (window.start_ns, window.end_ns) = (3_000_000_000, 5_000_000_000);
        window.phase = crate::measure::Phase::Measure;
        let mut document = crate::report::Document::default();
        assert_eq!(
            document.window(&window, 2_000_000_000).line(),
            "measure 3 s  500 operations/s  p50 0.500 ms  p99 0.990 ms  1 failed  2 missed"
        );
        let mut early = Window::new(2);
        (early.start_ns, early.end_ns) = (3_000_000_000, 4_000_000_000);
        assert_eq!(
            document.window(&early, 5_000_000_000).line(),
            "warm-up 1 s left  0 operations/s"
        );
    }

    #[test]
    fn what_ended_a_run_early_comes_first() {
        let gone = Outcome { end: End::Gone("db:6379: refused".to_owned()), ..outcome() };
        let told = table(&plan(false), "redis", &gone);
        assert!(told.starts_with(
            "redis at db:6379, closed loop, connections: 4\nthe server went away: db:6379: refused\n"
        ));
        assert!(!told.contains("arrivals"), "a closed loop has none");
    }
}
