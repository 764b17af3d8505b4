//! A file of a control group: how to read it, and which cells it fills.

use tare_record::cell::from_option;
use tare_record::tables::cgroup;
use tare_record::{ABSENT, Cell};

use super::{ABOUT_A_SECOND_NS, ABOUT_A_TENTH_NS, Seldom};
use crate::handle::Handle;
use crate::parse::fields::{Words, whole_number};
use crate::parse::keyed::Plan;
use crate::parse::{blkio, io_stat, pressure};

/// Cells for the window of a reading of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub t0: usize,
    pub t1: usize,
}

/// Windows of a file: `cpu.stat` of v2 has three groups of columns, every other file one.
///
/// Stored inline, so that a tick does not have to load them from elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Windows([Option<Window>; 3]);

impl Windows {
    /// Adds missing windows; there is no room for a fourth, which no file has.
    pub fn add(&mut self, windows: &[Window]) {
        for window in
            windows.iter().filter(|window| !self.0.contains(&Some(**window))).collect::<Vec<_>>()
        {
            if let Some(free) = self.0.iter_mut().find(|slot| slot.is_none()) {
                *free = Some(*window);
            }
        }
    }
}

/// Format of a file, and the cells for its values.
#[derive(Clone, Debug)]
pub enum Shape {
    /// One number.
    Number(usize),
    /// One number, or a word or very large number for "no limit".
    Limit(usize),
    /// `key value` lines.
    Keyed(Plan),
    /// v1 `blkio` lines, summed over devices.
    ReadWrite {
        read: usize,
        write: usize,
    },
    /// v2 `io.stat`.
    IoStat,
    Pressure {
        some: usize,
        full: usize,
    },
    /// v2 `cpu.max`: quota and period.
    CpuMax,
}

/// How often to read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cadence {
    EachTick,
    /// For pressure, which costs too much at high rates.
    EachTenth,
    EachSecond,
    /// At each tick once it has values, each second while it is empty.
    EachTickOnceFilled,
}

/// An open file of a control group.
pub struct Item {
    pub handle: Handle,
    pub shape: Shape,
    pub windows: Windows,
    pub cadence: Cadence,
    pub(crate) seldom: Seldom,
}

/// A `blkio` file with fewer bytes has no device, only `Total 0`.
const EMPTY_BYTES: usize = 9;

/// v1 shows `PAGE_COUNTER_MAX` pages if there is no limit; numbers from here on mean no limit.
const NO_LIMIT: u64 = i64::MAX as u64 - (1 << 20);

impl Item {
    /// Parses the bytes into the row. Returns whether there was any value.
    pub fn fill(&self, bytes: &[u8], cells: &mut [Cell; cgroup::WIDTH]) -> bool {
        match &self.shape {
            Shape::Number(cell) => cells[*cell] = from_option(whole_number(bytes)),
            Shape::Limit(cell) => {
                cells[*cell] = from_option(whole_number(bytes).filter(|limit| *limit < NO_LIMIT));
            }
            Shape::Keyed(plan) => plan.read(bytes, cells),
            Shape::ReadWrite { read, write } => {
                let Some(sums) = blkio::sums(bytes) else { return false };
                cells[*read] = sums.read;
                cells[*write] = sums.write;
            }
            Shape::IoStat => {
                let Some(io) = io_stat::sums(bytes) else { return false };
                cells[cgroup::READ_BYTES] = io.read_bytes;
                cells[cgroup::WRITTEN_BYTES] = io.written_bytes;
                cells[cgroup::READS] = io.reads;
                cells[cgroup::WRITES] = io.writes;
            }
            Shape::Pressure { some, full } => {
                let totals = pressure::totals(bytes);
                cells[*some] = from_option(totals.some_us);
                cells[*full] = from_option(totals.full_us);
            }
            Shape::CpuMax => {
                let mut words = Words::new(bytes);
                cells[cgroup::QUOTA_US] = from_option(words.number());
                cells[cgroup::PERIOD_US] = from_option(words.number());
            }
        }
        true
    }

    /// Stores the window: from before the first file of a group until after its last.
    pub fn stamp(&self, t0_ns: u64, t1_ns: u64, cells: &mut [Cell; cgroup::WIDTH]) {
        for window in self.windows.0.iter().flatten() {
            if cells[window.t0] == ABSENT {
                cells[window.t0] = t0_ns;
            }
            cells[window.t1] = t1_ns;
        }
    }

    /// Reads the file if it is due, without parsing, for the floor of the benchmark.
    pub fn read_only(&mut self, now_ns: u64, buffer: &mut [u8]) {
        if !self.is_due(now_ns) {
            return;
        }
        let reading = self.handle.read(buffer);
        let was_empty = self.cadence == Cadence::EachTickOnceFilled
            && matches!(reading, crate::handle::Reading::Bytes(bytes) if bytes < EMPTY_BYTES);
        self.rest(now_ns, !was_empty);
    }

    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.seldom.is_due(now_ns)
    }

    /// Sets when it is read again.
    pub(crate) fn rest(&mut self, now_ns: u64, had_values: bool) {
        match self.cadence {
            Cadence::EachTick => {}
            Cadence::EachTickOnceFilled if had_values => {}
            Cadence::EachTenth => self.seldom.rest(now_ns, ABOUT_A_TENTH_NS),
            Cadence::EachSecond | Cadence::EachTickOnceFilled => {
                self.seldom.rest(now_ns, ABOUT_A_SECOND_NS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn filled(shape: Shape, bytes: &[u8]) -> ([Cell; cgroup::WIDTH], bool) {
        let item = Item {
            handle: Handle::open(Path::new("/dev/null")).expect("null"),
            shape,
            windows: Windows::default(),
            cadence: Cadence::EachTick,
            seldom: Seldom::default(),
        };
        let mut cells = [ABSENT; cgroup::WIDTH];
        let had_values = item.fill(bytes, &mut cells);
        (cells, had_values)
    }

    #[test]
    fn an_empty_throttle_file_fills_nothing() {
        let shape = Shape::ReadWrite { read: cgroup::READ_BYTES, write: cgroup::WRITTEN_BYTES };
        let (cells, had_values) =
            filled(shape, include_bytes!("../../tests/data/v1/throttle_empty"));
        assert!(!had_values);
        assert_eq!(cells[cgroup::WRITTEN_BYTES], ABSENT);
    }

    #[test]
    fn no_limit_is_absent_on_both_versions() {
        let limit = Shape::Limit(cgroup::MEMORY_LIMIT_BYTES);
        for text in [b"9223372036854771712\n".as_slice(), b"max\n", b"-1\n"] {
            let (cells, _) = filled(limit.clone(), text);
            assert_eq!(cells[cgroup::MEMORY_LIMIT_BYTES], ABSENT);
        }
        let (cells, _) = filled(limit, b"4294967296\n");
        assert_eq!(cells[cgroup::MEMORY_LIMIT_BYTES], 4_294_967_296);
    }

    #[test]
    fn cpu_max_without_a_quota_still_has_a_period() {
        let (cells, _) = filled(Shape::CpuMax, b"max 100000\n");
        assert_eq!((cells[cgroup::QUOTA_US], cells[cgroup::PERIOD_US]), (ABSENT, 100_000));
        let (cells, _) = filled(Shape::CpuMax, b"50000 100000\n");
        assert_eq!(cells[cgroup::QUOTA_US], 50_000);
    }
}
