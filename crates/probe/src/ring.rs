//! The way from the sampling thread to the writer: a bounded ring of words without locks.
//!
//! A row that does not fit is dropped and counted; the sampling thread never waits.

use rtrb::{Consumer, Producer, RingBuffer};
use tare_record::row::{KEY_WORDS, Key, Row};
use tare_record::{Cell, tables};

/// The sampling thread's end.
pub struct RowSender {
    words: Producer<u64>,
    dropped_rows: u64,
}

/// The writer's end.
pub struct RowReceiver {
    words: Consumer<u64>,
    row: Vec<Cell>,
}

/// A ring that holds `capacity_words` words.
#[must_use]
pub fn ring(capacity_words: usize) -> (RowSender, RowReceiver) {
    let (sender, receiver) = RingBuffer::new(capacity_words);
    let widest = tables::ALL.iter().map(|table| table.columns.len()).max().unwrap_or(0);
    (
        RowSender { words: sender, dropped_rows: 0 },
        RowReceiver { words: receiver, row: vec![0; widest] },
    )
}

impl RowSender {
    /// Hands a row on, or drops and counts it.
    pub fn send(&mut self, key: Key, cells: &[Cell]) {
        let Ok(chunk) = self.words.write_chunk_uninit(KEY_WORDS + cells.len()) else {
            self.dropped_rows += 1;
            return;
        };
        chunk.fill_from_iter(key.words().into_iter().chain(cells.iter().copied()));
    }

    #[must_use]
    pub fn dropped_rows(&self) -> u64 {
        self.dropped_rows
    }

    #[must_use]
    pub fn is_half_full(&self) -> bool {
        self.words.slots() < self.words.buffer().capacity() / 2
    }
}

impl RowReceiver {
    /// Words that wait now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.words.slots()
    }

    /// Hands the rows in the next `words` words to `each`.
    ///
    /// `words` comes from [`RowReceiver::waiting`]: what arrives meanwhile is left for the next time.
    pub fn drain(&mut self, mut words: usize, mut each: impl FnMut(Row<'_>)) {
        while words > 0 {
            let mut keys = [0; KEY_WORDS];
            if !self.take(&mut keys) {
                return;
            }
            let key = Key::from_words(keys);
            let width = tables::ALL[key.table as usize].columns.len();
            let mut row = std::mem::take(&mut self.row);
            let whole = self.take(&mut row[..width]);
            if whole {
                each(Row { key, cells: &row[..width] });
            }
            self.row = row;
            words = words.saturating_sub(KEY_WORDS + width);
        }
    }

    fn take(&mut self, into: &mut [u64]) -> bool {
        let Ok(chunk) = self.words.read_chunk(into.len()) else { return false };
        let (first, second) = chunk.as_slices();
        into[..first.len()].copy_from_slice(first);
        into[first.len()..].copy_from_slice(second);
        chunk.commit_all();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_record::tables::tick;

    fn key(tick: u64) -> Key {
        Key { table: tables::TICK, target: 0, tick }
    }

    #[test]
    fn rows_arrive_whole_and_in_order_across_the_rings_end() {
        let (mut sender, mut receiver) = ring(40);
        let mut seen = Vec::new();
        for number in 0..100 {
            sender.send(key(number), &[number; tick::WIDTH]);
            let waiting = receiver.waiting();
            receiver.drain(waiting, |row| {
                assert!(row.cells.iter().all(|cell| *cell == row.key.tick));
                seen.push(row.key.tick);
            });
        }
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
        assert_eq!(sender.dropped_rows(), 0);
    }

    #[test]
    fn a_full_ring_drops_rows_and_counts_them() {
        let (mut sender, mut receiver) = ring(3 * (KEY_WORDS + tick::WIDTH));
        for number in 0..5 {
            sender.send(key(number), &[number; tick::WIDTH]);
        }
        assert_eq!(sender.dropped_rows(), 2);
        let waiting = receiver.waiting();
        let mut seen = 0;
        receiver.drain(waiting, |_| seen += 1);
        assert_eq!(seen, 3);
    }
}
