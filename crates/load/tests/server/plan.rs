//! A plan against it, and its run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tare_load::LoadError;
use tare_load::arrivals::{Arrivals, Spacing, Stages};
use tare_load::drive::{Outcome, run};
use tare_load::plan::{Length, Limits, Plan};
use tare_load::protocol::Access;
use tare_load::protocol::resp::Resp;
use tare_load::workload::job::{Dialect, Job};

pub(crate) const JOB: &str = "{format: 1, operations: [{name: get, steps: [{send: GET k}]}]}";

pub(crate) fn plan(address: String, rate: Option<f64>, seconds: f64) -> Plan {
    Plan {
        address,
        access: Access::default(),
        before: Vec::new(),
        after: Vec::new(),
        others: Vec::new(),
        workload: Arc::new(Job::parse(JOB, Dialect::Words).expect("a job")),
        seed: 1,
        connections: 8,
        depth: 1,
        requests_per_connection: None,
        threads: 1,
        arrivals: rate.map(|per_s| Arrivals::Rate {
            stages: Stages::constant(per_s),
            spacing: Spacing::Even,
        }),
        most_waiting: 100_000,
        warm_up: Duration::ZERO,
        length: Length::Time(Duration::from_secs_f64(seconds)),
        turns: None,
        window: Duration::from_secs(1),
        limits: Limits {
            connect: Duration::from_secs(2),
            reply: Duration::from_secs(10),
            drain: Duration::from_secs(5),
            reconnect: Duration::from_millis(500),
        },
        receive_share: 4,
        most_polled: Duration::from_micros(160),
    }
}

/// Checks times against a truth. Other programs on this machine can only delay, so the best try counts.
///
/// `check` panics only for what no delay can cause.
pub(crate) fn best_try(check: impl Fn() -> Result<(), String>) {
    let mut wrong = String::new();
    for _ in 0..6 {
        match check() {
            Ok(()) => return,
            Err(found) => wrong = found,
        }
    }
    panic!("{wrong}");
}

/// `Ok` if it holds, else these words.
pub(crate) fn holds(it: bool, words: impl FnOnce() -> String) -> Result<(), String> {
    if it { Ok(()) } else { Err(words()) }
}

pub(crate) fn drive(plan: &Plan) -> Result<Outcome, LoadError> {
    run::<Resp>(plan, &AtomicBool::new(false), &mut |_| Ok(()))
}
