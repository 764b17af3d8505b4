//! Operations that decide after each reply how they go on: pauses, values of replies, other tries, and users who think.

mod server;

use std::sync::Arc;
use std::time::Duration;

use server::plan::{drive, plan};
use server::{Behaviour, Server};
use tare_load::drive::Outcome;
use tare_load::plan::{Length, Plan};
use tare_load::protocol::{Access, Statement, Status, Values};
use tare_load::workload::{
    Answer, Datum, Expect, Memory, Next, Operation, Request, Stream, Workload,
};

/// Reads, pauses, and reads again if the first reply had a value; begins again after an error.
struct Flow {
    kinds: [String; 1],
    statements: [Statement; 1],
    pause: Duration,
    think: Duration,
    most_retries: u32,
}

impl Workload for Flow {
    fn kinds(&self) -> &[String] {
        &self.kinds
    }
    fn statements(&self) -> &[Statement] {
        &self.statements
    }
    fn has_steps(&self) -> bool {
        true
    }
    fn has_flow(&self) -> bool {
        true
    }
    fn draw(&self, stream: &mut Stream) -> Operation {
        Operation { kind: 0, step: 0, key: 0, random: stream.next_random() }
    }
    fn next(&self, _: &mut Operation, memory: &mut Memory, answer: Option<Answer<'_>>) -> Next {
        let Some(Answer { status, rows }) = answer else { return Next::Request };
        memory.at += 1;
        match status {
            Status::Error(_) if memory.retries < self.most_retries => return Next::Again,
            Status::Error(_) => return Next::End,
            Status::Done | Status::Missing => {}
        }
        let value = rows.and_then(|rows| rows.text(0, 0)).unwrap_or_default().to_vec();
        match (memory.at, memory.data.first()) {
            (1, None) if !value.is_empty() => {
                memory.data.push(Datum::Text(value));
                Next::Pause(self.pause)
            }
            (2, Some(Datum::Text(first))) if *first == value => Next::End,
            _ => Next::Fail("the replies differ"),
        }
    }
    fn request(&self, _: &mut Operation, _: &mut Values) -> Request {
        Request { statement: 0, expect: Expect::default(), last: false }
    }
    fn think(&self, _: &Operation) -> Duration {
        self.think
    }
}

fn flow(pause: f64, think: f64, most_retries: u32) -> Flow {
    Flow {
        kinds: ["flow".to_owned()],
        statements: [Statement { text: "GET k".to_owned(), ..Statement::default() }],
        pause: Duration::from_secs_f64(pause),
        think: Duration::from_secs_f64(think),
        most_retries,
    }
}

fn run(behaviour: Behaviour, flow: Flow, of: impl FnOnce(&mut Plan)) -> Outcome {
    let server = Server::start(behaviour);
    let mut plan = Plan {
        workload: Arc::new(flow),
        access: Access { keeps_rows: true, ..Access::default() },
        connections: 4,
        length: Length::Operations(40),
        ..plan(server.address(), None, 1.0)
    };
    of(&mut plan);
    drive(&plan).expect("it ran")
}

#[test]
fn an_operation_pauses_and_uses_what_a_reply_says() {
    let outcome = run(Behaviour::Answers, flow(0.02, 0.0, 0), |_| {});
    let measure = &outcome.measure;
    assert_eq!((measure.right(), measure.failed(), measure.counts.requests), (40, 0, 80));
    assert!(measure.latency().min() >= 20_000_000, "a pause counts towards the latency");
}

#[test]
fn arrivals_go_to_connections_that_do_not_pause() {
    let outcome = run(Behaviour::Answers, flow(0.1, 0.0, 0), |plan| {
        *plan = Plan {
            connections: 40,
            arrivals: server::plan::plan(String::new(), Some(200.0), 1.0).arrivals,
            ..plan.clone()
        };
    });
    let measure = &outcome.measure;
    assert_eq!((measure.right(), measure.failed(), measure.counts.missed), (40, 0, 0));
}

#[test]
fn a_connection_waits_while_its_user_thinks() {
    let outcome = run(Behaviour::Answers, flow(0.0, 0.05, 0), |plan| {
        plan.length = Length::Time(Duration::from_secs(1));
    });
    let ended = outcome.measure.right();
    assert!((4..=84).contains(&ended), "{ended}: each of four begins every 50 ms at most");
    let quick = outcome.measure.latency();
    assert!(quick.value_at_quantile(0.1) < 50_000_000, "thinking is no latency");
}

#[test]
fn an_operation_begins_again_and_its_errors_are_told() {
    let outcome = run(Behaviour::Refuses, flow(0.0, 0.0, 2), |_| {});
    let measure = &outcome.measure;
    assert_eq!((measure.kinds[0].errors, measure.right()), (40, 0));
    assert_eq!((measure.counts.retries, measure.errors[0].count), (80, 120));
}

#[test]
fn a_connection_that_is_lost_in_a_pause_ends_its_operation() {
    let outcome = run(Behaviour::DropsEach { replies: 1 }, flow(0.05, 0.0, 0), |_| {});
    let measure = &outcome.measure;
    assert_eq!((measure.kinds[0].lost, measure.right()), (40, 0));
    assert_eq!(measure.counts.unfinished, 0);
}
