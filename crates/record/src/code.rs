//! The packed form of rows inside a journal frame.
//!
//! Each frame can be unpacked on its own: the first row of a target is packed as the difference
//! from zeros, each further one as the difference from the row before it. A row is its key, a
//! bitmap of the cells that changed, and the changes as zigzag varints, so that a counter that did
//! not change takes one bit.

use std::collections::HashMap;

use crate::Cell;
use crate::row::{Key, Row};
use crate::tables;

/// Appends an unsigned number, seven bits per byte.
fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn zigzag(delta: u64) -> u64 {
    (delta << 1) ^ ((delta as i64) >> 63) as u64
}

fn unzigzag(coded: u64) -> u64 {
    (coded >> 1) ^ (coded & 1).wrapping_neg()
}

/// Rows seen so far in this frame, by table and target.
type Previous = HashMap<u64, Vec<Cell>>;

/// Packs rows into the payload of one frame.
#[derive(Default)]
pub struct Packer {
    out: Vec<u8>,
    previous: Previous,
    rows: usize,
    /// Targets to forget when the frame is closed; rows until then still refer to them.
    gone: Vec<u32>,
}

impl Packer {
    pub fn push(&mut self, row: Row<'_>) {
        let [place, tick] = row.key.words();
        put_varint(&mut self.out, u64::from(row.key.table));
        put_varint(&mut self.out, u64::from(row.key.target));
        put_varint(&mut self.out, tick);
        let width = row.cells.len();
        let previous = self.previous.entry(place).or_insert_with(|| vec![0; width]);
        let bitmap_at = self.out.len();
        self.out.resize(bitmap_at + width.div_ceil(8), 0);
        for (at, (&cell, before)) in row.cells.iter().zip(previous.iter_mut()).enumerate() {
            if cell != *before {
                self.out[bitmap_at + at / 8] |= 1 << (at % 8);
                put_varint(&mut self.out, zigzag(cell.wrapping_sub(*before)));
                *before = cell;
            }
        }
        self.rows += 1;
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.out
    }

    /// Starts the next frame and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.out.clear();
        self.rows = 0;
        for target in self.gone.drain(..) {
            self.previous.retain(|place, _| (*place & 0xffff_ffff) != u64::from(target));
        }
        for cells in self.previous.values_mut() {
            cells.fill(0);
        }
    }

    /// Forgets a target that has ended, when the current frame is closed.
    pub fn forget(&mut self, target: u32) {
        self.gone.push(target);
    }
}

/// Unpacks one frame and calls `each` with each row. `None`: the payload is not from a packer.
pub fn unpack(mut bytes: &[u8], mut each: impl FnMut(Row<'_>)) -> Option<()> {
    let mut previous = Previous::new();
    while !bytes.is_empty() {
        let key = Key {
            table: take_varint(&mut bytes)?.try_into().ok()?,
            target: take_varint(&mut bytes)?.try_into().ok()?,
            tick: take_varint(&mut bytes)?,
        };
        let width = tables::ALL.get(key.table as usize)?.columns.len();
        let cells = previous.entry(key.words()[0]).or_insert_with(|| vec![0; width]);
        let (bitmap, rest) = bytes.split_at_checked(width.div_ceil(8))?;
        bytes = rest;
        for (at, cell) in cells.iter_mut().enumerate() {
            if bitmap[at / 8] >> (at % 8) & 1 == 1 {
                *cell = cell.wrapping_add(unzigzag(take_varint(&mut bytes)?));
            }
        }
        each(Row { key, cells });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ABSENT;

    fn rows() -> Vec<(Key, Vec<Cell>)> {
        let table = 0;
        let width = tables::ALL[0].columns.len();
        (0..50)
            .map(|tick| {
                let cells = (0..width as u64)
                    .map(|at| match (tick + at) % 5 {
                        0 => ABSENT,
                        1 => 0,
                        2 => i64::MAX as u64,
                        _ => tick * 1_000_003 + at,
                    })
                    .collect();
                (Key { table, target: (tick % 3) as u32, tick }, cells)
            })
            .collect()
    }

    #[test]
    fn rows_come_back_as_they_went_in() {
        let mut packer = Packer::default();
        for (key, cells) in rows() {
            packer.push(Row { key, cells: &cells });
        }
        let mut back = Vec::new();
        unpack(packer.payload(), |row| back.push((row.key, row.cells.to_vec()))).expect("whole");
        assert_eq!(back, rows());
    }

    #[test]
    fn a_frame_stands_alone_after_clear() {
        let mut packer = Packer::default();
        let (key, cells) = rows().remove(4);
        packer.push(Row { key, cells: &cells });
        let first = packer.payload().to_vec();
        packer.clear();
        packer.push(Row { key, cells: &cells });
        assert_eq!(packer.payload(), first);
    }

    #[test]
    fn a_cut_payload_is_refused() {
        let mut packer = Packer::default();
        for (key, cells) in rows() {
            packer.push(Row { key, cells: &cells });
        }
        let whole = packer.payload();
        assert_eq!(unpack(&whole[..whole.len() - 1], |_| {}), None);
    }

    #[test]
    fn a_row_that_stood_still_costs_its_key_and_bitmap() {
        let mut packer = Packer::default();
        let (key, cells) = rows().remove(3);
        packer.push(Row { key, cells: &cells });
        let first = packer.payload().len();
        packer.push(Row { key, cells: &cells });
        assert_eq!(packer.payload().len() - first, 3 + cells.len().div_ceil(8));
    }
}
