//! Turns: sending within them only, and counting without a bias what was sent after settling.

mod server;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use server::{Behaviour, Server};
use tare_load::LoadError;
use tare_load::arrivals::{Arrivals, Spacing, Stages};
use tare_load::clock::monotonic_ns;
use tare_load::drive::{End, Outcome, Progress, TurnFigures, run};
use tare_load::plan::{Length, Limits, Plan};
use tare_load::protocol::Access;
use tare_load::protocol::resp::Resp;
use tare_load::workload::job::{Dialect, Job};

const JOB: &str = "{format: 1, operations: [{name: get, steps: [{send: GET k}]}]}";
const MS: u64 = 1_000_000;

fn plan(address: String, rate: Option<f64>, turns: &Path) -> Plan {
    Plan {
        address,
        access: Access::default(),
        before: Vec::new(),
        after: Vec::new(),
        others: Vec::new(),
        workload: Arc::new(Job::parse(JOB, Dialect::Words).expect("a job")),
        seed: 1,
        connections: 4,
        depth: 1,
        requests_per_connection: None,
        threads: 2,
        arrivals: rate.map(|per_s| Arrivals::Rate {
            stages: Stages::constant(per_s),
            spacing: Spacing::Even,
        }),
        most_waiting: 100_000,
        warm_up: Duration::ZERO,
        length: Length::Time(Duration::from_secs(1)),
        turns: Some(turns.to_owned()),
        window: Duration::from_millis(100),
        limits: Limits {
            connect: Duration::from_secs(2),
            reply: Duration::from_secs(10),
            drain: Duration::from_secs(5),
            reconnect: Duration::from_millis(500),
        },
        receive_share: 0,
        most_polled: Duration::ZERO,
    }
}

/// Runs in turns that are given in milliseconds from some time on, which `begun` receives.
fn drive(
    server: &Server,
    rate: Option<f64>,
    warm_up: usize,
    turns: &[[u64; 3]],
    begun: impl Fn(u64),
) -> Result<Outcome, LoadError> {
    let directory = tempfile::tempdir().expect("a directory");
    let (made, there) = (directory.path().join("made"), directory.path().join("turns.json"));
    let mut observe = |progress: Progress<'_>| {
        if matches!(progress, Progress::Connected) {
            let base_ns = monotonic_ns() + 100 * MS;
            let turns = turns.iter().map(|turn| turn.map(|at| base_ns + at * MS));
            let turns = turns.collect::<Vec<_>>();
            std::fs::write(
                &made,
                format!(r#"{{"format":1,"warm_up":{warm_up},"turns":{turns:?},"until":0}}"#),
            )
            .and_then(|()| std::fs::rename(&made, &there))
            .expect("written");
            begun(base_ns);
        }
        Ok(())
    };
    run::<Resp>(&plan(server.address(), rate, &there), &AtomicBool::new(false), &mut observe)
}

fn right(figures: &[TurnFigures]) -> u64 {
    figures.iter().map(|one| one.right).sum()
}

#[test]
fn a_closed_loop_counts_what_it_sent_after_settling() {
    let server = Server::start(Behaviour::Answers);
    let turns = [[0, 20, 70], [100, 120, 200], [300, 320, 400]];
    let outcome = drive(&server, None, 1, &turns, |_| ()).expect("it ran");
    assert_eq!(outcome.end, End::Complete);
    let (found, figures) = outcome.turns.expect("taken");
    assert_eq!((found.warm_up, figures.len()), (1, 3));
    assert!(figures.iter().all(|one| one.right > 0 && one.failed == 0), "{figures:?}");
    assert!(figures.iter().all(|one| 0 < one.first_half && one.first_half < one.right));
    let measured = &outcome.measure;
    assert_eq!(right(&figures[1..]), measured.right());
    assert_eq!(measured.latency().len(), measured.right());
    assert!(measured.counts.settling > 0);
    assert_eq!(measured.counts.requests, measured.right() + measured.counts.settling);
    for (turn, one) in found.all.iter().zip(&figures) {
        assert!(one.last_ns > turn.settled_ns, "{turn:?} {one:?}");
    }
}

#[test]
fn nothing_is_sent_between_turns() {
    let server = Server::start(Behaviour::Answers);
    let turns = [[0, 10, 100], [600, 610, 700]];
    std::thread::scope(|scope| {
        let begun = |base_ns: u64| {
            let server = &server;
            scope.spawn(move || {
                let wait_until = |at: u64| {
                    let left_ns = (base_ns + at * MS).saturating_sub(monotonic_ns());
                    std::thread::sleep(Duration::from_nanos(left_ns));
                };
                wait_until(300);
                assert!(server.take_requests() > 0);
                wait_until(500);
                if monotonic_ns() < base_ns + 600 * MS {
                    assert_eq!(server.take_requests(), 0);
                }
            });
        };
        drive(&server, None, 0, &turns, begun).expect("it ran");
    });
}

#[test]
fn arrivals_of_an_open_loop_fall_into_turns_and_keep_their_rate() {
    let server = Server::start(Behaviour::Answers);
    let turns = [[0, 20, 100], [150, 170, 250], [300, 320, 400]];
    let outcome = drive(&server, Some(1_000.0), 1, &turns, |_| ()).expect("it ran");
    let (_, figures) = outcome.turns.expect("taken");
    assert_eq!(figures.iter().map(|one| one.right).collect::<Vec<_>>(), [80, 80, 80]);
    assert_eq!(figures.iter().map(|one| one.first_half).collect::<Vec<_>>(), [40, 40, 40]);
    assert_eq!((outcome.measure.counts.scheduled, outcome.measure.counts.settling), (200, 40));
    assert_eq!(outcome.measure.counts.missed, 0);
}

#[test]
fn what_is_in_flight_at_the_end_of_a_turn_counts_in_it_with_its_whole_latency() {
    // The first request starts the server's clock: it stops in the first turn and goes on between the turns.
    let server = Server::start(Behaviour::Stops { after: 0.1, seconds: 0.3 });
    let outcome =
        drive(&server, None, 0, &[[0, 20, 200], [600, 620, 700]], |_| ()).expect("it ran");
    let (turns, figures) = outcome.turns.expect("taken");
    assert!(figures[0].last_ns > turns.all[0].end_ns, "{figures:?}");
    assert!(figures[0].last_ns < turns.all[1].start_ns, "{figures:?}");
    assert_eq!(right(&figures), outcome.measure.right());
    let longest_ns = outcome.measure.latency().max();
    assert!(longest_ns > 200 * MS, "{longest_ns}");
    assert!(figures[0].latency_ns >= 4 * 200 * MS, "each of four connections waited: {figures:?}");
}

#[test]
fn failures_count_wherever_they_happen() {
    let server = Server::start(Behaviour::Refuses);
    let outcome = drive(&server, None, 0, &[[0, 20, 60]], |_| ()).expect("it ran");
    let (_, figures) = outcome.turns.expect("taken");
    assert_eq!((figures[0].right, outcome.measure.right()), (0, 0));
    assert!(figures[0].failed > 0);
    assert_eq!(figures[0].failed, outcome.measure.failed());
}

#[test]
fn a_schedule_that_has_begun_is_refused() {
    let server = Server::start(Behaviour::Answers);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("turns.json");
    std::fs::write(&path, r#"{"format": 1, "warm_up": 0, "turns": [[1, 2, 3]], "until": 3}"#)
        .expect("written");
    let plan = plan(server.address(), None, &path);
    let error = run::<Resp>(&plan, &AtomicBool::new(false), &mut |_| Ok(()));
    let error = error.err().expect("too late");
    assert!(error.to_string().contains("the first turn began before it was read"), "{error}");
    assert_eq!(error.exit_code(), 2);
}
