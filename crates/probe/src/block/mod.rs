//! Block I/O of a control group, counted when requests are issued to their device.
//!
//! A small BPF program on the tracepoint `block_rq_issue` adds the bytes of each request to the
//! control group that its `bio` belongs to, and to that group's ancestors. It counts only for
//! sampled groups. It is assembled here ([`program`]) with the field offsets of the running kernel
//! ([`btf`]), so neither a compiler nor kernel headers are needed.
//!
//! Not when requests complete: of a busy disk's completions, which all happen in a softirq, the kernel
//! shows some to no program (docs/journal/probe.md).

mod btf;
mod program;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use crate::sys::bpf::{self, CounterView, Map};
use btf::Btf;
use program::{Maps, Offsets};

/// Source of block counters, as named in traces.
pub const SOURCE: &str = "tp_btf/block_rq_issue";

/// The running kernel's own description of its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// The tracepoint's type there.
const TRACEPOINT: &str = "btf_trace_block_rq_issue";

/// Requests that are known at once. A device has some hundred for each of its queues.
const REQUESTS: u32 = 8192;

/// Most control groups that can be counted at once.
const SLOTS: u32 = 1024;
/// Number of counters of a slot.
const COUNTERS: usize = 4;

/// Counters of one control group since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    pub read_bytes: u64,
    pub reads: u64,
    pub written_bytes: u64,
    pub writes: u64,
}

/// The attached program and its maps.
pub struct BlockCounter {
    groups: Map<u64, u32>,
    counters: Map<u32, [u64; COUNTERS]>,
    view: Arc<CounterView>,
    free: Vec<u32>,
    /// Slots by control group: several targets of one group share its slot.
    shared: BTreeMap<u64, Shared>,
    _program: OwnedFd,
    _link: OwnedFd,
}

/// The tracepoint's type, and where the request is among its arguments.
#[derive(Clone, Copy)]
struct Tracepoint {
    kind: u32,
    request_at: i16,
}

impl Tracepoint {
    /// Its last argument is the request; before Linux 5.11 the queue came first (commit a54895fa057c).
    fn learn(btf: &Btf) -> io::Result<Self> {
        let request_at = match btf.parameters(TRACEPOINT)? {
            2 => 0,
            3 => 8,
            _ => return Err(io::Error::other(format!("this kernel's {TRACEPOINT} is another"))),
        };
        Ok(Self { kind: btf.typedef(TRACEPOINT)?, request_at })
    }
}

/// A slot, and the number of targets that use it.
struct Shared {
    slot: u32,
    targets: usize,
}

/// One control group's counters for one target. The sampling thread reads them without a system call.
#[derive(Clone, Debug)]
pub struct BlockSlot {
    view: Arc<CounterView>,
    slot: u32,
    group: u64,
    /// Counters of the slot when this target was added.
    before: BlockCounts,
}

impl BlockSlot {
    #[must_use]
    pub fn counts(&self) -> Option<BlockCounts> {
        let (now, before) = (load(&self.view, self.slot)?, self.before);
        Some(BlockCounts {
            read_bytes: now.read_bytes.checked_sub(before.read_bytes)?,
            reads: now.reads.checked_sub(before.reads)?,
            written_bytes: now.written_bytes.checked_sub(before.written_bytes)?,
            writes: now.writes.checked_sub(before.writes)?,
        })
    }
}

fn load(view: &CounterView, slot: u32) -> Option<BlockCounts> {
    let first = slot as usize * COUNTERS;
    Some(BlockCounts {
        read_bytes: view.load(first)?,
        reads: view.load(first + 1)?,
        written_bytes: view.load(first + 2)?,
        writes: view.load(first + 3)?,
    })
}

impl BlockCounter {
    /// Loads and attaches the program.
    ///
    /// # Errors
    /// `CAP_BPF` and `CAP_PERFMON`, or BTF, are missing, or the kernel's structs differ.
    pub fn attach() -> io::Result<Self> {
        let (tracepoint, offsets) = learn()?;
        let groups = Map::create(bpf::MAP_HASH, SLOTS, 0)?;
        let counters = Map::create(bpf::MAP_ARRAY, SLOTS, bpf::MAP_MMAPABLE)?;
        let issued: Map<u64, [u64; 2]> = Map::create(bpf::MAP_LRU_HASH, REQUESTS, 0)?;
        let maps = Maps {
            groups: groups.as_raw_fd(),
            counters: counters.as_raw_fd(),
            issued: issued.as_raw_fd(),
        };
        let instructions = program::assemble(offsets, tracepoint.request_at, maps);
        let program = bpf::load_tracing(&instructions, tracepoint.kind)?;
        let link = bpf::attach_tracing(&program)?;
        let view = Arc::new(CounterView::map(&counters, SLOTS as usize * COUNTERS)?);
        let free = (0..SLOTS).rev().collect();
        let shared = BTreeMap::new();
        Ok(Self { groups, counters, view, free, shared, _program: program, _link: link })
    }

    /// Starts to count for the control group of a directory.
    ///
    /// # Errors
    /// All slots are in use, or the directory does not exist any more.
    pub fn add(&mut self, directory: &Path) -> io::Result<BlockSlot> {
        // A control group's id is the inode of its directory (kernfs_id_ino, include/linux/kernfs.h).
        let group = directory.metadata()?.ino();
        if let Some(shared) = self.shared.get_mut(&group) {
            let before = load(&self.view, shared.slot)
                .ok_or_else(|| io::Error::other("its counters cannot be read"))?;
            shared.targets += 1;
            return Ok(BlockSlot {
                view: Arc::clone(&self.view),
                slot: shared.slot,
                group,
                before,
            });
        }
        let slot =
            self.free.pop().ok_or_else(|| io::Error::other("all 1024 block slots are taken"))?;
        self.counters.update(&slot, &[0; COUNTERS])?;
        self.groups.update(&group, &slot)?;
        self.shared.insert(group, Shared { slot, targets: 1 });
        let before = BlockCounts::default();
        Ok(BlockSlot { view: Arc::clone(&self.view), slot, group, before })
    }

    /// Stops counting for a target whose control group has ended.
    pub fn remove(&mut self, slot: &BlockSlot) {
        let Some(shared) = self.shared.get_mut(&slot.group) else { return };
        shared.targets -= 1;
        if shared.targets > 0 {
            return;
        }
        self.shared.remove(&slot.group);
        // An error means that the kernel has removed the group before.
        let _ = self.groups.delete(&slot.group);
        self.free.insert(0, slot.slot);
    }
}

/// Looks up the tracepoint and the structs' offsets in the running kernel.
fn learn() -> io::Result<(Tracepoint, Offsets)> {
    let mut file = File::open(BTF).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(source.kind(), format!("this kernel has no BTF at {BTF}"))
        }
        _ => source,
    })?;
    let mut names = vec![TRACEPOINT];
    let fields = program::FIELDS.iter().chain(&program::OF_DEVICE);
    names.extend(fields.flat_map(|(of, member)| [*of, *member]));
    let btf = Btf::find(&mut file, &names)?;
    Ok((Tracepoint::learn(&btf)?, Offsets::learn(&btf)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs CAP_BPF and a kernel with BTF; `make test-probe-root` runs it"]
    fn the_kernel_accepts_the_program() {
        BlockCounter::attach().expect("loaded and attached");
    }
}
