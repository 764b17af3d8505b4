//! Arrivals of an open loop: when requests are meant to be sent, independent of the server's replies.
//!
//! A schedule is a sequence of times that follows from a seed, without clocks or connections.

mod stages;
mod trace;

use std::sync::Arc;

use crate::random::Random;
pub use stages::{Stage, Stages};
pub use trace::{Trace, read_trace};

/// The arrivals that a run was asked for.
#[derive(Clone, Debug)]
pub enum Arrivals {
    Rate { stages: Stages, spacing: Spacing },
    Trace(Arc<Trace>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// At equal distances.
    Even,
    /// Of independent users: the gaps are exponential.
    Poisson,
}

/// The arrivals of one of `shares` threads, as nanoseconds from the start of the measurement's schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    source: Source,
    next_ns: Option<u64>,
    next_kind: Option<u8>,
}

#[derive(Clone, Debug)]
enum Source {
    Even { stages: Stages, next: u64, step: u64 },
    Poisson { stages: Stages, expected: f64, share: f64, random: Random },
    Trace { trace: Arc<Trace>, next: usize, step: usize },
}

impl Schedule {
    #[must_use]
    pub fn new(arrivals: &Arrivals, share: usize, shares: usize, seed: u64) -> Self {
        let source = match arrivals {
            Arrivals::Rate { stages, spacing: Spacing::Even } => {
                Source::Even { stages: stages.clone(), next: share as u64, step: shares as u64 }
            }
            #[allow(clippy::cast_precision_loss)] // a number of threads
            Arrivals::Rate { stages, spacing: Spacing::Poisson } => Source::Poisson {
                stages: stages.clone(),
                expected: 0.0,
                share: shares as f64,
                random: Random::of(seed, u64::MAX, share as u64),
            },
            Arrivals::Trace(trace) => {
                Source::Trace { trace: Arc::clone(trace), next: share, step: shares }
            }
        };
        let mut schedule = Self { source, next_ns: None, next_kind: None };
        schedule.advance();
        schedule
    }

    /// Next arrival; `None` after the last of a trace.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// Kind of its operation, if a trace has kinds.
    #[must_use]
    pub fn next_kind(&self) -> Option<u8> {
        self.next_kind
    }

    pub fn advance(&mut self) {
        self.next_ns = match &mut self.source {
            #[allow(clippy::cast_precision_loss)] // 2^53 arrivals
            Source::Even { stages, next, step } => {
                let arrival = *next as f64;
                *next += *step;
                stages.time_of(arrival)
            }
            Source::Poisson { stages, expected, share, random } => {
                *expected += random.exponential() * *share;
                stages.time_of(*expected)
            }
            Source::Trace { trace, next, step } => {
                let arrival = trace.times_ns.get(*next).copied();
                self.next_kind = trace.kinds.get(*next).copied();
                *next += *step;
                arrival
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: &Arrivals, share: usize, shares: usize, until_ns: u64) -> Vec<u64> {
        let mut schedule = Schedule::new(arrivals, share, shares, 1);
        let mut times = Vec::new();
        while let Some(next) = schedule.next_ns().filter(|&next| next < until_ns) {
            times.push(next);
            schedule.advance();
        }
        times
    }

    fn rate(per_s: f64, spacing: Spacing) -> Arrivals {
        Arrivals::Rate { stages: Stages::constant(per_s), spacing }
    }

    #[test]
    fn an_even_schedule_does_not_drift() {
        let found = times(&rate(3_000.0, Spacing::Even), 0, 1, 100_000_000_000);
        assert_eq!(found.len(), 300_000);
        assert_eq!(&found[..4], &[0, 333_333, 666_667, 1_000_000]);
        assert_eq!(found[299_997], 99_999_000_000);
    }

    #[test]
    fn threads_share_one_schedule() {
        let whole = times(&rate(1_000.0, Spacing::Even), 0, 1, 1_000_000_000);
        let mut shared = times(&rate(1_000.0, Spacing::Even), 0, 2, 1_000_000_000);
        shared.extend(times(&rate(1_000.0, Spacing::Even), 1, 2, 1_000_000_000));
        shared.sort_unstable();
        assert_eq!(shared, whole);
    }

    #[test]
    fn poisson_gaps_vary_as_much_as_they_last() {
        let second = 1_000_000_000;
        for shares in [1, 4] {
            let found = times(&rate(10_000.0, Spacing::Poisson), 0, shares, 40 * second);
            let expected = 400_000 / shares;
            assert!(found.len().abs_diff(expected) < 5 * expected.isqrt(), "{}", found.len());
            let gaps: Vec<f64> =
                found.windows(2).map(|pair| ((pair[1] - pair[0]) as u32).into()).collect();
            let count = f64::from(gaps.len() as u32);
            let mean = gaps.iter().sum::<f64>() / count;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
            assert!((0.97..1.03).contains(&(variance.sqrt() / mean)));
        }
    }

    #[test]
    fn a_trace_ends() {
        let trace = Trace { times_ns: vec![5, 10, 10, 40], kinds: Vec::new() };
        assert_eq!(times(&Arrivals::Trace(Arc::new(trace)), 1, 2, 100), [10, 40]);
    }

    #[test]
    fn kinds_of_a_trace_come_with_its_times() {
        let trace = Trace { times_ns: vec![5, 10, 10, 40], kinds: vec![0, 1, 0, 2] };
        let mut schedule = Schedule::new(&Arrivals::Trace(Arc::new(trace)), 1, 2, 1);
        assert_eq!((schedule.next_ns(), schedule.next_kind()), (Some(10), Some(1)));
        schedule.advance();
        assert_eq!((schedule.next_ns(), schedule.next_kind()), (Some(40), Some(2)));
    }
}
