//! What is sampled: each source keeps its handles open, reads them and sends rows.
//!
//! `sample` runs on the sampling thread. It allocates nothing, locks nothing and opens nothing;
//! opening is the business of [`crate::discover`].

pub mod cgroup;
pub mod device;
pub mod item;
pub mod memory;
pub mod perf;
pub mod pressure;
pub mod process;
pub mod stat;

use tare_record::Cell;
use tare_record::row::Key;

use crate::clock::monotonic_ns;
use crate::handle::{Handle, Reading};
use crate::ring::RowSender;

/// Room for everything that one target prints.
pub const SCRATCH_BYTES: usize = 1 << 17;

/// Whether a source will have rows again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Alive,
    /// The process ended, or the control group was removed.
    Gone,
}

/// Something with rows to give at each tick.
pub trait Source: Send {
    fn sample(&mut self, tick: u64, scratch: &mut [u8], out: &mut RowSender) -> Life;
}

/// One reading and the window in which the kernel was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub reading: Reading,
    pub t0_ns: u64,
    pub t1_ns: u64,
}

pub(crate) fn timed(handle: &Handle, buffer: &mut [u8]) -> Timed {
    let t0_ns = monotonic_ns();
    let reading = handle.read(buffer);
    Timed { reading, t0_ns, t1_ns: monotonic_ns() }
}

pub(crate) fn send(out: &mut RowSender, table: u32, target: u32, tick: u64, cells: &[Cell]) {
    out.send(Key { table, target, tick }, cells);
}

/// Lets something happen at most so often, whatever the tick.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seldom {
    next_ns: u64,
}

/// A little under a second, so that a 1 Hz tick that comes early by its jitter still counts.
pub(crate) const ABOUT_A_SECOND_NS: u64 = 950_000_000;
/// Likewise for a tenth of it.
pub(crate) const ABOUT_A_TENTH_NS: u64 = 95_000_000;

impl Seldom {
    pub(crate) fn is_due(self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    pub(crate) fn rest(&mut self, now_ns: u64, pause_ns: u64) {
        self.next_ns = now_ns + pause_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seldom_thing_is_due_each_tick_at_1_hz_and_each_tenth_at_10_hz() {
        for (period_ns, expected) in [(1_000_000_000_u64, 10), (100_000_000, 10)] {
            let mut seldom = Seldom::default();
            let mut count = 0;
            for tick in 0..(10_000_000_000 / period_ns) {
                // Wakes up to 40 µs late, as a real-time thread does.
                let now = tick * period_ns + (tick * 7919) % 40_000;
                if seldom.is_due(now) {
                    seldom.rest(now, ABOUT_A_SECOND_NS);
                    count += 1;
                }
            }
            assert_eq!(count, expected, "{period_ns}");
        }
    }
}
