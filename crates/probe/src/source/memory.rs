//! `/proc/meminfo` and `/proc/vmstat`.

use std::io;
use std::path::Path;

use tare_record::ABSENT;
use tare_record::tables::{self, memory};

use super::{Life, Source, send, timed};
use crate::handle::{Handle, Reading};
use crate::parse::keyed::{Plan, Wanted};
use crate::ring::RowSender;

const KIB: u64 = 1024;

const MEMINFO: [Wanted; 18] = [
    Wanted { key: b"MemTotal:", cell: memory::TOTAL_BYTES, scale: KIB },
    Wanted { key: b"MemFree:", cell: memory::FREE_BYTES, scale: KIB },
    Wanted { key: b"MemAvailable:", cell: memory::AVAILABLE_BYTES, scale: KIB },
    Wanted { key: b"Buffers:", cell: memory::BUFFERS_BYTES, scale: KIB },
    Wanted { key: b"Cached:", cell: memory::CACHED_BYTES, scale: KIB },
    Wanted { key: b"SwapCached:", cell: memory::SWAP_CACHED_BYTES, scale: KIB },
    Wanted { key: b"Active:", cell: memory::ACTIVE_BYTES, scale: KIB },
    Wanted { key: b"Inactive:", cell: memory::INACTIVE_BYTES, scale: KIB },
    Wanted { key: b"SwapTotal:", cell: memory::SWAP_TOTAL_BYTES, scale: KIB },
    Wanted { key: b"SwapFree:", cell: memory::SWAP_FREE_BYTES, scale: KIB },
    Wanted { key: b"Dirty:", cell: memory::DIRTY_BYTES, scale: KIB },
    Wanted { key: b"Writeback:", cell: memory::WRITEBACK_BYTES, scale: KIB },
    Wanted { key: b"AnonPages:", cell: memory::ANON_BYTES, scale: KIB },
    Wanted { key: b"Mapped:", cell: memory::MAPPED_BYTES, scale: KIB },
    Wanted { key: b"Shmem:", cell: memory::SHMEM_BYTES, scale: KIB },
    Wanted { key: b"Slab:", cell: memory::SLAB_BYTES, scale: KIB },
    Wanted { key: b"SReclaimable:", cell: memory::SLAB_RECLAIMABLE_BYTES, scale: KIB },
    Wanted { key: b"Committed_AS:", cell: memory::COMMITTED_BYTES, scale: KIB },
];

const VMSTAT: [Wanted; 12] = [
    Wanted { key: b"pgpgin ", cell: memory::PGPGIN_KIB, scale: 1 },
    Wanted { key: b"pgpgout ", cell: memory::PGPGOUT_KIB, scale: 1 },
    Wanted { key: b"pswpin ", cell: memory::SWAP_IN_PAGES, scale: 1 },
    Wanted { key: b"pswpout ", cell: memory::SWAP_OUT_PAGES, scale: 1 },
    Wanted { key: b"pgfault ", cell: memory::FAULTS, scale: 1 },
    Wanted { key: b"pgmajfault ", cell: memory::MAJOR_FAULTS, scale: 1 },
    Wanted { key: b"pgscan_kswapd ", cell: memory::SCAN_KSWAPD_PAGES, scale: 1 },
    Wanted { key: b"pgscan_direct ", cell: memory::SCAN_DIRECT_PAGES, scale: 1 },
    Wanted { key: b"pgsteal_kswapd ", cell: memory::STEAL_KSWAPD_PAGES, scale: 1 },
    Wanted { key: b"pgsteal_direct ", cell: memory::STEAL_DIRECT_PAGES, scale: 1 },
    Wanted { key: b"workingset_refault_file ", cell: memory::REFAULT_FILE_PAGES, scale: 1 },
    Wanted { key: b"oom_kill ", cell: memory::OOM_KILLS, scale: 1 },
];

struct Keyed {
    handle: Handle,
    plan: Plan,
    /// First of the two cells of the window.
    window: usize,
}

impl Keyed {
    fn open(path: &Path, wanted: &[Wanted], window: usize) -> io::Result<Self> {
        let plan = Plan::learn(wanted, &std::fs::read(path)?);
        Ok(Self { handle: Handle::open(path)?, plan, window })
    }
}

pub struct MemorySource {
    files: [Keyed; 2],
    target: u32,
}

impl MemorySource {
    /// # Errors
    /// Where a file cannot be opened.
    pub fn open(proc: &Path, target: u32) -> io::Result<Self> {
        let files = [
            Keyed::open(&proc.join("meminfo"), &MEMINFO, memory::MEMINFO_T0_NS)?,
            Keyed::open(&proc.join("vmstat"), &VMSTAT, memory::VMSTAT_T0_NS)?,
        ];
        Ok(Self { files, target })
    }
}

impl Source for MemorySource {
    fn sample(&mut self, tick: u64, scratch: &mut Vec<u8>, out: &mut RowSender) -> Life {
        let mut cells = [ABSENT; memory::WIDTH];
        for file in &self.files {
            let read = timed(&file.handle, scratch);
            let Reading::Bytes(bytes) = read.reading else { continue };
            cells[file.window] = read.t0_ns;
            cells[file.window + 1] = read.t1_ns;
            file.plan.read(&scratch[..bytes], &mut cells);
        }
        send(out, tables::MEMORY, self.target, tick, &cells);
        Life::Alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wanted_key_is_one_that_a_kernel_prints() {
        let files: [(&[Wanted], &[u8]); 2] = [
            (&MEMINFO, include_bytes!("../../tests/data/host/meminfo")),
            (&VMSTAT, include_bytes!("../../tests/data/host/vmstat")),
        ];
        let mut cells = [ABSENT; memory::WIDTH];
        for (wanted, text) in files {
            Plan::learn(wanted, text).read(text, &mut cells);
            for want in wanted {
                assert_ne!(cells[want.cell], ABSENT, "{}", String::from_utf8_lossy(want.key));
            }
        }
        assert_eq!(cells[memory::TOTAL_BYTES], 24_684_084 * KIB);
    }

    #[test]
    fn windows_stand_side_by_side() {
        assert_eq!(memory::MEMINFO_T0_NS + 1, memory::MEMINFO_T1_NS);
        assert_eq!(memory::VMSTAT_T0_NS + 1, memory::VMSTAT_T1_NS);
    }
}
