//! Schedule of ticks: absolute deadlines on a fixed grid; missed ones are counted.

/// Deadlines `start + n × period`.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    start_ns: u64,
    period_ns: u64,
    next: u64,
}

/// A tick that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub tick: u64,
    pub deadline_ns: u64,
    /// Missed ticks before this one.
    pub missed: u64,
}

impl Schedule {
    #[must_use]
    pub fn new(start_ns: u64, period_ns: u64) -> Self {
        Self { start_ns, period_ns: period_ns.max(1), next: 0 }
    }

    /// Deadline of the next tick.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        self.start_ns + self.next * self.period_ns
    }

    /// Tick that is due at `now`; `None` before its deadline.
    ///
    /// A late tick is served if the next deadline has not passed. If several deadlines have passed,
    /// the last one is served and the others are missed: several readings at the same time would
    /// not show what happened between these deadlines.
    pub fn take(&mut self, now_ns: u64) -> Option<Due> {
        let passed_ns = now_ns.checked_sub(self.deadline_ns())?;
        let missed = passed_ns / self.period_ns;
        let tick = self.next + missed;
        self.next = tick + 1;
        Some(Due { tick, deadline_ns: self.start_ns + tick * self.period_ns, missed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_due_before_its_deadline() {
        let mut schedule = Schedule::new(1000, 10);
        assert_eq!(schedule.take(999), None);
        assert_eq!(schedule.take(1000), Some(Due { tick: 0, deadline_ns: 1000, missed: 0 }));
        assert_eq!(schedule.deadline_ns(), 1010);
    }

    #[test]
    fn a_late_tick_is_served_and_does_not_shift_the_grid() {
        let mut schedule = Schedule::new(1000, 10);
        schedule.take(1009);
        assert_eq!(schedule.take(1012), Some(Due { tick: 1, deadline_ns: 1010, missed: 0 }));
    }

    #[test]
    fn passed_deadlines_are_counted_not_caught_up() {
        let mut schedule = Schedule::new(1000, 10);
        schedule.take(1000);
        assert_eq!(schedule.take(1047), Some(Due { tick: 4, deadline_ns: 1040, missed: 3 }));
        assert_eq!(schedule.deadline_ns(), 1050);
    }

    #[test]
    fn served_and_missed_ticks_add_up_to_the_grid() {
        let mut schedule = Schedule::new(0, 7);
        let (mut served, mut missed, mut last) = (0, 0, 0);
        for now in (0..10_000).step_by(23) {
            while let Some(due) = schedule.take(now) {
                served += 1;
                missed += due.missed;
                last = due.tick;
            }
        }
        assert_eq!(served + missed, last + 1);
    }
}
