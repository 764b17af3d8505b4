//! Rates, with bounds from the counter's step and the windows in which it was read.

use crate::schema::{Kind, Quantum, Ticks};

/// One reading of a counter, and the window in which it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub value: u64,
    pub t0_ns: u64,
    pub t1_ns: u64,
}

/// Units per second, and bounds of the true rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub per_s: f64,
    pub low_per_s: f64,
    pub high_per_s: f64,
}

/// Rate between two readings; `None` if the counter decreased or no time passed.
///
/// The value was read at some time inside each window, so the time between the readings is between
/// `b.t0 - a.t1` and `b.t1 - a.t0`; the difference is uncertain by one `quantum` each way.
/// The point estimate divides by the distance between the middles of the windows.
#[must_use]
#[allow(clippy::cast_precision_loss)] // a rate needs no 64 bits
pub fn between(a: Reading, b: Reading, quantum: u64) -> Option<Rate> {
    let delta = b.value.checked_sub(a.value)?;
    let longest_ns = b.t1_ns.checked_sub(a.t0_ns)?;
    let shortest_ns = b.t0_ns.checked_sub(a.t1_ns)?;
    let middle_ns = ((a.t0_ns + a.t1_ns) as f64 / 2.0, (b.t0_ns + b.t1_ns) as f64 / 2.0);
    let elapsed_s = (middle_ns.1 - middle_ns.0) / 1e9;
    if shortest_ns == 0 || elapsed_s <= 0.0 {
        return None;
    }
    Some(Rate {
        per_s: delta as f64 / elapsed_s,
        low_per_s: delta.saturating_sub(quantum) as f64 / (longest_ns as f64 / 1e9),
        high_per_s: (delta + quantum) as f64 / (shortest_ns as f64 / 1e9),
    })
}

/// Quantum of a column in the column's own unit, which its name ends with.
///
/// Only counters of time have a quantum other than zero.
#[must_use]
pub fn quantum_in_units(name: &str, quantum: Quantum, kind: Kind, ticks: Ticks) -> u64 {
    if kind != Kind::Counter {
        return 0;
    }
    let nanoseconds = quantum.nanoseconds(ticks);
    if name.ends_with("_ticks") {
        nanoseconds.div_ceil(1_000_000_000 / ticks.user_hz.max(1))
    } else if name.ends_with("_us") {
        nanoseconds.div_ceil(1_000)
    } else if name.ends_with("_ms") {
        nanoseconds.div_ceil(1_000_000)
    } else {
        nanoseconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Reading = Reading { value: 1_000_000_000, t0_ns: 1_000_000, t1_ns: 1_002_000 };

    #[test]
    fn half_a_core_over_a_second_is_bounded_by_one_tick() {
        let b = Reading { value: 1_500_000_000, t0_ns: 1_001_000_000, t1_ns: 1_001_002_000 };
        let rate = between(A, b, 4_000_000).expect("time passed");
        assert!((rate.per_s - 5e8).abs() < 1.0);
        assert!((rate.low_per_s - 4.96e8).abs() < 1e4, "{rate:?}");
        assert!((rate.high_per_s - 5.04e8).abs() < 1e4, "{rate:?}");
    }

    #[test]
    fn a_counter_that_stood_still_within_its_quantum_may_have_run() {
        let b = Reading { value: A.value, t0_ns: 2_000_000, t1_ns: 2_002_000 };
        let rate = between(A, b, 4_000_000).expect("time passed");
        assert!(rate.per_s.abs() < f64::EPSILON && rate.low_per_s.abs() < f64::EPSILON);
        assert!(rate.high_per_s > 3e9, "one millisecond cannot tell 0 from 100 %: {rate:?}");
    }

    #[test]
    fn a_counter_that_fell_has_no_rate() {
        let b = Reading { value: 5, t0_ns: 2_000_000_000, t1_ns: 2_000_000_000 };
        assert_eq!(between(A, b, 0), None);
    }

    #[test]
    fn the_quantum_is_told_in_the_unit_of_the_column() {
        let ticks = Ticks { jiffy_ns: 4_000_000, user_hz: 100 };
        let of = |name, quantum| quantum_in_units(name, quantum, Kind::Counter, ticks);
        assert_eq!(of("user_ticks", Quantum::UserTick), 2);
        assert_eq!(of("usage_ns", Quantum::Tick), 4_000_000);
        assert_eq!(of("busy_ms", Quantum::Tick), 4);
        assert_eq!(of("read_bytes", Quantum::Exact), 0);
    }
}
