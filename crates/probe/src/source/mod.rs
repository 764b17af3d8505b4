//! Sources of samples: each keeps its files open, reads them and sends rows.
//!
//! `sample` runs on the sampling thread. It takes no locks and opens no files, which
//! [`crate::discover`] does, and allocates only if a file is longer than all files before.

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

/// Room for the files of most machines. `/proc/stat` of one with a thousand CPUs is longer, with about
/// 80 bytes per CPU and at least 2 per interrupt.
pub const SCRATCH_BYTES: usize = 1 << 17;
/// Limit of the room, which no file of the kernel reaches; a file that does not end counts as missing.
const MOST_SCRATCH_BYTES: usize = 1 << 24;

/// Whether a source will have further rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Alive,
    /// The process ended, or the control group was removed.
    Gone,
}

/// A source of rows at each tick.
pub trait Source: Send {
    /// `scratch` is room for one file at a time, which grows to the longest.
    fn sample(&mut self, tick: u64, scratch: &mut Vec<u8>, out: &mut RowSender) -> Life;
}

/// One reading, and the window in which it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub reading: Reading,
    pub t0_ns: u64,
    pub t1_ns: u64,
}

/// Reads a whole file; repeats it with twice the room if the buffer is too small.
pub(crate) fn timed(handle: &Handle, buffer: &mut Vec<u8>) -> Timed {
    loop {
        let t0_ns = monotonic_ns();
        let reading = handle.read(buffer);
        if reading != Reading::Outgrown || buffer.len() >= MOST_SCRATCH_BYTES {
            return Timed { reading, t0_ns, t1_ns: monotonic_ns() };
        }
        buffer.resize(2 * buffer.len(), 0);
    }
}

pub(crate) fn send(out: &mut RowSender, table: u32, target: u32, tick: u64, cells: &[Cell]) {
    out.send(Key { table, target, tick }, cells);
}

/// Limits how often something happens, independent of the rate of ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seldom {
    next_ns: u64,
}

/// A little under a second, so that a 1 Hz tick that is slightly early still counts.
pub(crate) const ABOUT_A_SECOND_NS: u64 = 950_000_000;
/// Likewise for a tenth of a second.
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
