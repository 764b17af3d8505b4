//! Rates that change over time: steps, ramps and bursts are lists of stages.

/// A period with a rate that is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    pub seconds: f64,
    pub from_per_s: f64,
    pub to_per_s: f64,
}

impl Stage {
    /// Expected number of arrivals.
    fn expected(&self) -> f64 {
        self.seconds * f64::midpoint(self.from_per_s, self.to_per_s)
    }

    /// After how many seconds `expected` arrivals have come: the root of
    /// `from·x + (to − from)·x²/(2·seconds) = expected`, in the form that does not cancel.
    fn seconds_until(&self, expected: f64) -> f64 {
        let slope = (self.to_per_s - self.from_per_s) / self.seconds;
        let at_end = (self.from_per_s.powi(2) + 2.0 * slope * expected).max(0.0).sqrt();
        if expected <= 0.0 { 0.0 } else { 2.0 * expected / (self.from_per_s + at_end) }
    }
}

/// A sequence of stages that is repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    stages: Vec<Stage>,
    /// Where the current stage starts: times and arrivals are requested in rising order.
    current: usize,
    start_s: f64,
    start_expected: f64,
}

impl Stages {
    #[must_use]
    pub fn constant(per_s: f64) -> Self {
        // One stage without an end: repetitions would add up rounding errors.
        Self::of(vec![Stage { seconds: f64::INFINITY, from_per_s: per_s, to_per_s: per_s }])
    }

    /// # Errors
    /// A stage has no length, or its rate is not possible.
    pub fn new(stages: Vec<Stage>) -> Result<Self, String> {
        for stage in &stages {
            let finite = [stage.seconds, stage.from_per_s, stage.to_per_s]
                .iter()
                .all(|number| number.is_finite() && *number >= 0.0);
            if !finite || stage.seconds == 0.0 {
                return Err("a stage needs a time above 0 and rates of at least 0".to_owned());
            }
        }
        if stages.iter().all(|stage| stage.expected() == 0.0) {
            return Err("no stage has a rate above 0".to_owned());
        }
        Ok(Self::of(stages))
    }

    /// `SECONDS:RATE` or `SECONDS:RATE..RATE`, separated by commas.
    ///
    /// # Errors
    /// The text cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.trim().parse::<f64>().map_err(|_| format!("`{}` is no number", text.trim()))
        };
        let stages = text.split(',').map(|stage| {
            let (seconds, rates) = stage.split_once(':').ok_or_else(|| {
                format!("`{stage}` is no stage: write SECONDS:RATE or SECONDS:RATE..RATE")
            })?;
            let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
            Ok(Stage {
                seconds: number(seconds)?,
                from_per_s: number(from)?,
                to_per_s: number(to)?,
            })
        });
        Self::new(stages.collect::<Result<_, String>>()?)
    }

    fn of(stages: Vec<Stage>) -> Self {
        Self { stages, current: 0, start_s: 0.0, start_expected: 0.0 }
    }

    /// Rate at the start, which the warm-up has.
    #[must_use]
    pub fn first_per_s(&self) -> f64 {
        self.stages[0].from_per_s
    }

    /// Highest rate of all stages.
    #[must_use]
    pub fn highest_per_s(&self) -> f64 {
        self.stages.iter().fold(0.0, |most, stage| most.max(stage.from_per_s).max(stage.to_per_s))
    }

    /// When so many arrivals are expected, in nanoseconds from the start.
    ///
    /// `None` if that is later than 500 years.
    pub fn time_of(&mut self, arrivals: f64) -> Option<u64> {
        loop {
            let stage = self.stages[self.current];
            let expected = arrivals - self.start_expected;
            if expected < stage.expected() {
                let at_s = self.start_s + stage.seconds_until(expected).min(stage.seconds);
                return Some((at_s * 1e9).round() as u64);
            }
            self.start_s += stage.seconds;
            self.start_expected += stage.expected();
            self.current = (self.current + 1) % self.stages.len();
            if self.start_s > 1.6e10 {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts_by_second(text: &str, seconds: usize) -> Vec<u32> {
        let mut stages = Stages::parse(text).expect("stages");
        let mut counts = vec![0; seconds];
        for arrival in 0.. {
            let at = stages.time_of(f64::from(arrival)).expect("in reach") / 1_000_000_000;
            match counts.get_mut(at as usize) {
                Some(count) => *count += 1,
                None => break,
            }
        }
        counts
    }

    #[test]
    fn steps_and_bursts_repeat() {
        assert_eq!(counts_by_second("2:10,1:100", 7), [10, 10, 100, 10, 10, 100, 10]);
    }

    #[test]
    fn a_ramp_reaches_its_end() {
        assert_eq!(counts_by_second("10:0..100", 10), [5, 15, 25, 35, 45, 55, 65, 75, 85, 95]);
        assert_eq!(counts_by_second("4:100..20,2:20", 6), [90, 70, 50, 30, 20, 20]);
    }

    #[test]
    fn a_pause_sends_nothing() {
        assert_eq!(counts_by_second("1:10,2:0", 6), [10, 0, 0, 10, 0, 0]);
    }

    #[test]
    fn what_is_no_stage_is_refused() {
        for text in ["", "5", "0:100", "5:x", "5:-1", "5:0", "5:inf", "nan:5"] {
            assert!(Stages::parse(text).is_err(), "{text}");
        }
    }
}
