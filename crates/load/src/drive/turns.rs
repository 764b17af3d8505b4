//! Turns: the stretches of time in which this program may send, while others drive other servers in between.
//!
//! The schedule comes in a file that appears once all programs that take turns are connected.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::clock;
use crate::error::LoadError;

pub(super) const FORMAT: u32 = 1;
const MOST_SLICES: usize = 1_000;
/// How often the file is looked for, and for how long.
const LOOK: Duration = Duration::from_millis(2);
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Times of `CLOCK_MONOTONIC`. Operations count if they are intended from `settled_ns` on and before `end_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub start_ns: u64,
    pub settled_ns: u64,
    pub end_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    /// How many of the turns only warm up.
    pub warm_up: usize,
    pub all: Vec<Turn>,
    /// Equal parts of a turn in which operations are counted as well; 0 for none.
    pub slices: usize,
    /// When the run ends; after the last turn, so that a program whose turns are over does not disturb the others.
    until_ns: u64,
    /// For each turn, how long all before it last together.
    before_ns: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    warm_up: usize,
    turns: Vec<[u64; 3]>,
    until: u64,
    #[serde(default)]
    slices: usize,
}

impl Turns {
    /// # Errors
    /// Turns overlap or last no time, or none is left to measure.
    pub fn new(warm_up: usize, turns: &[[u64; 3]], until_ns: u64) -> Result<Self, String> {
        let (mut all, mut before_ns) = (Vec::new(), Vec::new());
        let (mut free_ns, mut sum_ns) = (0, 0);
        for (number, &[start_ns, settled_ns, end_ns]) in turns.iter().enumerate() {
            if !(free_ns <= start_ns && start_ns <= settled_ns && settled_ns < end_ns) {
                return Err(format!("turn {} begins before it may, or lasts no time", number + 1));
            }
            all.push(Turn { start_ns, settled_ns, end_ns });
            before_ns.push(sum_ns);
            sum_ns += end_ns - start_ns;
            free_ns = end_ns;
        }
        if warm_up >= all.len() {
            return Err("no turn is left to measure".to_owned());
        }
        Ok(Self { warm_up, all, slices: 0, until_ns: until_ns.max(free_ns), before_ns })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.format != FORMAT {
            return Err(format!("format {} is not {FORMAT}", file.format));
        }
        if file.slices > MOST_SLICES {
            return Err(format!("a turn has at most {MOST_SLICES} slices"));
        }
        let turns = Self::new(file.warm_up, &file.turns, file.until)?;
        Ok(Self { slices: file.slices, ..turns })
    }

    /// Makes a file beside it, with the extension `connected`, and waits for it; it must be complete when it appears.
    ///
    /// # Errors
    /// It does not appear, is no schedule, or its first turn has begun.
    pub(super) fn wait_for(path: &Path, interrupted: &AtomicBool) -> Result<Self, LoadError> {
        let wrong = |reason: String| LoadError::Turns { path: PathBuf::from(path), reason };
        // Its own log is not read from a container before it ends.
        std::fs::write(path.with_extension("connected"), "")
            .map_err(|error| wrong(error.to_string()))?;
        let began = Instant::now();
        let text = loop {
            match std::fs::read_to_string(path) {
                Ok(text) => break text,
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(wrong(error.to_string()));
                }
                Err(_) if interrupted.load(Ordering::Relaxed) => {
                    return Err(wrong("a signal ended the wait for it".to_owned()));
                }
                Err(_) if began.elapsed() > LONGEST_WAIT => {
                    return Err(wrong("it did not appear in time".to_owned()));
                }
                Err(_) => std::thread::sleep(LOOK),
            }
        };
        let turns = Self::parse(&text).map_err(wrong)?;
        if turns.all[0].start_ns <= clock::monotonic_ns() {
            return Err(wrong("the first turn began before it was read".to_owned()));
        }
        Ok(turns)
    }

    /// Start of the first turn that is measured.
    pub(super) fn mark_ns(&self) -> u64 {
        self.all[self.warm_up].start_ns
    }

    pub(super) fn end_ns(&self) -> u64 {
        self.until_ns
    }

    /// Turn in which this time lies, or the one before it.
    fn of(&self, at_ns: u64) -> Option<usize> {
        self.all.partition_point(|turn| turn.start_ns <= at_ns).checked_sub(1)
    }

    /// When so much time has passed in the turns from this one on; `None` after the last.
    pub(super) fn time_of(&self, from: usize, passed_ns: u64) -> Option<u64> {
        let wanted_ns = self.before_ns.get(from)?.saturating_add(passed_ns);
        let number = self.before_ns.partition_point(|&before_ns| before_ns <= wanted_ns) - 1;
        let at_ns = self.all[number].start_ns.saturating_add(wanted_ns - self.before_ns[number]);
        (at_ns < self.all[number].end_ns).then_some(at_ns)
    }

    /// How much of this time is measured.
    pub(super) fn measured_ns(&self, from_ns: u64, until_ns: u64) -> u64 {
        let within =
            |turn: &Turn| turn.end_ns.min(until_ns).saturating_sub(turn.settled_ns.max(from_ns));
        self.all[self.warm_up..].iter().map(within).sum()
    }
}

/// What was counted of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnFigures {
    /// Correct operations that were intended after settling.
    pub right: u64,
    /// Those of them in the first half of the time after settling.
    pub first_half: u64,
    pub failed: u64,
    /// Sum of the latencies of the correct ones.
    pub latency_ns: u64,
    /// End of the last operation, of those while settling, too; 0 without one.
    pub last_ns: u64,
    /// Correct operations by when they were intended, settling included: one count for each slice of the turn.
    pub slices: Vec<u64>,
}

impl TurnFigures {
    pub(super) fn add(&mut self, more: &Self) {
        self.slices.resize(more.slices.len(), 0);
        self.slices.iter_mut().zip(&more.slices).for_each(|(sum, more)| *sum += more);
        self.right += more.right;
        self.first_half += more.first_half;
        self.failed += more.failed;
        self.latency_ns += more.latency_ns;
        self.last_ns = self.last_ns.max(more.last_ns);
    }
}

/// One thread's way through the turns.
#[derive(Debug)]
pub(super) struct Taking<'a> {
    turns: &'a Turns,
    /// Current or next turn.
    at: usize,
    begun: bool,
    pub(super) figures: Vec<TurnFigures>,
}

impl<'a> Taking<'a> {
    pub(super) fn new(turns: &'a Turns) -> Self {
        let none = TurnFigures { slices: vec![0; turns.slices], ..TurnFigures::default() };
        let figures = vec![none; turns.all.len()];
        Self { turns, at: 0, begun: false, figures }
    }

    /// Whether a turn has begun since the last call.
    pub(super) fn begins(&mut self, now_ns: u64) -> bool {
        while self.turns.all.get(self.at).is_some_and(|turn| now_ns >= turn.end_ns) {
            self.at += 1;
            self.begun = false;
        }
        let due = self.turns.all.get(self.at).is_some_and(|turn| now_ns >= turn.start_ns);
        due && !std::mem::replace(&mut self.begun, due)
    }

    pub(super) fn may_start(&self, now_ns: u64) -> bool {
        self.begun && self.turns.all.get(self.at).is_some_and(|turn| now_ns < turn.end_ns)
    }

    /// Start of the next turn.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.turns.all.get(self.at + usize::from(self.begun)).map(|turn| turn.start_ns)
    }

    /// Counts an operation that ended; returns whether it counts.
    pub(super) fn ended(&mut self, intended_ns: u64, read_ns: u64, right: bool) -> bool {
        let Some(number) = self.turns.of(intended_ns) else { return false };
        let (turn, figures) = (&self.turns.all[number], &mut self.figures[number]);
        figures.last_ns = figures.last_ns.max(read_ns);
        let length_ns = turn.end_ns - turn.start_ns;
        let slice = (intended_ns - turn.start_ns) * self.turns.slices as u64 / length_ns;
        if let Some(count) = figures.slices.get_mut(slice as usize).filter(|_| right) {
            *count += 1;
        }
        let counts = (turn.settled_ns..turn.end_ns).contains(&intended_ns);
        if counts && right {
            figures.right += 1;
            let half_ns = turn.settled_ns + (turn.end_ns - turn.settled_ns) / 2;
            figures.first_half += u64::from(intended_ns < half_ns);
            figures.latency_ns += read_ns.saturating_sub(intended_ns);
        } else if !right {
            figures.failed += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_by_slices_of_their_turn_from_its_start_on() {
        let turns = Turns::parse(
            r#"{"format": 1, "warm_up": 0, "turns": [[100, 110, 150]], "until": 0, "slices": 5}"#,
        )
        .expect("right");
        let mut taking = Taking::new(&turns);
        for (intended_ns, right) in
            [(100, true), (109, true), (110, true), (149, true), (150, true), (125, false)]
        {
            taking.ended(intended_ns, 200, right);
        }
        assert_eq!(taking.figures[0].slices, [2, 1, 0, 0, 1]);
        let mut sum = TurnFigures::default();
        sum.add(&taking.figures[0]);
        sum.add(&taking.figures[0]);
        assert_eq!(sum.slices, [4, 2, 0, 0, 2]);
    }

    fn turns() -> Turns {
        Turns::new(1, &[[100, 110, 150], [300, 310, 350], [400, 420, 460]], 0).expect("in order")
    }

    #[test]
    fn a_schedule_is_read_and_its_mistakes_are_named() {
        let found =
            Turns::parse(r#"{"format": 1, "warm_up": 0, "turns": [[5, 6, 9]], "until": 20}"#)
                .expect("right");
        assert_eq!(found.all, [Turn { start_ns: 5, settled_ns: 6, end_ns: 9 }]);
        assert_eq!(found.end_ns(), 20);
        let overlapping = Turns::new(0, &[[1, 2, 5], [4, 6, 9]], 0).expect_err("overlap");
        assert!(overlapping.contains("turn 2"), "{overlapping}");
        assert!(Turns::new(0, &[[1, 5, 5]], 0).is_err(), "nothing is measured");
        assert!(Turns::new(1, &[[1, 2, 5]], 0).is_err(), "only a warm-up");
        assert!(Turns::parse(r#"{"format": 2, "warm_up": 0, "turns": [], "until": 0}"#).is_err());
    }

    #[test]
    fn time_passes_within_turns_only() {
        let turns = turns();
        let times: Vec<_> = [0, 49, 50, 99, 100, 160].map(|passed| turns.time_of(0, passed)).into();
        assert_eq!(times, [Some(100), Some(149), Some(300), Some(349), Some(400), None]);
        assert_eq!(turns.time_of(1, 60), Some(410));
    }

    #[test]
    fn only_time_after_settling_is_measured() {
        assert_eq!(turns().measured_ns(0, 1_000), 40 + 40);
        assert_eq!(turns().measured_ns(320, 430), 30 + 10);
        assert_eq!(turns().measured_ns(110, 150), 0, "the first turn warms up");
    }

    #[test]
    fn operations_may_start_within_a_turn_only() {
        let turns = turns();
        let mut taking = Taking::new(&turns);
        assert!(!taking.begins(99) && !taking.may_start(99));
        assert_eq!(taking.next_ns(), Some(100));
        assert!(taking.begins(100) && taking.may_start(100));
        assert!(!taking.begins(120), "it has begun before");
        assert_eq!(taking.next_ns(), Some(300));
        assert!(!taking.may_start(150));
        assert!(!taking.begins(200));
        assert!(taking.begins(405), "late, and two turns on");
        assert_eq!(taking.next_ns(), None);
    }

    #[test]
    fn an_operation_counts_in_the_turn_that_it_was_meant_for() {
        let turns = turns();
        let mut taking = Taking::new(&turns);
        assert!(!taking.ended(305, 312, true), "sent while settling");
        assert!(taking.ended(310, 320, true));
        assert!(taking.ended(330, 335, true), "the second half begins");
        assert!(taking.ended(349, 402, true), "it ended in the next turn");
        assert!(!taking.ended(350, 355, true), "after the turn");
        assert!(taking.ended(340, 341, false));
        let wanted = TurnFigures {
            right: 3,
            first_half: 1,
            failed: 1,
            latency_ns: 10 + 5 + 53,
            last_ns: 402,
            slices: Vec::new(),
        };
        assert_eq!(taking.figures[1], wanted);
        assert_eq!(taking.figures[2], TurnFigures::default());
    }
}
