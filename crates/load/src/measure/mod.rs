//! Measured figures: latencies and counts by kind of operation and window, and the client's own resource usage.

pub mod split;
pub mod usage;
pub mod window;

pub use split::{Parts, Split};
pub use usage::Usage;
pub use window::{Counts, KindWindow, Phase, Window};

use hdrhistogram::Histogram;

/// Nanoseconds from 1 to an hour, with three significant digits.
pub type Latencies = Histogram<u64>;

pub const LONGEST_NS: u64 = 3_600_000_000_000;
pub const DIGITS: u8 = 3;

/// # Panics
/// Never: the bounds are valid constants.
#[must_use]
pub fn latencies() -> Latencies {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("bounds within the crate's")
}
