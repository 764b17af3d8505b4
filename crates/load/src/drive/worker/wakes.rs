//! Choice between sleeping and polling before an arrival, by how late this machine wakes a sleeping thread.

use std::time::Duration;

/// Number of wake-ups that are remembered.
const REMEMBERED: usize = 256;
/// Number of wake-ups after which the slack is computed again.
const BETWEEN: usize = 32;
/// One of so many waits sleeps to its end, so that lateness is measured even if all others poll.
const WAITS_FOR_ONE: u32 = 256;
/// Lateness of wake-ups above which polling avoids it.
const TOLERATED_NS: u32 = 40_000;

/// Longest check of the sockets, which takes a few microseconds; for longer ones, others had the CPU.
const LONGEST_LOOK_NS: u64 = 20_000;

/// Part of a check that counts as polling. It took `took_ns`, and began `left_ns` before an arrival.
pub(super) fn polled_ns(took_ns: u64, left_ns: u64) -> u64 {
    took_ns.min(left_ns).min(LONGEST_LOOK_NS)
}

/// Lateness of the last wake-ups by a timer.
#[derive(Debug)]
pub(super) struct Wakes {
    late_ns: [u32; REMEMBERED],
    seen: usize,
    waits: u32,
    most_polled_ns: u32,
    /// How long before an arrival polling starts.
    slack_ns: u64,
}

impl Wakes {
    /// `most_polled`: limit for one arrival.
    pub(super) fn new(most_polled: Duration) -> Self {
        let most_polled_ns = u32::try_from(most_polled.as_nanos()).unwrap_or(u32::MAX);
        Self { late_ns: [0; REMEMBERED], seen: 0, waits: 0, most_polled_ns, slack_ns: 0 }
    }

    /// How long to sleep if an arrival is due in `left_ns`; 0: poll.
    pub(super) fn sleep_ns(&mut self, left_ns: u64) -> u64 {
        self.waits = self.waits.wrapping_add(1);
        if self.waits.is_multiple_of(WAITS_FOR_ONE) {
            return left_ns;
        }
        left_ns.saturating_sub(self.slack_ns)
    }

    /// Records how late a timer woke the thread.
    pub(super) fn saw(&mut self, late_ns: u64) {
        self.late_ns[self.seen % REMEMBERED] = u32::try_from(late_ns).unwrap_or(u32::MAX);
        self.seen += 1;
        if self.seen.is_multiple_of(BETWEEN) {
            self.slack_ns = self.slack().into();
        }
    }

    /// By how much the latest 2 % of wake-ups exceed the tolerated lateness. A CPU leaves its idle state within the
    /// limit. Threads that wake later waited for others that had the CPU, and polling would only take it from them.
    fn slack(&self) -> u32 {
        let mut late_ns = self.late_ns;
        let known = &mut late_ns[..self.seen.min(REMEMBERED)];
        let place = known.len() - 1 - known.len() / 50;
        let (_, &mut late_ns, _) = known.select_nth_unstable(place);
        let slack_ns = late_ns.saturating_sub(TOLERATED_NS);
        if slack_ns > self.most_polled_ns { 0 } else { slack_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(late_ns: impl IntoIterator<Item = u64>) -> Wakes {
        let mut wakes = Wakes::new(Duration::from_micros(160));
        late_ns.into_iter().for_each(|late_ns| wakes.saw(late_ns));
        wakes
    }

    #[test]
    fn the_last_stretch_is_polled_where_wake_ups_are_late() {
        let mut wakes = after([120_000; 256]);
        assert_eq!(wakes.sleep_ns(1_000_000), 920_000);
        assert_eq!(wakes.sleep_ns(50_000), 0);
    }

    #[test]
    fn nothing_is_polled_where_they_are_soon_enough() {
        let few_late = (0..256).map(|number| if number % 64 == 0 { 150_000 } else { 30_000 });
        assert_eq!(after(few_late).sleep_ns(50_000), 50_000);
        assert_eq!(after([]).sleep_ns(50_000), 50_000);
    }

    #[test]
    fn nothing_is_polled_where_others_have_the_cpu() {
        let often = (0..256).map(|number| if number % 16 == 0 { 3_000_000 } else { 70_000 });
        assert_eq!(after(often).sleep_ns(500_000), 500_000);
    }

    #[test]
    fn time_in_which_others_had_the_cpu_is_not_polled() {
        assert_eq!(polled_ns(900, 100_000), 900);
        assert_eq!(polled_ns(900, 500), 500, "it was due then");
        assert_eq!(polled_ns(4_000_000, 150_000), LONGEST_LOOK_NS);
    }

    #[test]
    fn some_waits_sleep_to_their_end_so_that_a_change_is_seen() {
        let mut wakes = after([120_000; 256]);
        let whole = (0..2_560).filter(|_| wakes.sleep_ns(60_000) == 60_000).count();
        assert_eq!(whole, 10);
        (0..256).for_each(|_| wakes.saw(20_000));
        assert_eq!(wakes.sleep_ns(60_000), 60_000);
    }
}
