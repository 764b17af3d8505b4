//! Files with a line for each device: `/proc/diskstats` and `/proc/PID/net/dev`.

use std::io;
use std::path::Path;

use tare_record::ABSENT;
use tare_record::tables::{self, disk, interface};

use super::{ABOUT_A_SECOND_NS, Life, Seldom, Source, Timed, send, timed};
use crate::clock::monotonic_ns;
use crate::handle::{Handle, Reading};
use crate::parse::{diskstats, net_dev};
use crate::ring::RowSender;

/// A device with rows, and their target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub name: Vec<u8>,
    pub target: u32,
}

/// Finds the target of a line. The order of lines rarely changes, so the search starts after the last hit.
#[derive(Debug)]
struct Devices {
    known: Vec<Device>,
    expected: usize,
}

impl Devices {
    fn target_of(&mut self, name: &[u8]) -> Option<u32> {
        let count = self.known.len();
        for step in 0..count {
            let at = (self.expected + step) % count;
            if self.known[at].name == name {
                self.expected = at + 1;
                return Some(self.known[at].target);
            }
        }
        None
    }
}

pub struct DiskSource {
    handle: Handle,
    devices: Devices,
}

impl DiskSource {
    /// # Errors
    /// Where the file cannot be opened.
    pub fn open(path: &Path, known: Vec<Device>) -> io::Result<Self> {
        Ok(Self { handle: Handle::open(path)?, devices: Devices { known, expected: 0 } })
    }
}

impl Source for DiskSource {
    fn sample(&mut self, tick: u64, scratch: &mut Vec<u8>, out: &mut RowSender) -> Life {
        let read = timed(&self.handle, scratch);
        let Reading::Bytes(bytes) = read.reading else { return Life::Alive };
        for (name, words) in diskstats::devices(&scratch[..bytes]) {
            let Some(target) = self.devices.target_of(name) else { continue };
            let mut cells = [ABSENT; disk::WIDTH];
            cells[disk::T0_NS] = read.t0_ns;
            cells[disk::T1_NS] = read.t1_ns;
            diskstats::counters(words, &mut cells);
            send(out, tables::DISK, target, tick, &cells);
        }
        Life::Alive
    }
}

/// Checks whether the process whose network namespace is read still exists.
///
/// An open `net/dev` keeps its namespace alive and never fails, so the probe would keep the
/// interfaces of ended containers.
struct Lender {
    stat: Handle,
    seldom: Seldom,
}

impl Lender {
    fn is_gone(&mut self, scratch: &mut [u8]) -> bool {
        let now_ns = monotonic_ns();
        if !self.seldom.is_due(now_ns) {
            return false;
        }
        self.seldom.rest(now_ns, ABOUT_A_SECOND_NS);
        match self.stat.read(scratch) {
            Reading::Gone => true,
            Reading::Bytes(bytes) => crate::parse::pid_stat::has_ended(&scratch[..bytes]),
            Reading::Outgrown | Reading::Failed => false,
        }
    }
}

pub struct InterfaceSource {
    handle: Handle,
    lender: Lender,
    devices: Devices,
}

impl InterfaceSource {
    /// Interfaces of the network namespace of a process; `process` is its directory in `/proc`.
    ///
    /// # Errors
    /// Where a file cannot be opened.
    pub fn open(process: &Path, known: Vec<Device>) -> io::Result<Self> {
        Ok(Self {
            handle: Handle::open(&process.join("net/dev"))?,
            lender: Lender {
                stat: Handle::open(&process.join("stat"))?,
                seldom: Seldom::default(),
            },
            devices: Devices { known, expected: 0 },
        })
    }

    fn send_rows(&mut self, tick: u64, read: Timed, bytes: &[u8], out: &mut RowSender) {
        for (name, words) in net_dev::interfaces(bytes) {
            let Some(target) = self.devices.target_of(name) else { continue };
            let mut cells = [ABSENT; interface::WIDTH];
            cells[interface::T0_NS] = read.t0_ns;
            cells[interface::T1_NS] = read.t1_ns;
            net_dev::counters(words, &mut cells);
            send(out, tables::INTERFACE, target, tick, &cells);
        }
    }
}

impl Source for InterfaceSource {
    fn sample(&mut self, tick: u64, scratch: &mut Vec<u8>, out: &mut RowSender) -> Life {
        if self.lender.is_gone(scratch) {
            return Life::Gone;
        }
        let read = timed(&self.handle, scratch);
        match read.reading {
            Reading::Bytes(bytes) => self.send_rows(tick, read, &scratch[..bytes], out),
            Reading::Gone => return Life::Gone,
            Reading::Outgrown | Reading::Failed => {}
        }
        Life::Alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_in_any_order_and_strangers_are_not() {
        let known = [(b"sda".to_vec(), 7), (b"sdb".to_vec(), 8)]
            .map(|(name, target)| Device { name, target })
            .to_vec();
        let mut devices = Devices { known, expected: 0 };
        let found = [b"sda", b"sdb", b"sda", b"sdc", b"sdb"].map(|name| devices.target_of(name));
        assert_eq!(found, [Some(7), Some(8), Some(7), None, Some(8)]);
        assert_eq!(Devices { known: Vec::new(), expected: 0 }.target_of(b"sda"), None);
    }
}
