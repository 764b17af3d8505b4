//! A histogram of lateness of fixed size: sixteen steps per power of two.

const STEPS: usize = 16;
const BUCKETS: usize = 64 * STEPS;

/// Histogram of durations; percentiles are exact to 1/16 of their value.
#[derive(Clone)]
pub struct Lateness {
    counts: Box<[u64; BUCKETS]>,
    total: u64,
    max_ns: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), total: 0, max_ns: 0 }
    }
}

impl Lateness {
    pub fn add(&mut self, late_ns: u64) {
        self.counts[bucket(late_ns)] += 1;
        self.total += 1;
        self.max_ns = self.max_ns.max(late_ns);
    }

    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Upper bound of the bucket of the given quantile; 0 if there are no durations.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // a share of a count
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let rank = ((self.total as f64) * share).ceil() as u64;
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return upper_bound(at).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

/// Below 16, one bucket per value; above, by the four bits after the leading one.
fn bucket(value: u64) -> usize {
    if value < STEPS as u64 {
        return value as usize;
    }
    let exponent = 63 - value.leading_zeros() as usize;
    (exponent - 3) * STEPS + (value >> (exponent - 4)) as usize - STEPS
}

fn upper_bound(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let exponent = bucket / STEPS + 3;
    let step = (bucket % STEPS + STEPS) as u64;
    ((step + 1) << (exponent - 4)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for value in [0, 1, 15, 16, 17, 31, 32, 1000, 65_535, 1_000_000_007, u64::MAX >> 1] {
            let at = bucket(value);
            assert!(upper_bound(at) >= value, "{value}");
            assert!(at == 0 || upper_bound(at - 1) < value, "{value}");
        }
    }

    #[test]
    fn quantiles_are_within_a_sixteenth() {
        let mut lateness = Lateness::default();
        (1..=1000).for_each(|value| lateness.add(value * 100));
        let p99 = lateness.quantile_ns(0.99);
        assert!((99_000..=99_000 + 99_000 / 16).contains(&p99), "{p99}");
        assert_eq!(lateness.max_ns(), 100_000);
    }

    #[test]
    fn without_a_duration_there_is_no_lateness() {
        assert_eq!(Lateness::default().quantile_ns(0.99), 0);
    }
}
