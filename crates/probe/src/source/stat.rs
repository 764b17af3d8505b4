//! `/proc/stat`: CPU times and events of the host.

use std::io;
use std::path::Path;

use tare_record::ABSENT;
use tare_record::tables::{self, cpu, system};

use super::{Life, Source, send, timed};
use crate::handle::{Handle, Reading};
use crate::parse::stat::{self, Line};
use crate::ring::RowSender;

/// Targets of the rows of one `/proc/stat`.
#[derive(Clone, Debug)]
pub struct StatTargets {
    pub host: u32,
    /// Target of the row for the sum over all CPUs.
    pub all: u32,
    /// Targets by CPU number; CPUs that are added later have no rows.
    pub cpus: Vec<u32>,
}

pub struct StatSource {
    handle: Handle,
    targets: StatTargets,
}

impl StatSource {
    /// # Errors
    /// Where the file cannot be opened.
    pub fn open(path: &Path, targets: StatTargets) -> io::Result<Self> {
        Ok(Self { handle: Handle::open(path)?, targets })
    }

    fn target_of(&self, number: Option<u64>) -> Option<u32> {
        match number {
            None => Some(self.targets.all),
            Some(number) => self.targets.cpus.get(number as usize).copied(),
        }
    }
}

impl Source for StatSource {
    fn sample(&mut self, tick: u64, scratch: &mut Vec<u8>, out: &mut RowSender) -> Life {
        let read = timed(&self.handle, scratch);
        let Reading::Bytes(bytes) = read.reading else { return Life::Alive };
        let mut host = [ABSENT; system::WIDTH];
        host[system::T0_NS] = read.t0_ns;
        host[system::T1_NS] = read.t1_ns;
        for line in stat::entries(&scratch[..bytes]) {
            match line {
                Line::Cpu { number, words } => {
                    let Some(target) = self.target_of(number) else { continue };
                    let mut cells = [ABSENT; cpu::WIDTH];
                    cells[cpu::T0_NS] = read.t0_ns;
                    cells[cpu::T1_NS] = read.t1_ns;
                    stat::cpu_times(words, &mut cells);
                    send(out, tables::CPU, target, tick, &cells);
                }
                Line::Other { key, words } => stat::system_line(key, words, &mut host),
            }
        }
        send(out, tables::SYSTEM, self.targets.host, tick, &host);
        Life::Alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring;
    use crate::source::SCRATCH_BYTES;
    use crate::tail::Memory;

    /// `/proc/stat` of a machine with so many CPUs and, for each, ten interrupts that it counts.
    fn made_up(cpus: usize) -> String {
        let times = "1841035142 9912345 734512345 99184512345 12345678 0 4512345 0 0 0";
        let each: Vec<String> = (0..cpus).map(|cpu| format!("cpu{cpu} {times}\n")).collect();
        let each = each.concat();
        let interrupts = "7234512 0 ".repeat(5 * cpus);
        format!(
            "cpu  {times}\n{each}intr 99 {interrupts}\nctxt 7\nprocesses 8\nprocs_running 3\nsoftirq 5 1 1 1 1 1 0 0 0 0 0\n"
        )
    }

    #[test]
    fn a_machine_with_very_many_cpus_is_read_whole() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("stat");
        for cpus in [2, 1200, 4096] {
            let text = made_up(cpus);
            assert_eq!(text.len() > SCRATCH_BYTES, cpus > 2);
            std::fs::write(&path, text).expect("written");
            let targets = StatTargets {
                host: 1,
                all: 2,
                cpus: (0..cpus as u32).map(|cpu| 3 + cpu).collect(),
            };
            let mut source = StatSource::open(&path, targets).expect("stat");
            let room = ring::room_words(4, cpus, 1.0);
            let (mut sender, mut receiver) = ring::ring(Memory::own(room));
            let mut scratch = vec![0; SCRATCH_BYTES];
            assert_eq!(source.sample(0, &mut scratch, &mut sender), Life::Alive);
            assert_eq!(sender.dropped_rows(), 0);
            let (mut rows, mut last) = (0, Vec::new());
            let end = receiver.written();
            let drained = receiver.drain(end, |row, _| {
                rows += 1;
                last = row.cells.to_vec();
            });
            assert_eq!(drained, Ok(()));
            assert_eq!(rows, cpus + 2, "each CPU, their sum and the host");
            // What stands after the longest line is there too.
            assert_eq!((last[system::INTERRUPTS], last[system::CONTEXT_SWITCHES]), (99, 7));
            assert_eq!((last[system::RUNNING], last[system::SOFTIRQS]), (3, 5));
            // Room that was made stays: the next tick allocates nothing.
            let grown = scratch.len();
            assert_eq!(source.sample(1, &mut scratch, &mut sender), Life::Alive);
            assert_eq!(scratch.len(), grown);
        }
    }

    #[test]
    fn a_file_without_an_end_is_missing() {
        let targets = StatTargets { host: 1, all: 2, cpus: vec![3] };
        let mut source = StatSource::open(Path::new("/dev/zero"), targets).expect("a file");
        let (mut sender, receiver) = ring::ring(Memory::own(1 << 10));
        source.sample(0, &mut vec![0; SCRATCH_BYTES], &mut sender);
        assert_eq!(receiver.written(), 0);
    }
}
