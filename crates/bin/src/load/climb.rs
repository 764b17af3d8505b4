//! `tare-load climb`: rungs of the search, each a short run at one rate.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use tare_load::LoadError;
use tare_load::arrivals::{Arrivals, Stages};
use tare_load::climb::{Climb, Climbed, Rung};
use tare_load::drive::{End, Outcome};
use tare_load::plan::{Length, Plan};

use crate::drive::{Ended, Signals, outcome_of};
use crate::options::ClimbOptions;
use crate::plan::{self, WAITING_S};
use crate::request::Phase;

/// Default time for which a rate is held.
const HOLD_S: f64 = 5.0;
/// Fewest replies beyond the quantile.
const FEWEST_BEYOND: f64 = 10.0;
/// Lower rates are given up, at which that would take so many times as long.
const MOST_STRETCHED: f64 = 12.0;

pub(crate) fn climb(options: &ClimbOptions) -> Result<Ended, LoadError> {
    let run = &options.run;
    let given = [
        ("--rate", run.rate.is_some()),
        ("--stages", run.stages.is_some()),
        ("--trace", run.trace.is_some()),
        ("--turns", run.turns.is_some()),
        ("--operations", run.operations.is_some()),
        ("--logs", run.logs.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        return Err(LoadError::Usage(format!("`climb` chooses the rates: leave {option} out")));
    }
    let plan = plan::of(run, Phase::Run)?;
    let hold_s = run.duration.unwrap_or(HOLD_S);
    let signals = Signals::watch()?;
    let mut climb = Climb::new(options.from, options.to, options.resolution);
    let mut end = End::Complete;
    let mut right = 0;
    while let Some(rate_per_s) = climb.next() {
        // A quantile of too few replies is none.
        let least_s = FEWEST_BEYOND / (1.0 - options.quantile) / rate_per_s;
        if least_s > MOST_STRETCHED * hold_s {
            break;
        }
        let seconds = hold_s.max(least_s);
        let at_rate = Plan {
            arrivals: Some(Arrivals::Rate {
                stages: Stages::constant(rate_per_s),
                spacing: run.spacing.of(),
            }),
            most_waiting: run
                .most_waiting
                .unwrap_or((rate_per_s * WAITING_S) as usize)
                .max(plan.connections),
            length: Length::Time(Duration::from_secs_f64(seconds)),
            ..plan.clone()
        };
        let outcome = outcome_of(run.protocol, &at_rate, &signals, &mut |_| Ok(()))?;
        if outcome.end != End::Complete {
            end = outcome.end;
            break;
        }
        right += outcome.measure.right();
        let rung = rung(&outcome, rate_per_s, seconds, options);
        eprintln!("{}", line(&rung));
        climb.add(rung);
    }
    let climbed = climb.climbed(options.quantile, options.within_ms);
    // Nothing that can be told apart: no rate held, or nothing was answered.
    let failed = u64::from(climbed.rate_per_s.is_none());
    print(&climbed, run.json)?;
    let right = if failed > 0 { 0 } else { right };
    Ok(Ended { end, right, failed })
}

fn rung(outcome: &Outcome, rate_per_s: f64, seconds: f64, options: &ClimbOptions) -> Rung {
    let (measure, latency) = (&outcome.measure, outcome.measure.latency());
    #[allow(clippy::cast_precision_loss)] // an hour at most
    let in_ms = |nanoseconds: u64| nanoseconds as f64 / 1e6;
    let latency_ms =
        (!latency.is_empty()).then(|| in_ms(latency.value_at_quantile(options.quantile)));
    let (missed, failed) = (measure.counts.missed, measure.failed() + measure.counts.unfinished);
    #[allow(clippy::cast_precision_loss)] // some 10^15 operations
    let done_per_s = measure.counts.completed as f64 / seconds;
    let within = latency_ms.is_some_and(|latency| latency <= options.within_ms);
    let held = within && missed == 0 && failed == 0;
    Rung { rate_per_s, done_per_s, latency_ms, missed, failed, held }
}

fn line(rung: &Rung) -> String {
    let latency = rung.latency_ms.map_or("-".to_owned(), |latency| format!("{latency:.3}"));
    let how = if rung.held { "held" } else { "did not hold" };
    let Rung { rate_per_s, done_per_s, missed, failed, .. } = rung;
    let mut line =
        format!("{rate_per_s:>12.0}/s  done {done_per_s:>12.0}/s  {latency:>9} ms  {how}");
    for (count, word) in [(missed, "missed"), (failed, "failed")] {
        if *count > 0 {
            let _ = write!(line, ", {count} {word}");
        }
    }
    line
}

fn print(climbed: &Climbed, json: bool) -> Result<(), LoadError> {
    let mut out = std::io::stdout().lock();
    if json || !out.is_terminal() {
        serde_json::to_writer_pretty(&mut out, climbed)
            .map_err(|error| LoadError::Output(error.into()))?;
        return writeln!(out).map_err(LoadError::Output);
    }
    let quantile = climbed.quantile * 100.0;
    let limit = format!("{quantile} % within {} ms", climbed.within_ms);
    match (climbed.rate_per_s, climbed.failed_per_s) {
        (Some(rate), Some(failed)) => {
            writeln!(out, "sustained: {rate:.0}/s, {limit}; not {failed:.0}/s")
        }
        (Some(rate), None) => writeln!(out, "sustained: {rate:.0}/s or more, {limit}"),
        (None, _) => writeln!(out, "no rate was sustained, {limit}"),
    }
    .map_err(LoadError::Output)
}
