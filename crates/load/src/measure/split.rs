//! Parts of the latency of slow requests: means of parts by latency, which divide a percentile into parts.
//!
//! Percentiles of the parts do not add up to the percentile of the whole, but the mean parts of the requests around it
//! do.

/// Parts of one request's latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// From the intended time until the client noticed it.
    pub lag_ns: u64,
    /// From then until it was sent: the connection had other requests in flight.
    pub waiting_ns: u64,
    /// From then until the kernel received the reply.
    pub server_ns: u64,
    /// From then until the client read it.
    pub unread_ns: u64,
}

impl Parts {
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.lag_ns + self.waiting_ns + self.server_ns + self.unread_ns
    }

    fn add(&mut self, other: &Self) {
        self.lag_ns += other.lag_ns;
        self.waiting_ns += other.waiting_ns;
        self.server_ns += other.server_ns;
        self.unread_ns += other.unread_ns;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub count: u64,
    pub sums: Parts,
}

/// Groups of similar latency, each an eighth of a power of two wide.
#[derive(Clone, Debug)]
pub struct Split {
    groups: Vec<Group>,
}

const STEPS: u32 = 8;
const GROUPS: usize = 64 * STEPS as usize;

impl Default for Split {
    fn default() -> Self {
        Self { groups: vec![Group::default(); GROUPS] }
    }
}

fn group_of(latency_ns: u64) -> usize {
    let latency_ns = latency_ns.max(STEPS.into());
    let exponent = latency_ns.ilog2();
    let fraction = (latency_ns >> (exponent - STEPS.ilog2())) as u32 % STEPS;
    (exponent * STEPS + fraction) as usize
}

impl Split {
    pub fn record(&mut self, parts: &Parts) {
        let group = &mut self.groups[group_of(parts.total_ns())];
        group.count += 1;
        group.sums.add(parts);
    }

    pub fn merge(&mut self, other: &Self) {
        for (group, more) in self.groups.iter_mut().zip(&other.groups) {
            group.count += more.count;
            group.sums.add(&more.sums);
        }
    }

    pub fn clear(&mut self) {
        self.groups.fill(Group::default());
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.groups.iter().map(|group| group.count).sum()
    }

    /// Group that contains the quantile of all recorded latencies.
    #[must_use]
    pub fn at(&self, quantile: f64) -> Option<Group> {
        #[allow(clippy::cast_precision_loss)] // a rank that is one off in 2^53
        let rank = ((self.count() as f64 * quantile).ceil() as u64).max(1);
        let mut passed = 0;
        self.groups.iter().copied().find(|group| {
            passed += group.count;
            passed >= rank
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_in_order_and_an_eighth_wide() {
        let mut last = 0;
        for latency in (0..60_u32).flat_map(|exponent| [1_u64 << exponent, (3_u64 << exponent) / 2])
        {
            assert!(group_of(latency) >= last);
            last = group_of(latency);
        }
        assert_ne!(group_of(1_000), group_of(1_140));
        assert!(group_of(u64::MAX) < GROUPS);
    }

    #[test]
    fn the_slow_ones_are_taken_apart_by_themselves() {
        let mut split = Split::default();
        let fast = Parts { server_ns: 20_000, ..Parts::default() };
        let slow = Parts { server_ns: 20_000, unread_ns: 900_000, ..Parts::default() };
        (0..98).for_each(|_| split.record(&fast));
        (0..2).for_each(|_| split.record(&slow));
        assert_eq!(split.at(0.5).map(|group| group.sums.unread_ns), Some(0));
        assert_eq!(
            split.at(0.99),
            Some(Group {
                count: 2,
                sums: Parts { server_ns: 40_000, unread_ns: 1_800_000, ..Parts::default() }
            })
        );
        assert_eq!(Split::default().at(0.99), None);
    }
}
