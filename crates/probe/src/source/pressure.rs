//! `/proc/pressure/*`, at most ten times a second.

use std::path::Path;

use tare_record::ABSENT;
use tare_record::cell::from_option;
use tare_record::tables::{self, pressure};

use super::{ABOUT_A_TENTH_NS, Life, Seldom, Source, send, timed};
use crate::handle::{Handle, Reading};
use crate::parse;
use crate::ring::RowSender;

/// File → first of its four cells: window, then `some` and `full`.
const FILES: [(&str, usize); 3] =
    [("cpu", pressure::CPU_T0_NS), ("memory", pressure::MEMORY_T0_NS), ("io", pressure::IO_T0_NS)];

pub struct PressureSource {
    files: Vec<(Handle, usize)>,
    target: u32,
    seldom: Seldom,
}

impl PressureSource {
    /// `None` if the kernel has no pressure information (`CONFIG_PSI`, `psi=1`).
    #[must_use]
    pub fn open(proc: &Path, target: u32) -> Option<Self> {
        let files: Vec<_> = FILES
            .iter()
            .filter_map(|(name, cell)| {
                Some((Handle::open(&proc.join("pressure").join(name)).ok()?, *cell))
            })
            .collect();
        (!files.is_empty()).then(|| Self { files, target, seldom: Seldom::default() })
    }
}

impl Source for PressureSource {
    fn sample(&mut self, tick: u64, scratch: &mut Vec<u8>, out: &mut RowSender) -> Life {
        let now_ns = crate::clock::monotonic_ns();
        if !self.seldom.is_due(now_ns) {
            return Life::Alive;
        }
        self.seldom.rest(now_ns, ABOUT_A_TENTH_NS);
        let mut cells = [ABSENT; pressure::WIDTH];
        for (handle, first) in &self.files {
            let read = timed(handle, scratch);
            let Reading::Bytes(bytes) = read.reading else { continue };
            let totals = parse::pressure::totals(&scratch[..bytes]);
            cells[*first] = read.t0_ns;
            cells[first + 1] = read.t1_ns;
            cells[first + 2] = from_option(totals.some_us);
            cells[first + 3] = from_option(totals.full_us);
        }
        send(out, tables::PRESSURE, self.target, tick, &cells);
        Life::Alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_of_a_file_stand_in_a_row() {
        assert_eq!(pressure::CPU_T0_NS + 3, pressure::CPU_FULL_US);
        assert_eq!(pressure::MEMORY_T0_NS + 3, pressure::MEMORY_FULL_US);
        assert_eq!(pressure::IO_T0_NS + 3, pressure::IO_FULL_US);
    }
}
