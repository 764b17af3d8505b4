//! Phases and windows of the run, on one absolute grid of times.

use super::turns::Turns;
use crate::arrivals::{Arrivals, Schedule, Stages};
use crate::measure::Phase;
use crate::plan::Plan;

/// Times of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeline {
    pub(super) start_ns: u64,
    /// End of the warm-up and start of the measurement.
    pub(super) mark_ns: u64,
    /// Nothing is scheduled from then on; `u64::MAX` if a number of operations ends the run.
    pub(super) end_ns: u64,
    pub(super) window_ns: u64,
}

/// A window of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) phase: Phase,
    pub(super) index: u32,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

impl Timeline {
    pub(super) fn first(&self) -> Span {
        if self.start_ns < self.mark_ns {
            self.span(Phase::WarmUp, 0, self.start_ns, self.mark_ns)
        } else {
            self.span(Phase::Measure, 0, self.mark_ns, self.end_ns)
        }
    }

    pub(super) fn after(&self, span: &Span) -> Span {
        match span.phase {
            Phase::WarmUp if span.end_ns == self.mark_ns => {
                self.span(Phase::Measure, 0, self.mark_ns, self.end_ns)
            }
            Phase::Measure if span.end_ns == self.end_ns => {
                self.span(Phase::Drain, 0, self.end_ns, u64::MAX)
            }
            Phase::WarmUp => self.span(span.phase, span.index + 1, span.end_ns, self.mark_ns),
            Phase::Measure => self.span(span.phase, span.index + 1, span.end_ns, self.end_ns),
            Phase::Drain => self.span(span.phase, span.index + 1, span.end_ns, u64::MAX),
        }
    }

    fn span(&self, phase: Phase, index: u32, start_ns: u64, last_ns: u64) -> Span {
        let end_ns = start_ns.saturating_add(self.window_ns).min(last_ns);
        Span { phase, index, start_ns, end_ns }
    }
}

/// Arrivals of one thread by the run's clock, first those of the warm-up.
#[derive(Debug)]
pub(super) struct Arriving<'a> {
    schedule: Schedule,
    /// If there are turns, the schedule's time passes in them only, from `from_turn` on.
    turns: Option<&'a Turns>,
    from_turn: usize,
    from_ns: u64,
    until_ns: u64,
    /// Schedule of the measurement, until it begins.
    then: Option<Schedule>,
    timeline: Timeline,
}

impl<'a> Arriving<'a> {
    /// `None` in a closed loop.
    pub(super) fn new(
        plan: &Plan,
        timeline: Timeline,
        turns: Option<&'a Turns>,
        share: usize,
    ) -> Option<Self> {
        let arrivals = plan.arrivals.as_ref()?;
        let schedule = Schedule::new(arrivals, share, plan.threads, plan.seed);
        let warm_up = match arrivals {
            // The first part of a trace is its warm-up.
            Arrivals::Trace(_) => None,
            Arrivals::Rate { stages, .. } if stages.first_per_s() == 0.0 => None,
            Arrivals::Rate { stages, spacing } => Some(Arrivals::Rate {
                stages: Stages::constant(stages.first_per_s()),
                spacing: *spacing,
            }),
        };
        let mut arriving = match warm_up.filter(|_| timeline.start_ns < timeline.mark_ns) {
            Some(warm_up) => Self {
                schedule: Schedule::new(&warm_up, share, plan.threads, !plan.seed),
                turns,
                from_turn: 0,
                from_ns: timeline.start_ns,
                until_ns: timeline.mark_ns,
                then: Some(schedule),
                timeline,
            },
            None => Self {
                schedule,
                turns,
                from_turn: turns.map_or(0, |turns| turns.warm_up),
                from_ns: match arrivals {
                    Arrivals::Trace(_) => timeline.start_ns,
                    Arrivals::Rate { .. } => timeline.mark_ns,
                },
                until_ns: timeline.end_ns,
                then: None,
                timeline,
            },
        };
        arriving.move_on();
        Some(arriving)
    }

    /// Next arrival; `None` after the last.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let passed_ns = self.schedule.next_ns()?;
        let next_ns = match self.turns {
            Some(turns) => turns.time_of(self.from_turn, passed_ns)?,
            None => self.from_ns.saturating_add(passed_ns),
        };
        (next_ns < self.until_ns).then_some(next_ns)
    }

    /// Kind of its operation, if a trace has kinds.
    pub(super) fn next_kind(&self) -> Option<u8> {
        self.schedule.next_kind()
    }

    /// Whether no arrival is left: a trace may end before the run does.
    pub(super) fn is_exhausted(&self) -> bool {
        self.then.is_none() && self.schedule.next_ns().is_none()
    }

    pub(super) fn advance(&mut self) {
        self.schedule.advance();
        self.move_on();
    }

    fn move_on(&mut self) {
        if self.next_ns().is_none()
            && let Some(schedule) = self.then.take()
        {
            self.schedule = schedule;
            self.from_turn = self.turns.map_or(0, |turns| turns.warm_up);
            self.from_ns = self.timeline.mark_ns;
            self.until_ns = self.timeline.end_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Phase::{Drain, Measure, WarmUp};
    use super::*;

    #[test]
    fn windows_cover_the_run_without_gaps() {
        let timeline = Timeline { start_ns: 100, mark_ns: 125, end_ns: 175, window_ns: 20 };
        let mut span = timeline.first();
        let mut found = Vec::new();
        for _ in 0..7 {
            found.push((span.phase, span.index, span.start_ns, span.end_ns));
            span = timeline.after(&span);
        }
        assert_eq!(
            found,
            [
                (WarmUp, 0, 100, 120),
                (WarmUp, 1, 120, 125),
                (Measure, 0, 125, 145),
                (Measure, 1, 145, 165),
                (Measure, 2, 165, 175),
                (Drain, 0, 175, 195),
                (Drain, 1, 195, 215),
            ]
        );
    }

    #[test]
    fn without_warm_up_the_measurement_is_first() {
        let timeline = Timeline { start_ns: 5, mark_ns: 5, end_ns: u64::MAX, window_ns: 10 };
        let first = timeline.first();
        assert_eq!((first.phase, first.end_ns), (Phase::Measure, 15));
    }
}
