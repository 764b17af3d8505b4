//! A control group of either version: reads its files back to back, then parses them.

use std::ops::Range;

use tare_record::tables::{self, cgroup};
use tare_record::{ABSENT, Cell};

use super::item::Item;
use super::{Life, Source, send};
use crate::block::BlockSlot;
use crate::clock::monotonic_ns;
use crate::handle::Reading;
use crate::ring::RowSender;

/// Files of one group: more than any version has.
const MOST_ITEMS: usize = 24;

/// What one file gave in this tick.
#[derive(Clone, Debug, Default)]
struct Taken {
    item: usize,
    bytes: Range<usize>,
    t0_ns: u64,
    t1_ns: u64,
}

pub struct CgroupSource {
    target: u32,
    items: Vec<Item>,
    block: Option<BlockSlot>,
    taken: [Taken; MOST_ITEMS],
}

impl CgroupSource {
    #[must_use]
    pub fn new(target: u32, mut items: Vec<Item>, block: Option<BlockSlot>) -> Self {
        items.truncate(MOST_ITEMS);
        Self { target, items, block, taken: Default::default() }
    }

    fn read_block(&self, cells: &mut [Cell; cgroup::WIDTH]) {
        let Some(counts) = self.block.as_ref().and_then(BlockSlot::counts) else { return };
        cells[cgroup::BLOCK_AT_NS] = monotonic_ns();
        cells[cgroup::BLOCK_READ_BYTES] = counts.read_bytes;
        cells[cgroup::BLOCK_WRITTEN_BYTES] = counts.written_bytes;
        cells[cgroup::BLOCK_READS] = counts.reads;
        cells[cgroup::BLOCK_WRITES] = counts.writes;
    }

    /// Reads all files that are due; the end of one window is the start of the next.
    fn read_all(&mut self, scratch: &mut [u8]) -> (usize, Life) {
        let mut life = Life::Alive;
        let (mut count, mut filled) = (0, 0);
        let mut now_ns = monotonic_ns();
        for (at, item) in self.items.iter().enumerate() {
            if !item.is_due(now_ns) {
                continue;
            }
            let reading = item.handle.read(&mut scratch[filled..]);
            let t1_ns = monotonic_ns();
            let bytes = match reading {
                Reading::Bytes(bytes) => filled..filled + bytes,
                Reading::Failed => filled..filled,
                Reading::Gone => {
                    life = Life::Gone;
                    continue;
                }
            };
            filled = bytes.end;
            self.taken[count] = Taken { item: at, bytes, t0_ns: now_ns, t1_ns };
            count += 1;
            now_ns = t1_ns;
        }
        (count, life)
    }

    fn parse_all(&mut self, count: usize, scratch: &[u8]) -> [Cell; cgroup::WIDTH] {
        let mut cells = [ABSENT; cgroup::WIDTH];
        for taken in &self.taken[..count] {
            let item = &mut self.items[taken.item];
            let had_values = item.fill(&scratch[taken.bytes.clone()], &mut cells);
            item.stamp(taken.t0_ns, taken.t1_ns, &mut cells);
            item.rest(taken.t1_ns, had_values);
        }
        cells
    }
}

impl Source for CgroupSource {
    fn sample(&mut self, tick: u64, scratch: &mut [u8], out: &mut RowSender) -> Life {
        let (count, life) = self.read_all(scratch);
        if count > 0 {
            let mut cells = self.parse_all(count, scratch);
            self.read_block(&mut cells);
            send(out, tables::CGROUP, self.target, tick, &cells);
        }
        life
    }
}
