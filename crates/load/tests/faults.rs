//! A server that stops, goes away or answers badly, against a generator that must neither hide it nor hang.

mod server;

use std::sync::Arc;
use std::time::Duration;

use server::plan::{best_try, drive, holds, plan};
use server::{Behaviour, Server};
use tare_load::arrivals::{Arrivals, Trace};
use tare_load::drive::End;
use tare_load::plan::{Length, Plan};
use tare_load::workload::job::{Dialect, Job};
use tare_load::{Fault, LoadError};

/// Of arrivals spread evenly over `all` seconds, those that fall into a stop wait for its end.
/// The quantile of these waits, all else taking no time.
fn truth_s(quantile: f64, stop: f64, all: f64) -> f64 {
    (stop - (1.0 - quantile) * all).max(0.0)
}

#[test]
fn a_stop_of_two_seconds_in_ten_shows_in_every_percentile() {
    for rate in [100.0, 1_000.0] {
        best_try(|| {
            let server = Server::start(Behaviour::Stops { after: 4.0, seconds: 2.0 });
            let outcome = drive(&plan(server.address(), Some(rate), 10.0)).expect("it ran");
            assert_eq!(outcome.end, End::Complete);
            let latency = outcome.measure.latency();
            assert_eq!(latency.len(), (rate * 10.0) as u64, "none is missed, none is lost");
            assert_eq!(outcome.measure.counts.missed, 0);
            for quantile in [0.95, 0.99, 0.999] {
                let truth = truth_s(quantile, 2.0, 10.0);
                let found = Duration::from_nanos(latency.value_at_quantile(quantile)).as_secs_f64();
                if (found - truth).abs() / truth >= 0.02 {
                    return Err(format!("{rate}/s, {quantile}: {found} s, truth {truth} s"));
                }
            }
            let service = outcome.measure.kinds[0].service.value_at_quantile(0.95);
            holds(service < 100_000_000, || {
                format!("only 8 requests were on their way: {service} ns")
            })
        });
    }
}

#[test]
fn beyond_the_bound_arrivals_are_missed_and_counted() {
    best_try(|| {
        let server = Server::start(Behaviour::Stops { after: 0.5, seconds: 2.0 });
        let bounded = Plan { most_waiting: 80, ..plan(server.address(), Some(1_000.0), 3.0) };
        let outcome = drive(&bounded).expect("it ran");
        let (missed, right) = (outcome.measure.counts.missed, outcome.measure.right());
        assert_eq!(outcome.measure.counts.scheduled, 3_000);
        assert_eq!(missed + right, 3_000, "{missed} missed, {right} right");
        holds((1_850..=1_990).contains(&missed), || {
            format!("2,000 less those that could wait: {missed}")
        })
    });
}

#[test]
fn a_server_that_goes_away_ends_the_run_with_its_counts() {
    for rate in [None, Some(1_000.0)] {
        let server = Server::start(Behaviour::Ends { after: 1.0 });
        let outcome = drive(&plan(server.address(), rate, 30.0)).expect("it began");
        let End::Gone(reason) = &outcome.end else { panic!("{:?}", outcome.end) };
        assert!(reason.contains("refused"), "{reason}");
        assert!(outcome.measure.right() > 900, "{}", outcome.measure.right());
        assert!(outcome.measure.counts.disconnects >= 8);
    }
}

#[test]
fn a_connection_that_is_reset_is_opened_again() {
    let server = Server::start(Behaviour::DropsEach { replies: 100 });
    let outcome = drive(&plan(server.address(), Some(1_000.0), 2.0)).expect("it ran");
    assert_eq!(outcome.end, End::Complete);
    let counts = outcome.measure.counts;
    assert!(counts.reconnects >= 10, "{counts:?}");
    let lost = outcome.measure.kinds[0].lost;
    assert_eq!(outcome.measure.right() + lost, 2_000, "{counts:?}");
}

#[test]
fn lost_connections_are_opened_again_at_the_same_time() {
    let server = Server::start(Behaviour::ComesBack { after: 0.3, seconds: 0.4 });
    let mut away = plan(server.address(), None, 2.0);
    away.limits.reconnect = Duration::from_secs(5);
    let counts = drive(&away).expect("it ran").measure.counts;
    // One after the other would take 3.2 s.
    assert_eq!((counts.disconnects, counts.reconnects), (8, 8));
}

#[test]
fn replies_that_are_not_of_the_protocol_end_the_run() {
    let server = Server::start(Behaviour::Babbles);
    let outcome = drive(&plan(server.address(), None, 5.0)).expect("it began");
    let End::Gone(reason) = &outcome.end else { panic!("{:?}", outcome.end) };
    assert!(reason.contains("is not redis"), "{reason}");
}

#[test]
fn errors_and_missing_keys_are_no_successes() {
    for (behaviour, missing) in [(Behaviour::Missing, true), (Behaviour::Refuses, false)] {
        let server = Server::start(behaviour);
        let counted = Plan { length: Length::Operations(100), ..plan(server.address(), None, 1.0) };
        let outcome = drive(&counted).expect("it ran");
        let kind = &outcome.measure.kinds[0];
        assert_eq!((kind.right, kind.latency.len()), (0, 0));
        assert_eq!((kind.missing, kind.errors), if missing { (100, 0) } else { (0, 100) });
        if !missing {
            assert_eq!(outcome.measure.errors[0].code.to_string(), "OOM");
            assert_eq!(outcome.measure.errors[0].message, "OOM no memory");
        }
    }
}

#[test]
fn a_silent_server_is_given_up() {
    let server = Server::start(Behaviour::Stops { after: 0.3, seconds: 60.0 });
    let mut silent = plan(server.address(), None, 30.0);
    silent.limits.reply = Duration::from_millis(300);
    silent.limits.connect = Duration::from_millis(300);
    let outcome = drive(&silent).expect("it began");
    assert!(matches!(&outcome.end, End::Gone(reason) if reason.contains("did not answer")));
}

#[test]
fn a_server_that_restarts_is_found_again_and_its_absence_shows() {
    let server = Server::start(Behaviour::Restarts { after: 0.5, seconds: 0.6 });
    let mut restarted = plan(server.address(), Some(1_000.0), 2.0);
    restarted.limits.reconnect = Duration::from_secs(5);
    let outcome = drive(&restarted).expect("it ran");
    assert_eq!(outcome.end, End::Complete);
    let counts = outcome.measure.counts;
    assert_eq!((counts.disconnects, counts.reconnects), (8, 8), "{counts:?}");
    let lost = outcome.measure.kinds[0].lost;
    assert_eq!((outcome.measure.right() + lost, counts.missed), (2_000, 0));
    let longest = Duration::from_nanos(outcome.measure.latency().max());
    assert!(longest >= Duration::from_millis(550), "{longest:?}");
}

#[test]
fn a_reset_is_a_loss_like_any_other() {
    let server = Server::start(Behaviour::ResetsEach { replies: 100 });
    let outcome = drive(&plan(server.address(), Some(1_000.0), 2.0)).expect("it ran");
    assert_eq!(outcome.end, End::Complete);
    let counts = outcome.measure.counts;
    assert!(counts.reconnects >= 10, "{counts:?}");
    assert_eq!(outcome.measure.right() + outcome.measure.kinds[0].lost, 2_000);
}

#[test]
fn a_server_that_reads_no_more_is_given_up_again_and_again() {
    let server = Server::start(Behaviour::ReadsNoMore);
    let text = "{format: 1, generators: {v: {text: {length: 65536}}}, operations: \
        [{name: set, steps: [{send: 'SET k {v}'}]}]}";
    let mut stuck = plan(server.address(), None, 1.0);
    stuck.workload = Arc::new(Job::parse(text, Dialect::Words).expect("a job"));
    stuck.depth = 64;
    stuck.limits.reply = Duration::from_millis(200);
    stuck.limits.drain = Duration::from_millis(200);
    let outcome = drive(&stuck).expect("it ran");
    assert_eq!((outcome.end, outcome.measure.right()), (End::Complete, 0));
    assert!(outcome.measure.kinds[0].lost >= 8 * 64);
    let [error, ..] = outcome.measure.errors.as_slice() else { panic!("one error is reported") };
    assert!(error.message.ends_with("the server did not answer within 0.2 s"), "{}", error.message);
}

#[test]
fn a_server_that_says_nothing_is_told_at_the_start() {
    let server = Server::start(Behaviour::Mute);
    let mut mute = plan(server.address(), None, 1.0);
    mute.limits.connect = Duration::from_millis(300);
    let error = drive(&mute).err().expect("refused").to_string();
    assert_eq!(error, format!("{}: the server did not answer within 0.3 s", server.address()));
}

#[test]
fn a_wrong_password_is_told_in_the_servers_words() {
    let server = Server::start(Behaviour::RefusesLogIn);
    let mut wrong = plan(server.address(), None, 1.0);
    wrong.access.password = Some("wrong".to_owned());
    let error = drive(&wrong).err().expect("refused");
    assert_eq!(
        (error.to_string(), error.exit_code()),
        (
            format!(
                "{}: the server refused the log-in: WRONGPASS invalid username-password pair",
                server.address()
            ),
            3
        )
    );
}

#[test]
fn a_disk_that_is_full_is_counted_and_told_once() {
    let server = Server::start(Behaviour::DiskFull);
    let full = Plan { length: Length::Operations(100), ..plan(server.address(), None, 1.0) };
    let outcome = drive(&full).expect("it ran");
    assert_eq!((outcome.measure.kinds[0].errors, outcome.measure.right()), (100, 0));
    let [error] = outcome.measure.errors.as_slice() else { panic!("one sentence") };
    assert_eq!((error.code.to_string().as_str(), error.count), ("MISCONF", 100));
    assert!(error.message.ends_with("No space left on device"), "{}", error.message);
}

#[test]
fn one_connection_a_thread_sees_a_server_that_goes_and_one_that_is_silent() {
    let server = Server::start(Behaviour::Ends { after: 0.5 });
    let alone = Plan { connections: 2, threads: 2, ..plan(server.address(), None, 30.0) };
    let outcome = drive(&alone).expect("it began");
    assert!(matches!(&outcome.end, End::Gone(reason) if reason.contains("refused")));
    assert!(outcome.measure.right() > 100, "{}", outcome.measure.right());

    let server = Server::start(Behaviour::Stops { after: 0.2, seconds: 60.0 });
    let mut silent = Plan { connections: 1, ..plan(server.address(), None, 30.0) };
    silent.limits.reply = Duration::from_millis(300);
    silent.limits.connect = Duration::from_millis(300);
    let outcome = drive(&silent).expect("it began");
    assert!(matches!(&outcome.end, End::Gone(reason) if reason.contains("did not answer")));
}

#[test]
fn operations_of_a_trace_are_sent_as_it_says() {
    let server = Server::start(Behaviour::Answers);
    let text = "{format: 1, operations: [{name: a, weight: 9, steps: [{send: GET k}]}, \
        {name: b, steps: [{send: GET k}]}]}";
    let mut replayed = plan(server.address(), None, 1.0);
    replayed.workload = Arc::new(Job::parse(text, Dialect::Words).expect("a job"));
    let times_ns = (0..200).map(|number| number * 1_000_000).collect();
    let kinds = (0..200).map(|number| u8::from(number % 4 != 0)).collect();
    replayed.arrivals = Some(Arrivals::Trace(Arc::new(Trace { times_ns, kinds })));
    let outcome = drive(&replayed).expect("it ran");
    let right: Vec<u64> = outcome.measure.kinds.iter().map(|kind| kind.right).collect();
    assert_eq!(right, [50, 150]);
}

#[test]
fn nobody_listens() {
    let address = Server::unused_address();
    match drive(&plan(address, None, 1.0)) {
        Err(LoadError::Connect { source: Fault::Refused, .. }) => {}
        other => panic!("{:?}", other.map(|outcome| outcome.end)),
    }
}

#[test]
fn a_number_of_operations_is_met_exactly() {
    let server = Server::start(Behaviour::Answers);
    for (rate, depth) in [(None, 1), (None, 16), (Some(5_000.0), 1)] {
        let length = Length::Operations(1_003);
        let counted = Plan { length, depth, threads: 2, ..plan(server.address(), rate, 1.0) };
        let outcome = drive(&counted).expect("it ran");
        assert_eq!(outcome.measure.right(), 1_003);
        assert_eq!(server.take_requests(), 1_003 + 8, "and 8 PINGs");
    }
}

#[test]
fn the_warm_up_counts_for_itself() {
    let server = Server::start(Behaviour::Answers);
    let warmed =
        Plan { warm_up: Duration::from_millis(500), ..plan(server.address(), Some(2_000.0), 1.0) };
    let outcome = drive(&warmed).expect("it ran");
    let counts = &outcome.measure.counts;
    assert_eq!((outcome.measure.right(), counts.scheduled), (2_000, 2_000));
    assert_eq!(outcome.warm_up.right() + counts.late_warm_up, 1_000);
}
