//! Figures of one window of one thread, which can be added up over threads and windows.

use super::{Latencies, Parts, Split, Usage, latencies};
use crate::error::plain;
use crate::protocol::{Label, Reply, Status};
use crate::workload::Expect;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    WarmUp,
    Measure,
    /// After the last arrival, for operations that have not ended.
    Drain,
}

impl Phase {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::Measure => "measure",
            Self::Drain => "drain",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Window {
    pub phase: Phase,
    /// Number in its phase, from 0.
    pub index: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Time of the window in which operations count; `None`: all of it.
    pub driven_ns: Option<u64>,
    pub kinds: Vec<KindWindow>,
    pub lag: Latencies,
    pub waiting: Latencies,
    pub unread: Latencies,
    pub split: Split,
    pub counts: Counts,
    /// Connections opened during the run, and attempts that failed; not among [`Self::right`] and [`Self::failed`].
    pub connect: KindWindow,
    pub usage: Usage,
    pub errors: Vec<ErrorCount>,
}

/// Operations of one kind that ended in the window.
#[derive(Clone, Debug)]
pub struct KindWindow {
    /// From the intended time. Of right replies, and of lost ones, which count at least the limit of a reply.
    pub latency: Latencies,
    /// From the actual send; empty in a closed loop, where both are equal.
    pub service: Latencies,
    pub right: u64,
    pub missing: u64,
    pub short: u64,
    pub wrong: u64,
    pub errors: u64,
    pub lost: u64,
}

/// Counts over all kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Arrivals with an intended time in the window.
    pub scheduled: u64,
    /// Arrivals among them that were not sent, as too many were waiting.
    pub missed: u64,
    /// Operations with a right reply in the window, those of the warm-up too; none after the end of the phase.
    /// Throughput is theirs: leaving out what is under way at a phase's beginning would favour fast replies.
    pub completed: u64,
    /// Requests sent before the end of the phase.
    pub requests: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Operations of the warm-up that ended after it; they are not counted elsewhere.
    pub late_warm_up: u64,
    /// Operations of the measurement that were sent while a turn settled; they are not counted elsewhere.
    pub settling: u64,
    /// Operations that had not ended at the end of the run.
    pub unfinished: u64,
    /// How often an operation was begun again after an error.
    pub retries: u64,
    pub disconnects: u64,
    pub reconnects: u64,
}

/// Codes of errors that are told apart in a window; each kind of operation may add [`OTHER_CODES`] to them.
const MOST_CODES: usize = 128;
const OTHER_CODES: &[u8] = b"other";

#[derive(Clone, Debug)]
pub struct ErrorCount {
    pub kind: u8,
    pub code: Label,
    pub count: u64,
    /// First message of the server.
    pub message: String,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Right,
    Missing,
    Short,
    Wrong,
    Error(Label),
    /// The connection was lost, or the reply took longer than its limit.
    Lost,
}

impl Outcome {
    /// Whether its time counts: without that of lost ones, a server would be faster the more it loses.
    #[must_use]
    pub fn has_time(self) -> bool {
        matches!(self, Self::Right | Self::Lost)
    }

    /// Outcome of a reply, compared with the expectation.
    #[must_use]
    pub fn of(reply: &Reply, expect: &Expect) -> Self {
        match reply.status {
            Status::Error(code) => Self::Error(code),
            Status::Missing => {
                if expect.may_miss {
                    Self::Right
                } else {
                    Self::Missing
                }
            }
            Status::Done if reply.rows < expect.rows && !expect.may_miss => {
                if reply.rows == 0 {
                    Self::Missing
                } else {
                    Self::Short
                }
            }
            Status::Done if reply.bytes < u64::from(expect.bytes) => Self::Short,
            Status::Done if expect.number.is_some_and(|number| number != reply.number) => {
                Self::Missing
            }
            Status::Done if expect.contents.is_some_and(|sum| sum != reply.contents) => Self::Wrong,
            Status::Done => Self::Right,
        }
    }
}

impl KindWindow {
    fn new() -> Self {
        let (right, missing, short, wrong, errors, lost) = (0, 0, 0, 0, 0, 0);
        let (latency, service) = (latencies(), latencies());
        Self { latency, service, right, missing, short, wrong, errors, lost }
    }

    fn clear(&mut self) {
        self.latency.reset();
        self.service.reset();
        (self.right, self.missing, self.short) = (0, 0, 0);
        (self.wrong, self.errors, self.lost) = (0, 0, 0);
    }

    /// Counts an operation that ended.
    pub fn end(&mut self, outcome: Outcome, latency_ns: u64, service_ns: Option<u64>) {
        if outcome.has_time() {
            self.latency.saturating_record(latency_ns);
            if let Some(service_ns) = service_ns {
                self.service.saturating_record(service_ns);
            }
        }
        match outcome {
            Outcome::Right => self.right += 1,
            Outcome::Lost => self.lost += 1,
            Outcome::Missing => self.missing += 1,
            Outcome::Short => self.short += 1,
            Outcome::Wrong => self.wrong += 1,
            Outcome::Error(_) => self.errors += 1,
        }
    }

    /// All operations that ended, with any outcome.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.right + self.failed()
    }

    #[must_use]
    pub fn failed(&self) -> u64 {
        self.missing + self.short + self.wrong + self.errors + self.lost
    }

    fn merge(&mut self, other: &Self) {
        add(&mut self.latency, &other.latency);
        add(&mut self.service, &other.service);
        self.right += other.right;
        self.missing += other.missing;
        self.short += other.short;
        self.wrong += other.wrong;
        self.errors += other.errors;
        self.lost += other.lost;
    }
}

/// Adds a histogram with equal bounds, which cannot fail.
fn add(to: &mut Latencies, from: &Latencies) {
    if !from.is_empty() {
        to.add(from).unwrap_or_else(|error| unreachable!("equal bounds: {error}"));
    }
}

impl Window {
    #[must_use]
    pub fn new(kinds: usize) -> Self {
        Self {
            phase: Phase::WarmUp,
            index: 0,
            start_ns: 0,
            end_ns: 0,
            driven_ns: None,
            kinds: (0..kinds).map(|_| KindWindow::new()).collect(),
            lag: latencies(),
            waiting: latencies(),
            unread: latencies(),
            split: Split::default(),
            counts: Counts::default(),
            connect: KindWindow::new(),
            usage: Usage::default(),
            errors: Vec::new(),
        }
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        for kind in &mut self.kinds {
            kind.clear();
        }
        self.connect.clear();
        for one in [&mut self.lag, &mut self.waiting, &mut self.unread] {
            one.reset();
        }
        self.split.clear();
        self.counts = Counts::default();
        self.usage = Usage::default();
        self.errors.clear();
    }

    /// Counts an operation that ended.
    pub fn end(&mut self, kind: u8, outcome: Outcome, latency_ns: u64, service_ns: Option<u64>) {
        self.kinds[usize::from(kind)].end(outcome, latency_ns, service_ns);
    }

    pub fn error(&mut self, kind: u8, code: Label, message: &str) {
        self.count(kind, code, 1, message);
    }

    /// Errors of more codes than a server has in earnest are counted together.
    fn count(&mut self, kind: u8, code: Label, count: u64, message: &str) {
        let same = |error: &&mut ErrorCount| error.kind == kind && error.code == code;
        if let Some(error) = self.errors.iter_mut().find(same) {
            error.count += count;
        } else if self.errors.len() < MOST_CODES || code == Label::new(OTHER_CODES) {
            self.errors.push(ErrorCount { kind, code, count, message: plain(message) });
        } else {
            self.count(kind, Label::new(OTHER_CODES), count, "errors of other codes");
        }
    }

    pub fn parts(&mut self, parts: &Parts) {
        self.unread.saturating_record(parts.unread_ns);
        self.split.record(parts);
    }

    /// Adds the figures of another thread or window, without phase and times.
    pub fn merge(&mut self, other: &Self) {
        for (kind, more) in self.kinds.iter_mut().zip(&other.kinds) {
            kind.merge(more);
        }
        add(&mut self.lag, &other.lag);
        add(&mut self.waiting, &other.waiting);
        add(&mut self.unread, &other.unread);
        self.connect.merge(&other.connect);
        self.split.merge(&other.split);
        self.usage.add(&other.usage);
        let (counts, more) = (&mut self.counts, &other.counts);
        counts.scheduled += more.scheduled;
        counts.missed += more.missed;
        counts.completed += more.completed;
        counts.requests += more.requests;
        counts.bytes_sent += more.bytes_sent;
        counts.bytes_received += more.bytes_received;
        counts.late_warm_up += more.late_warm_up;
        counts.settling += more.settling;
        counts.unfinished += more.unfinished;
        counts.retries += more.retries;
        counts.disconnects += more.disconnects;
        counts.reconnects += more.reconnects;
        for error in &other.errors {
            self.count(error.kind, error.code, error.count, &error.message);
        }
    }

    #[must_use]
    pub fn right(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.right).sum()
    }

    #[must_use]
    pub fn failed(&self) -> u64 {
        self.kinds.iter().map(KindWindow::failed).sum()
    }

    /// Latencies of all kinds together.
    #[must_use]
    pub fn latency(&self) -> Latencies {
        let mut all = latencies();
        self.kinds.iter().for_each(|kind| add(&mut all, &kind.latency));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: Reply =
        Reply { slot: 0, status: Status::Done, rows: 2, bytes: 20, contents: 7, number: 0 };

    #[test]
    fn a_reply_is_right_only_if_it_has_what_was_expected() {
        let expect = Expect { rows: 2, bytes: 20, contents: Some(7), ..Expect::default() };
        assert_eq!(Outcome::of(&REPLY, &expect), Outcome::Right);
        assert_eq!(Outcome::of(&Reply { rows: 1, ..REPLY }, &expect), Outcome::Short);
        assert_eq!(Outcome::of(&Reply { rows: 0, ..REPLY }, &expect), Outcome::Missing);
        assert_eq!(Outcome::of(&Reply { bytes: 19, ..REPLY }, &expect), Outcome::Short);
        assert_eq!(Outcome::of(&Reply { contents: 8, ..REPLY }, &expect), Outcome::Wrong);
        let changed = Expect { number: Some(0), ..Expect::default() };
        assert_eq!(Outcome::of(&REPLY, &changed), Outcome::Right);
        assert_eq!(Outcome::of(&Reply { number: 1, ..REPLY }, &changed), Outcome::Missing);
        let nil = Reply { status: Status::Missing, rows: 0, ..REPLY };
        assert_eq!(Outcome::of(&nil, &expect), Outcome::Missing);
        assert_eq!(Outcome::of(&nil, &Expect { may_miss: true, ..expect }), Outcome::Right);
    }

    #[test]
    fn failures_have_no_latency_but_losses() {
        let mut window = Window::new(1);
        window.end(0, Outcome::Right, 1_000, Some(900));
        window.end(0, Outcome::Missing, 10, Some(10));
        window.end(0, Outcome::Error(Label::new(b"ERR")), 10, Some(10));
        let kind = &window.kinds[0];
        assert_eq!((kind.ended(), kind.failed(), kind.latency.len()), (3, 2, 1));
        window.end(0, Outcome::Lost, 10_000_000_000, Some(10_000_000_000));
        let kind = &window.kinds[0];
        assert_eq!((kind.lost, kind.latency.len(), kind.service.len()), (1, 2, 2));
        assert!(kind.latency.equivalent(kind.latency.max(), 10_000_000_000));
    }

    #[test]
    fn errors_of_very_many_codes_are_counted_and_not_all_kept() {
        let (mut first, mut second) = (Window::new(2), Window::new(2));
        for number in 0..10_000 {
            first.error(0, Label::number(number), "no\x1b");
            second.error(1, Label::number(number), "no\x1b");
        }
        assert_eq!((first.errors.len(), second.errors.len()), (MOST_CODES + 1, MOST_CODES + 1));
        first.merge(&second);
        assert_eq!(first.errors.len(), MOST_CODES + 2);
        assert_eq!(first.errors.iter().map(|error| error.count).sum::<u64>(), 20_000);
        assert_eq!(first.errors[0].message, "no\u{fffd}");
    }

    #[test]
    fn figures_of_threads_add_up() {
        let (mut first, mut second) = (Window::new(1), Window::new(1));
        first.end(0, Outcome::Right, 1_000, None);
        second.end(0, Outcome::Right, 3_000, None);
        second.error(0, Label::new(b"ERR"), "ERR no");
        first.merge(&second);
        assert_eq!(first.right(), 2);
        assert_eq!(first.latency().len(), 2);
        assert_eq!(first.errors[0].message, "ERR no");
    }
}
