//! A control group of either version.

use tare_record::tables::{self, cgroup};
use tare_record::{ABSENT, Cell};

use super::item::Item;
use super::{Life, Source, send, timed};
use crate::block::BlockSlot;
use crate::clock::monotonic_ns;
use crate::handle::Reading;
use crate::ring::RowSender;

pub struct CgroupSource {
    target: u32,
    items: Vec<Item>,
    block: Option<BlockSlot>,
}

impl CgroupSource {
    #[must_use]
    pub fn new(target: u32, items: Vec<Item>, block: Option<BlockSlot>) -> Self {
        Self { target, items, block }
    }

    /// Reads due files into the row. Each is parsed immediately, while its bytes are in the nearest
    /// cache; its window ends before parsing.
    fn read_files(
        &mut self,
        scratch: &mut Vec<u8>,
        cells: &mut [Cell; cgroup::WIDTH],
    ) -> (usize, Life) {
        let (mut count, mut life) = (0, Life::Alive);
        let now_ns = monotonic_ns();
        for item in &mut self.items {
            if !item.is_due(now_ns) {
                continue;
            }
            let read = timed(&item.handle, scratch);
            let bytes = match read.reading {
                Reading::Bytes(bytes) => bytes,
                Reading::Outgrown | Reading::Failed => 0,
                Reading::Gone => {
                    life = Life::Gone;
                    continue;
                }
            };
            let had_values = item.fill(&scratch[..bytes], cells);
            item.stamp(read.t0_ns, read.t1_ns, cells);
            item.rest(read.t1_ns, had_values);
            count += 1;
        }
        (count, life)
    }

    fn read_block(&self, cells: &mut [Cell; cgroup::WIDTH]) {
        let Some(counts) = self.block.as_ref().and_then(BlockSlot::counts) else { return };
        cells[cgroup::BLOCK_AT_NS] = monotonic_ns();
        cells[cgroup::BLOCK_READ_BYTES] = counts.read_bytes;
        cells[cgroup::BLOCK_WRITTEN_BYTES] = counts.written_bytes;
        cells[cgroup::BLOCK_READS] = counts.reads;
        cells[cgroup::BLOCK_WRITES] = counts.writes;
    }
}

impl Source for CgroupSource {
    fn sample(&mut self, tick: u64, scratch: &mut Vec<u8>, out: &mut RowSender) -> Life {
        let mut cells = [ABSENT; cgroup::WIDTH];
        let (count, life) = self.read_files(scratch, &mut cells);
        if count > 0 {
            self.read_block(&mut cells);
            send(out, tables::CGROUP, self.target, tick, &cells);
        }
        life
    }
}
