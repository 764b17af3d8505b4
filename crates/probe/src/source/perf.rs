//! Performance counters of a control group: two groups of counters on each CPU, summed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use tare_record::ABSENT;
use tare_record::tables::{self, perf};

use super::{Life, Source, send};
use crate::clock::monotonic_ns;
use crate::ring::RowSender;
use crate::sys::perf::{Event, open_for_group};

/// Counter → its cell. Numbers are those of `enum perf_hw_id`.
const HARDWARE: [(Event, usize); 4] = [
    (Event::Hardware(0), perf::CYCLES),
    (Event::Hardware(1), perf::INSTRUCTIONS),
    (Event::Hardware(2), perf::CACHE_REFERENCES),
    (Event::Hardware(3), perf::CACHE_MISSES),
];

/// Those of `enum perf_sw_ids`.
const SOFTWARE: [(Event, usize); 3] = [
    (Event::Software(3), perf::CONTEXT_SWITCHES),
    (Event::Software(4), perf::MIGRATIONS),
    (Event::Software(2), perf::FAULTS),
];

/// Words before a group's counters: their number, time enabled, time running.
const HEAD_WORDS: usize = 3;

/// Counters that are read together.
struct Group {
    leader: OwnedFd,
    /// Kept open, as closing a member ends it.
    _members: Vec<OwnedFd>,
    cells: &'static [(Event, usize)],
    has_times: bool,
}

pub struct PerfSource {
    target: u32,
    groups: Vec<Group>,
}

impl PerfSource {
    /// Opens the counters that the machine has, for the control group of this directory.
    ///
    /// # Errors
    /// Not even the software counters are allowed.
    pub fn open(directory: &Path, cpus: &[u64], target: u32) -> io::Result<Self> {
        let group = File::open(directory)?;
        let mut groups = Vec::new();
        for &cpu in cpus {
            groups.push(open_group(&group, cpu, &SOFTWARE, false)?);
            // These are missing without a PMU, as in most virtual machines.
            groups.extend(open_group(&group, cpu, &HARDWARE, true).ok());
        }
        Ok(Self { target, groups })
    }

    /// Sets the target's number.
    #[must_use]
    pub fn with_target(self, target: u32) -> Self {
        Self { target, ..self }
    }

    /// Whether hardware counters are among them.
    #[must_use]
    pub fn has_hardware(&self) -> bool {
        self.groups.iter().any(|group| group.has_times)
    }
}

fn open_group(
    directory: &File,
    cpu: u64,
    cells: &'static [(Event, usize)],
    has_times: bool,
) -> io::Result<Group> {
    let leader = open_for_group(directory.as_fd(), cpu, cells[0].0, None)?;
    let members = cells[1..]
        .iter()
        .map(|(event, _)| open_for_group(directory.as_fd(), cpu, *event, Some(&leader)))
        .collect::<io::Result<Vec<_>>>()?;
    Ok(Group { leader, _members: members, cells, has_times })
}

fn add(cell: &mut u64, value: u64) {
    *cell = if *cell == ABSENT { value } else { cell.saturating_add(value) };
}

impl Source for PerfSource {
    fn sample(&mut self, tick: u64, scratch: &mut Vec<u8>, out: &mut RowSender) -> Life {
        let mut cells = [ABSENT; perf::WIDTH];
        cells[perf::T0_NS] = monotonic_ns();
        for group in &self.groups {
            let length = (HEAD_WORDS + group.cells.len()) * size_of::<u64>();
            let Ok(bytes) = rustix::io::read(&group.leader, &mut scratch[..length]) else {
                continue;
            };
            if bytes < length {
                continue;
            }
            let mut words = scratch[..length].chunks_exact(8).map(|word| {
                u64::from_ne_bytes([
                    word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7],
                ])
            });
            let (_, enabled, running) = (words.next(), words.next(), words.next());
            if group.has_times {
                add(&mut cells[perf::ENABLED_NS], enabled.unwrap_or_default());
                add(&mut cells[perf::RUNNING_NS], running.unwrap_or_default());
            }
            for ((_, cell), value) in group.cells.iter().zip(words) {
                add(&mut cells[*cell], value);
            }
        }
        cells[perf::T1_NS] = monotonic_ns();
        send(out, tables::PERF, self.target, tick, &cells);
        Life::Alive
    }
}
