//! Each figure is what its name says, against a server whose times are known.

mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use server::plan::{JOB, best_try, drive, holds, plan};
use server::{Behaviour, Server};
use tare_load::clock::monotonic_ns;
use tare_load::drive::{Progress, run};
use tare_load::plan::{Length, Plan};
use tare_load::protocol::resp::Resp;
use tare_load::protocol::{Statement, Values};
use tare_load::workload::job::{Dialect, Job};
use tare_load::workload::{Operation, Request, Stream, Workload};

#[test]
fn one_connection_of_fifty_that_is_stuck_delays_only_what_it_has() {
    best_try(|| {
        let server = Server::start(Behaviour::StopsOne { after: 1.0, seconds: 2.0 });
        let wide = Plan { connections: 50, ..plan(server.address(), Some(1_000.0), 4.0) };
        let outcome = drive(&wide).expect("it ran");
        let latency = outcome.measure.latency();
        assert_eq!((latency.len(), outcome.measure.counts.missed), (4_000, 0));
        let slow = latency.count_between(500_000_000, 10_000_000_000);
        let longest = Duration::from_nanos(latency.max()).as_secs_f64();
        holds(slow == 1 && (longest - 2.0).abs() < 0.04, || {
            format!("{slow} of 0.5 s or more, truth 1; {longest} s, truth 2 s")
        })
    });
}

/// As [`JOB`], but the thread that draws it stops once for so long, as if it had no CPU.
struct Stops {
    job: Job,
    seconds: f64,
    drawn: AtomicU64,
}

impl Workload for Stops {
    fn kinds(&self) -> &[String] {
        self.job.kinds()
    }
    fn statements(&self) -> &[Statement] {
        self.job.statements()
    }
    fn has_steps(&self) -> bool {
        self.job.has_steps()
    }
    fn draw(&self, stream: &mut Stream) -> Operation {
        if self.drawn.fetch_add(1, Ordering::Relaxed) == 500 {
            std::thread::sleep(Duration::from_secs_f64(self.seconds));
        }
        self.job.draw(stream)
    }
    fn request(&self, operation: &mut Operation, values: &mut Values) -> Request {
        self.job.request(operation, values)
    }
}

#[test]
fn a_stop_of_the_client_is_its_lag_and_no_waiting_across_the_ends_of_windows() {
    let server = Server::start(Behaviour::Answers);
    best_try(|| {
        let job = Job::parse(JOB, Dialect::Words).expect("a job");
        let stops = Stops { job, seconds: 0.5, drawn: AtomicU64::new(0) };
        let stopped = Plan {
            workload: Arc::new(stops),
            window: Duration::from_millis(50),
            ..plan(server.address(), Some(1_000.0), 2.0)
        };
        let measure = drive(&stopped).expect("it ran").measure;
        assert_eq!((measure.latency().len(), measure.lag.len()), (2_000, 2_000));
        let late = measure.lag.count_between(100_000_000, 1_000_000_000);
        let waiting = Duration::from_nanos(measure.waiting.max());
        // The server answers at once.
        holds((390..=520).contains(&late) && waiting < Duration::from_millis(200), || {
            format!("{late} of 400 arrivals were 0.1 to 0.5 s late; {waiting:?} of waiting")
        })
    });
}

#[test]
fn arrivals_that_may_wait_are_of_all_connections_together() {
    let server = Server::start(Behaviour::Stops { after: 0.2, seconds: 60.0 });
    let mut bounded = Plan { most_waiting: 3, ..plan(server.address(), Some(1_000.0), 1.0) };
    bounded.limits.drain = Duration::ZERO;
    let counts = drive(&bounded).expect("it ran").measure.counts;
    assert_eq!(counts.scheduled, 1_000);
    assert_eq!(counts.unfinished, 8 + 3, "one on each connection, and three that wait");
}

#[test]
fn each_window_is_told_once_however_early_a_thread_ends() {
    let server = Server::start(Behaviour::StopsOne { after: 0.0, seconds: 0.3 });
    let counted = Plan {
        length: Length::Operations(800),
        threads: 2,
        window: Duration::from_millis(20),
        ..plan(server.address(), None, 1.0)
    };
    let mut told = Vec::new();
    let outcome = run::<Resp>(&counted, &AtomicBool::new(false), &mut |progress| {
        if let Progress::Window(window) = progress {
            told.push((window.phase, window.index, window.right()));
        }
        Ok(())
    });
    assert_eq!(outcome.expect("it ran").measure.right(), 800);
    let indices: Vec<u32> = told.iter().map(|&(_, index, _)| index).collect();
    assert_eq!(indices, (0..indices.len() as u32).collect::<Vec<_>>());
    assert!(indices.len() >= 15, "{indices:?}");
    assert_eq!(told.iter().map(|&(_, _, right)| right).sum::<u64>(), 800);
}

#[test]
fn a_window_ends_in_time_where_nothing_else_happens() {
    let server = Server::start(Behaviour::Stops { after: 0.1, seconds: 0.3 });
    let short = Plan { window: Duration::from_millis(10), ..plan(server.address(), None, 0.5) };
    best_try(|| {
        let mut late = Vec::new();
        run::<Resp>(&short, &AtomicBool::new(false), &mut |progress| {
            if let Progress::Window(window) = progress {
                late.push(monotonic_ns() - window.end_ns);
            }
            Ok(())
        })
        .expect("it ran");
        late.sort_unstable();
        let middle = late[late.len() / 2];
        holds(middle < 20_000_000, || format!("half of them after {middle} ns"))
    });
}

#[test]
fn throughput_counts_replies_within_the_phase_whenever_they_were_asked_for() {
    best_try(|| {
        let server = Server::start(Behaviour::Takes { seconds: 0.4 });
        let warm_up = Duration::from_millis(600);
        let outcome =
            drive(&Plan { warm_up, ..plan(server.address(), None, 1.6) }).expect("it ran");
        let counts = &outcome.measure.counts;
        // Of each connection, those that end 0.8, 1.2, 1.6 and 2.0 s after the start; the first began in the warm-up.
        // Right is without the first, and with the one that ended last.
        let found =
            (counts.completed, counts.late_warm_up, outcome.measure.right(), counts.requests);
        if found != (32, 8, 32, 32) {
            return Err(format!("{found:?}"));
        }
        assert_eq!(outcome.warm_up.counts.completed, 8);
        Ok(())
    });
}

#[test]
fn a_lost_request_counts_as_one_that_takes_as_long_as_the_limit() {
    for rate in [None, Some(2_000.0)] {
        let server = Server::start(Behaviour::ForgetsAfter { replies: 20 });
        let mut forgetting = plan(server.address(), rate, 2.0);
        forgetting.limits.reply = Duration::from_millis(300);
        let outcome = drive(&forgetting).expect("it ran");
        let kind = &outcome.measure.kinds[0];
        assert!(kind.lost * 20 <= kind.right && kind.lost * 40 > kind.right, "{kind:?}");
        let latency = outcome.measure.latency();
        assert_eq!(latency.len(), kind.right + kind.lost);
        assert!(
            latency.value_at_quantile(0.99) >= 300_000_000,
            "{}",
            latency.value_at_quantile(0.99)
        );
        if rate.is_some() {
            assert_eq!(kind.service.len(), latency.len());
            assert!(kind.service.value_at_quantile(0.99) >= 300_000_000);
        }
    }
}

#[test]
fn parts_are_those_of_the_requests_whose_latency_counts() {
    for (behaviour, counted) in [(Behaviour::Refuses, false), (Behaviour::Answers, true)] {
        let server = Server::start(behaviour);
        let sampled = Plan { receive_share: 1, ..plan(server.address(), Some(1_000.0), 0.5) };
        let measure = drive(&sampled).expect("it ran").measure;
        let all = if counted { 500 } else { 0 };
        assert_eq!((measure.lag.len(), measure.waiting.len()), (all, all));
        assert_eq!(measure.split.count() > 0, counted);
    }
}

#[test]
fn each_reply_of_a_sampled_read_is_sampled() {
    let server = Server::start(Behaviour::Answers);
    let mut piped = plan(server.address(), None, 0.5);
    (piped.depth, piped.connections, piped.receive_share) = (16, 1, 1);
    let measure = drive(&piped).expect("it ran").measure;
    // The kernel begins to stamp some time after it is asked to.
    assert!(
        measure.split.count() * 2 > measure.right(),
        "{} of {}",
        measure.split.count(),
        measure.right()
    );
}
