//! A bounded, lock-free ring of words, which passes rows from the sampling thread to the writer.
//!
//! It is in a tail, if there is one, so that rows outlive the program: a row counts once the
//! position after it is published, and its room is reused only after it is written elsewhere. A row
//! that does not fit is dropped and counted; the sampling thread never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tare_record::Cell;
use tare_record::row::{Key, Row};
use tare_record::tables::disk;
use tare_record::tail::{Broken, Framer, HEAD_WORDS, Walker, framed_words, head};

use crate::tail::Memory;

/// The sampling thread's end.
pub struct RowSender {
    memory: Arc<Memory>,
    framer: Framer,
    written: u64,
    /// Last known position of the reader; there may be more room by now.
    consumed: u64,
    dropped_rows: u64,
}

/// The writer's end.
pub struct RowReceiver {
    memory: Arc<Memory>,
    walker: Walker,
    read: u64,
}

/// Makes a ring in this memory, whose size in words is a power of two.
#[must_use]
pub fn ring(memory: Memory) -> (RowSender, RowReceiver) {
    let memory = Arc::new(memory);
    let receiver = RowReceiver { memory: Arc::clone(&memory), walker: Walker::default(), read: 0 };
    let framer = Framer::default();
    (RowSender { memory, framer, written: 0, consumed: 0, dropped_rows: 0 }, receiver)
}

/// Room for two seconds of rows, in case the disk lets the writer wait, within 0.5 and 2 MiB; a power
/// of two.
///
/// The ring is walked through and so resides whole; more than that is only taken where a single
/// tick is so large that eight of them need it. A source sends a row or two of up to 64 cells, or a
/// narrow one for each of its targets: CPUs, disks, interfaces.
#[must_use]
pub fn room_words(sources: usize, targets: usize, rate_hz: f64) -> usize {
    const WORDS_A_SOURCE: usize = 80;
    let a_tick = (sources + 1) * WORDS_A_SOURCE + targets * framed_words(disk::WIDTH);
    let two_seconds = a_tick.saturating_mul(2 * rate_hz.ceil() as usize);
    two_seconds.clamp(1 << 16, 1 << 18).max(8 * a_tick).next_power_of_two()
}

fn slots(memory: &Memory) -> &[AtomicU64] {
    &memory[HEAD_WORDS..]
}

impl RowSender {
    /// Sends a row, or drops and counts it.
    pub fn send(&mut self, key: Key, cells: &[Cell]) {
        let ring = slots(&self.memory);
        let end = self.written + framed_words(cells.len()) as u64;
        if end - self.consumed > ring.len() as u64 {
            self.consumed = self.memory[head::CONSUMED].load(Ordering::Acquire);
            if end - self.consumed > ring.len() as u64 {
                self.dropped_rows += 1;
                return;
            }
        }
        let keys = key.words();
        let framed = self.framer.word(self.written, keys, cells);
        let words = [framed].into_iter().chain(keys).chain(cells.iter().copied());
        for (position, word) in (self.written..end).zip(words) {
            ring[(position & (ring.len() as u64 - 1)) as usize].store(word, Ordering::Relaxed);
        }
        self.written = end;
        self.memory[head::WRITTEN].store(end, Ordering::Release);
    }

    #[must_use]
    pub fn dropped_rows(&self) -> u64 {
        self.dropped_rows
    }

    /// Whether a quarter is full, so that the writer has the time in which the rest fills.
    pub fn is_filling(&mut self) -> bool {
        let quarter = slots(&self.memory).len() as u64 / 4;
        if self.written - self.consumed < quarter {
            return false;
        }
        self.consumed = self.memory[head::CONSUMED].load(Ordering::Acquire);
        self.written - self.consumed >= quarter
    }
}

impl RowReceiver {
    /// Position up to which there are rows.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.memory[head::WRITTEN].load(Ordering::Acquire)
    }

    /// Calls `each` with the rows up to `end`, and the position after each; their room stays in use.
    ///
    /// `end` is from [`RowReceiver::written`]; rows that arrive later are left for the next call.
    ///
    /// # Errors
    /// Something else has written into this memory.
    pub fn drain(&mut self, end: u64, each: impl FnMut(Row<'_>, u64)) -> Result<(), Broken> {
        let ring = slots(&self.memory);
        let word = |at: usize| ring[at].load(Ordering::Relaxed);
        self.walker.walk(ring.len() as u64, self.read, end, word, each)?;
        self.read = end;
        Ok(())
    }

    /// Frees the room of all drained rows, which are stored elsewhere.
    pub fn release(&mut self) {
        self.memory[head::CONSUMED].store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use tare_record::tables::{self, cgroup, tick};

    /// The figures of docs/reference/trace-journal.md, from the rows as they are.
    #[test]
    fn room_and_rows_are_as_large_as_the_reference_says() {
        let (group, tick) = (8 * framed_words(cgroup::WIDTH), 8 * framed_words(tick::WIDTH));
        assert_eq!((group, tick), (520, 104));
        assert_eq!(8 * room_words(1, 8, 1.0), 512 << 10);
        assert_eq!(8 * room_words(1, 8, 1000.0), 2 << 20);
        assert_eq!(8 * room_words(500, 508, 1.0), 4 << 20);
        assert_eq!(8 * room_words(4, 4104, 1.0), 8 << 20);
        let ticks_to_a_quarter = (1_usize << 20).div_ceil(500 * group + tick);
        assert_eq!(ticks_to_a_quarter, 5);
    }

    fn key(tick: u64) -> Key {
        Key { table: tables::TICK, target: 0, tick }
    }

    #[test]
    fn rows_arrive_whole_and_in_order_across_the_rings_end() {
        let (mut sender, mut receiver) = ring(Memory::own(64));
        let mut seen = Vec::new();
        for number in 0..100 {
            sender.send(key(number), &[number; tick::WIDTH]);
            let end = receiver.written();
            let drained = receiver.drain(end, |row, _| {
                assert!(row.cells.iter().all(|cell| *cell == row.key.tick));
                seen.push(row.key.tick);
            });
            assert_eq!(drained, Ok(()));
            receiver.release();
        }
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
        assert_eq!(sender.dropped_rows(), 0);
    }

    #[test]
    fn a_full_ring_drops_rows_and_counts_them_until_what_was_drained_is_safe() {
        let (mut sender, mut receiver) = ring(Memory::own(64));
        let fits = 64 / framed_words(tick::WIDTH) as u64;
        for number in 0..fits + 2 {
            sender.send(key(number), &[number; tick::WIDTH]);
        }
        assert_eq!(sender.dropped_rows(), 2);
        let mut seen = 0;
        let end = receiver.written();
        assert_eq!(receiver.drain(end, |_, _| seen += 1), Ok(()));
        assert_eq!(seen, fits);
        sender.send(key(9), &[9; tick::WIDTH]);
        assert_eq!(sender.dropped_rows(), 3, "drained, but not in safety");
        receiver.release();
        sender.send(key(9), &[9; tick::WIDTH]);
        assert_eq!(sender.dropped_rows(), 3);
    }

    #[test]
    fn foreign_words_are_told_and_not_taken_for_rows() {
        let memory = Memory::own(64);
        let (mut sender, mut receiver) = ring(memory);
        sender.send(key(1), &[1; tick::WIDTH]);
        sender.memory[HEAD_WORDS + 5].store(77, Ordering::Relaxed);
        let end = receiver.written();
        let drained = receiver.drain(end, |_, _| panic!("no row"));
        assert_eq!(drained.map_err(|broken| broken.position), Err(0));
    }

    /// Rows of two widths race through a small ring; each must come whole, once, in order.
    #[test]
    fn two_threads_never_see_half_a_row() {
        const ROWS: u64 = 50_000;
        let (mut sender, mut receiver) = ring(Memory::own(512));
        let deadline = Instant::now() + Duration::from_secs(60);
        let writer = std::thread::spawn(move || {
            let mut number = 0_u64;
            while number < ROWS && Instant::now() < deadline {
                let dropped = sender.dropped_rows();
                if number.is_multiple_of(3) {
                    let key = Key { table: tables::CGROUP, target: 1, tick: number };
                    sender.send(key, &[number; cgroup::WIDTH]);
                } else {
                    sender.send(key(number), &[number; tick::WIDTH]);
                }
                if sender.dropped_rows() == dropped {
                    number += 1;
                } else {
                    std::thread::yield_now();
                }
            }
            number
        });
        let mut next = 0;
        loop {
            let is_last = writer.is_finished();
            let end = receiver.written();
            let before = next;
            let drained = receiver.drain(end, |row, _| {
                assert_eq!(row.key.tick, next);
                assert!(row.cells.iter().all(|cell| *cell == next));
                next += 1;
            });
            assert_eq!(drained, Ok(()));
            receiver.release();
            if is_last {
                break;
            }
            if next == before {
                std::thread::yield_now();
            }
        }
        assert_eq!(writer.join().expect("no panic"), next);
        assert_eq!(next, ROWS, "not all within a minute");
    }
}
