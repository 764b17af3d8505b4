//! One process: its CPU clock, `stat` and `io`.

use std::io;
use std::path::Path;

use tare_record::cell::from_option;
use tare_record::tables::{self, process};
use tare_record::{ABSENT, Cell};

use super::{Life, Source, send, timed};
use crate::clock::monotonic_ns;
use crate::handle::{Handle, Reading};
use crate::parse::keyed::{Plan, Wanted};
use crate::parse::pid_stat;
use crate::ring::RowSender;
use crate::sys;

const IO: [Wanted; 7] = [
    Wanted { key: b"rchar: ", cell: process::READ_CALL_BYTES, scale: 1 },
    Wanted { key: b"wchar: ", cell: process::WRITTEN_CALL_BYTES, scale: 1 },
    Wanted { key: b"syscr: ", cell: process::READ_CALLS, scale: 1 },
    Wanted { key: b"syscw: ", cell: process::WRITE_CALLS, scale: 1 },
    Wanted { key: b"read_bytes: ", cell: process::READ_BYTES, scale: 1 },
    Wanted { key: b"write_bytes: ", cell: process::WRITTEN_BYTES, scale: 1 },
    Wanted { key: b"cancelled_write_bytes: ", cell: process::CANCELLED_BYTES, scale: 1 },
];

pub struct ProcessSource {
    target: u32,
    pid: u32,
    page_bytes: u64,
    stat: Handle,
    /// `None` if this user may not read it.
    io: Option<(Handle, Plan)>,
}

impl ProcessSource {
    /// `directory` is the process's own in `/proc`.
    ///
    /// # Errors
    /// Where the process is not there.
    pub fn open(directory: &Path, pid: u32, target: u32) -> io::Result<Self> {
        let io_path = directory.join("io");
        let io = std::fs::read(&io_path)
            .ok()
            .and_then(|sample| Some((Handle::open(&io_path).ok()?, Plan::learn(&IO, &sample))));
        Ok(Self {
            target,
            pid,
            page_bytes: rustix::param::page_size() as u64,
            stat: Handle::open(&directory.join("stat"))?,
            io,
        })
    }

    /// Sets the target's number.
    #[must_use]
    pub fn with_target(self, target: u32) -> Self {
        Self { target, ..self }
    }

    /// Whether `/proc/PID/io` can be read.
    #[must_use]
    pub fn has_io(&self) -> bool {
        self.io.is_some()
    }

    fn read_stat(&self, scratch: &mut Vec<u8>, cells: &mut [Cell; process::WIDTH]) -> Life {
        let read = timed(&self.stat, scratch);
        cells[process::STAT_T0_NS] = read.t0_ns;
        cells[process::STAT_T1_NS] = read.t1_ns;
        match read.reading {
            Reading::Gone => return Life::Gone,
            Reading::Outgrown | Reading::Failed => return Life::Alive,
            Reading::Bytes(bytes) => {
                pid_stat::counters(&scratch[..bytes], self.page_bytes, cells);
                // A leader that ended before its other threads is a zombie, but the process still runs.
                let is_last = cells[process::THREADS] <= 1;
                if is_last && pid_stat::has_ended(&scratch[..bytes]) {
                    return Life::Gone;
                }
            }
        }
        Life::Alive
    }

    fn read_io(&self, scratch: &mut Vec<u8>, cells: &mut [Cell; process::WIDTH]) {
        let Some((handle, plan)) = &self.io else { return };
        let read = timed(handle, scratch);
        if let Reading::Bytes(bytes) = read.reading {
            cells[process::IO_T0_NS] = read.t0_ns;
            cells[process::IO_T1_NS] = read.t1_ns;
            plan.read(&scratch[..bytes], cells);
        }
    }
}

impl Source for ProcessSource {
    fn sample(&mut self, tick: u64, scratch: &mut Vec<u8>, out: &mut RowSender) -> Life {
        let mut cells = [ABSENT; process::WIDTH];
        cells[process::PID] = u64::from(self.pid);
        cells[process::CPU_T0_NS] = monotonic_ns();
        let cpu_ns = sys::process_cpu_ns(self.pid);
        cells[process::CPU_T1_NS] = monotonic_ns();
        let life = self.read_stat(scratch, &mut cells);
        if life == Life::Gone && cells[process::USER_TICKS] == ABSENT {
            return Life::Gone;
        }
        // Only now is it certain that the pid still belonged to this process when its clock was read.
        cells[process::CPU_NS] = from_option(cpu_ns);
        self.read_io(scratch, &mut cells);
        send(out, tables::PROCESS, self.target, tick, &cells);
        life
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_io_has_a_cell() {
        let text = include_bytes!("../../tests/data/process/io");
        let mut cells = [ABSENT; process::WIDTH];
        Plan::learn(&IO, text).read(text, &mut cells);
        assert_eq!(cells[process::READ_CALL_BYTES], 795_064);
        assert_eq!(cells[process::WRITTEN_BYTES], 933_888);
        assert_eq!(cells[process::CANCELLED_BYTES], 28_672);
    }
}
