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
    /// The row that adds up all CPUs.
    pub all: u32,
    /// By CPU number; a CPU that comes later has no rows.
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
    fn sample(&mut self, tick: u64, scratch: &mut [u8], out: &mut RowSender) -> Life {
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
