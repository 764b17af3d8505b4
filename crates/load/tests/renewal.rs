//! Connections that are closed after a number of requests: no request is lost, and connecting is timed for itself.

mod server;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use server::mongodb::{PING, mongodb};
use server::plan::{best_try, drive, plan};
use server::{Behaviour, Server};
use tare_load::drive::{End, run};
use tare_load::plan::{Length, Plan};
use tare_load::protocol::mongodb::Mongodb;
use tare_load::workload::job::{Dialect, Job};

#[test]
fn no_connection_has_more_requests_and_none_is_lost() {
    for (rate, depth, threads) in [(None, 1, 1), (None, 16, 2), (Some(5_000.0), 1, 1)] {
        let server = Server::start(Behaviour::Answers);
        let often = Plan {
            length: Length::Operations(1_000),
            depth,
            threads,
            requests_per_connection: Some(10),
            ..plan(server.address(), rate, 1.0)
        };
        let outcome = drive(&often).expect("it ran");
        assert_eq!((&outcome.end, outcome.measure.right()), (&End::Complete, 1_000));
        assert_eq!(outcome.measure.failed(), 0);
        assert_eq!(server.most_replies(), 10);
        let (connect, counts) = (&outcome.measure.connect, outcome.measure.counts);
        // The first 8 are opened before, and nobody waits for the last 8.
        assert!((84..=100).contains(&connect.right), "{}", connect.right);
        assert_eq!((connect.failed(), connect.latency.len()), (0, connect.right));
        assert_eq!((counts.disconnects, counts.reconnects), (0, 0));
    }
}

#[test]
fn one_connection_alone_is_renewed_too() {
    let server = Server::start(Behaviour::Answers);
    let alone = Plan {
        length: Length::Operations(100),
        connections: 1,
        requests_per_connection: Some(1),
        ..plan(server.address(), None, 1.0)
    };
    let outcome = drive(&alone).expect("it ran");
    assert_eq!((outcome.measure.right(), server.most_replies()), (100, 1));
    assert_eq!(outcome.measure.connect.right, 99);
}

#[test]
fn an_operation_that_has_begun_ends_on_its_connection() {
    let server = Server::start(Behaviour::Answers);
    let text = "{format: 1, requests_per_connection: 4, operations: [{name: three, \
        steps: [{send: GET k}, {send: GET k}, {send: GET k}]}]}";
    let job = Job::parse(text, Dialect::Words).expect("a job");
    assert_eq!(job.requests_per_connection, Some(4));
    let steps = Plan {
        length: Length::Operations(300),
        requests_per_connection: job.requests_per_connection,
        workload: Arc::new(job),
        ..plan(server.address(), None, 1.0)
    };
    let outcome = drive(&steps).expect("it ran");
    assert_eq!((outcome.measure.right(), server.most_replies()), (300, 6));
}

#[test]
fn connecting_has_its_own_latency_and_arrivals_wait_for_it() {
    best_try(|| {
        let server = Server::start(Behaviour::GreetsLate { seconds: 0.02 });
        let often = Plan { requests_per_connection: Some(1), ..plan(server.address(), None, 1.0) };
        let outcome = drive(&often).expect("it ran");
        let median = outcome.measure.connect.latency.value_at_quantile(0.5);
        assert!(median >= 20_000_000, "{median}");
        let request = outcome.measure.latency().value_at_quantile(0.5);
        if request > median / 2 {
            return Err(format!("closed loop: {median} ns to connect, {request} ns for a request"));
        }
        // Each of 8 connections can take a request in 20 ms, and 200 arrive in a second.
        let open = Plan {
            connections: 8,
            requests_per_connection: Some(1),
            ..plan(server.address(), Some(200.0), 1.0)
        };
        let outcome = drive(&open).expect("it ran");
        assert_eq!((outcome.measure.right(), outcome.measure.counts.missed), (200, 0));
        let scarce = Plan { connections: 2, ..open };
        let outcome = drive(&scarce).expect("it ran");
        let waiting = Duration::from_nanos(outcome.measure.waiting.max());
        assert!(waiting > Duration::from_millis(500), "100 a second can be sent: {waiting:?}");
        Ok(())
    });
}

#[test]
fn attempts_that_fail_are_counted() {
    let server = Server::start(Behaviour::Restarts { after: 0.3, seconds: 0.3 });
    let mut away = plan(server.address(), None, 1.0);
    away.requests_per_connection = Some(5);
    away.limits.reconnect = Duration::from_secs(5);
    let outcome = drive(&away).expect("it ran");
    assert_eq!(outcome.end, End::Complete);
    let connect = &outcome.measure.connect;
    assert!(connect.errors >= 8 && connect.right > 16, "{} {}", connect.errors, connect.right);
    let refused = outcome.measure.errors.iter().find(|error| error.code.to_string() == "refused");
    assert!(refused.is_some_and(|error| error.count >= 8), "{:?}", outcome.measure.errors);
}

#[test]
fn mongodbs_connections_are_renewed() {
    let often = Plan {
        length: Length::Operations(100),
        connections: 2,
        requests_per_connection: Some(10),
        workload: Arc::new(Job::parse(PING, Dialect::Json).expect("a job")),
        ..plan(mongodb(), None, 1.0)
    };
    let outcome = run::<Mongodb>(&often, &AtomicBool::new(false), &mut |_| Ok(())).expect("it ran");
    assert_eq!(outcome.measure.right(), 100, "{:?}", outcome.measure.errors);
    assert!(outcome.measure.connect.right >= 8, "{}", outcome.measure.connect.right);
}
