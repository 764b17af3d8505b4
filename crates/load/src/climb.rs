//! Search for the highest rate that a server sustains within a limit of latency: doubling, then bisecting.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Serialize;

/// A rate that was held for some time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Rung {
    pub rate_per_s: f64,
    /// Right replies a second.
    pub done_per_s: f64,
    /// The quantile; `null`: too few replies.
    pub latency_ms: Option<f64>,
    pub missed: u64,
    /// Operations without a right reply.
    pub failed: u64,
    /// Whether the quantile was within the limit, and nothing missed or failed.
    pub held: bool,
}

/// Result of a search.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Climbed {
    /// Version of this format.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    pub format: u32,
    pub quantile: f64,
    pub within_ms: f64,
    /// The highest rate that held; `null`: none did.
    pub rate_per_s: Option<f64>,
    /// The lowest rate that did not hold; `null`: all did.
    pub failed_per_s: Option<f64>,
    pub rungs: Vec<Rung>,
}

/// Rates below the first one that are tried, each half of the last.
const MOST_HALVED: i32 = 10;
/// Rungs after which a search ends in any case.
const MOST_RUNGS: usize = 64;

/// State of a search.
#[derive(Debug)]
pub struct Climb {
    from_per_s: f64,
    most_per_s: f64,
    /// Ratio of the bounds at which it ends.
    near: f64,
    rungs: Vec<Rung>,
}

impl Climb {
    /// From `from_per_s` on, up to `most_per_s`, until the bounds differ by the share `resolution` or less.
    #[must_use]
    pub fn new(from_per_s: f64, most_per_s: f64, resolution: f64) -> Self {
        Self { from_per_s, most_per_s, near: 1.0 + resolution, rungs: Vec::new() }
    }

    fn held(&self) -> Option<f64> {
        let held = self.rungs.iter().filter(|rung| rung.held).map(|rung| rung.rate_per_s);
        held.reduce(f64::max)
    }

    /// The lowest rate that failed twice and never held; once may be a hiccup of either side.
    fn failed(&self) -> Option<f64> {
        let of = |rate: f64| {
            self.rungs.iter().filter(move |rung| rung.rate_per_s.total_cmp(&rate).is_eq())
        };
        let twice = self
            .rungs
            .iter()
            .map(|rung| rung.rate_per_s)
            .filter(|&rate| of(rate).count() >= 2 && !of(rate).any(|rung| rung.held));
        twice.reduce(f64::min)
    }

    /// The next rate to try; `None`: the search is over.
    #[must_use]
    pub fn next(&self) -> Option<f64> {
        let Some(last) = self.rungs.last() else {
            return Some(self.from_per_s.min(self.most_per_s));
        };
        if self.rungs.len() >= MOST_RUNGS {
            return None;
        }
        let failed = self.failed();
        if !last.held && failed.is_none_or(|failed| last.rate_per_s < failed) {
            return Some(last.rate_per_s); // once more
        }
        match (self.held(), failed) {
            (Some(held), None) if held >= self.most_per_s => None,
            (Some(held), None) => Some((held * 2.0).min(self.most_per_s)),
            (None, Some(failed)) => {
                let next = failed / 2.0;
                (next >= self.from_per_s / f64::powi(2.0, MOST_HALVED)).then_some(next)
            }
            (Some(held), Some(failed)) if failed / held > self.near => Some((held * failed).sqrt()),
            _ => None,
        }
    }

    pub fn add(&mut self, rung: Rung) {
        self.rungs.push(rung);
    }

    #[must_use]
    pub fn climbed(self, quantile: f64, within_ms: f64) -> Climbed {
        let (rate_per_s, failed_per_s) = (self.held(), self.failed());
        Climbed { format: 1, quantile, within_ms, rate_per_s, failed_per_s, rungs: self.rungs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a server that holds `capacity`, and fails by chance at the rungs with these numbers.
    fn search(capacity: f64, hiccups: &[usize]) -> Climbed {
        let mut climb = Climb::new(100.0, 1e6, 0.05);
        let mut number = 0;
        while let Some(rate_per_s) = climb.next() {
            let held = rate_per_s <= capacity && !hiccups.contains(&number);
            let (done_per_s, latency_ms) = (rate_per_s.min(capacity), None);
            climb.add(Rung { rate_per_s, done_per_s, latency_ms, missed: 0, failed: 0, held });
            number += 1;
        }
        climb.climbed(0.99, 5.0)
    }

    #[test]
    fn the_rate_is_found_within_the_resolution() {
        for capacity in [130.0, 1_000.0, 54_321.0, 7.0] {
            let climbed = search(capacity, &[]);
            let (rate, failed) =
                (climbed.rate_per_s.expect("held"), climbed.failed_per_s.expect("failed"));
            assert!(
                rate <= capacity && capacity < failed && failed / rate <= 1.05,
                "{capacity}: {rate} {failed}"
            );
            assert!(climbed.rungs.len() <= 30, "{}", climbed.rungs.len());
        }
    }

    #[test]
    fn a_hiccup_does_not_end_it() {
        for hiccup in 0..12 {
            let rate = search(20_000.0, &[hiccup]).rate_per_s.expect("held");
            assert!((19_000.0..=20_000.0).contains(&rate), "{hiccup}: {rate}");
        }
    }

    #[test]
    fn bounds_that_are_not_there_are_not_made_up() {
        let never = search(0.01, &[]);
        assert_eq!(never.rate_per_s, None);
        assert!(never.failed_per_s.expect("failed") < 1.0);
        let always = search(1e9, &[]);
        assert_eq!((always.rate_per_s, always.failed_per_s), (Some(1e6), None));
    }
}
