//! Journals and tails with anything in them: an error, never a panic, and no memory out of a length in the file.
//!
//! `make fuzz-probe` sets `PROPTEST_CASES` to many more cases than a test takes.

use std::fs;

use proptest::prelude::*;
use tare_record::code;
use tare_record::header::Header;
use tare_record::journal::{Entry, Reader, Writer, recover};
use tare_record::row::{Key, Row};
use tare_record::schema::Ticks;
use tare_record::tables::{self, tick};
use tare_record::tail::{Framer, Walker, framed_words};

fn header() -> Header {
    Header {
        trace_version: tare_record::TRACE_VERSION,
        probe_version: String::new(),
        rate_hz: 1.0,
        host_rate_hz: 1.0,
        period_ns: 1_000_000_000,
        ticks: Ticks { jiffy_ns: 4_000_000, user_hz: 100 },
        page_bytes: 4096,
        kernel: String::new(),
        cpus: 1,
        boot_id: String::new(),
        scheduler: String::new(),
        scheduler_refused: None,
        cgroup_layout: String::new(),
        block_source: String::new(),
        block_refused: None,
        tail: None,
        tail_refused: None,
        started_monotonic_ns: 0,
        started_realtime_ns: 0,
    }
}

/// A whole journal of forty rows.
fn journal() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, "journal".as_ref(), &header()).expect("begun");
    for tick in 0..40 {
        let cells = [tick * 1_000_003; tick::WIDTH];
        writer.push(Row { key: Key { table: tables::TICK, target: 0, tick }, cells: &cells });
        if tick % 10 == 9 {
            writer.flush(tick * 8).expect("written");
        }
    }
    drop(writer);
    bytes
}

/// Changes of bytes: where, and to what; then where it is cut, and what is appended.
type Damage = (Vec<(prop::sample::Index, u8)>, Option<prop::sample::Index>, Vec<u8>);

fn damage() -> impl Strategy<Value = Damage> {
    (
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        prop::option::of(any::<prop::sample::Index>()),
        prop::collection::vec(any::<u8>(), 0..64),
    )
}

fn damaged(mut bytes: Vec<u8>, (changes, cut, more): Damage) -> Vec<u8> {
    for (at, byte) in changes {
        let at = at.index(bytes.len());
        bytes[at] = byte;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len()));
    }
    bytes.extend(more);
    bytes
}

/// Whether it could be read to its end.
fn read(bytes: &[u8]) -> bool {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("journal.tare");
    fs::write(&path, bytes).expect("written");
    let _held = recover(&path);
    let Ok(mut reader) = Reader::open(&path) else { return false };
    loop {
        match reader.entry() {
            Ok(Some(Entry::Rows { packed, .. })) => {
                let _rows = code::unpack(packed, |row| assert!(!row.cells.is_empty()));
            }
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// One frame with a right checksum, so that what is inside is looked at: kind, payload.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(payload);
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes.push(kind);
    bytes.extend(hasher.finalize().to_le_bytes());
    bytes.extend(payload);
    bytes
}

#[test]
fn the_undamaged_journal_is_read_to_its_end() {
    assert!(read(&journal()));
}

proptest! {
    #[test]
    fn no_damaged_journal_makes_it_panic(damage in damage()) {
        read(&damaged(journal(), damage));
    }

    #[test]
    fn no_frame_with_a_right_checksum_makes_it_panic(
        kind in 0_u8..10, payload in prop::collection::vec(any::<u8>(), 0..200)
    ) {
        read(&[journal(), frame(kind, &payload)].concat());
    }

    #[test]
    fn no_packed_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = code::unpack(&bytes, |row| assert!(!row.cells.is_empty()));
    }

    #[test]
    fn no_words_of_a_tail_make_it_panic(
        words in prop::collection::vec(any::<u64>(), 64),
        (from, length) in (any::<u64>(), 0_u64..80),
        lengths in prop::collection::vec(0_u64..70, 0..4),
    ) {
        let mut words = words;
        for (at, length) in lengths.iter().enumerate() {
            words[at * 7] = length << 32 | words[at * 7] & 0xffff_ffff;
        }
        let to = from.saturating_add(length);
        let _ = Walker::default().walk(64, from, to, |at| words[at], |_, _| {});
    }

    #[test]
    fn a_row_at_any_position_of_a_tail_comes_back_or_is_refused_without_panic(from in any::<u64>()) {
        prop_assert_eq!(comes_back(from), from <= LAST);
    }
}

/// Words of a row with its frame, of the table that `comes_back` writes.
const ROW_WORDS: u64 = framed_words(tick::WIDTH) as u64;
/// Last position of such a row: it ends at 2^63 words.
const LAST: u64 = (1 << 63) - ROW_WORDS;

/// Whether a row that a tail holds at this position is read.
fn comes_back(from: u64) -> bool {
    let key = Key { table: tables::TICK, target: 0, tick: 1 };
    let cells = [7; tick::WIDTH];
    let mut words = vec![0_u64; 64];
    let row = [key.words().to_vec(), cells.to_vec()].concat();
    let head = Framer::default().word(from, key.words(), &cells);
    assert_eq!(head >> 32, ROW_WORDS);
    for (step, word) in [head].into_iter().chain(row).enumerate() {
        words[(from.wrapping_add(step as u64) & 63) as usize] = word;
    }
    let to = from.saturating_add(ROW_WORDS);
    let mut rows = 0;
    let walked = Walker::default().walk(64, from, to, |at| words[at], |_, _| rows += 1);
    walked.is_ok() && rows == 1
}

#[test]
fn the_last_row_of_a_tail_comes_back_and_the_next_is_refused_without_panic() {
    assert!(comes_back(LAST));
    assert!(!comes_back(LAST + 1));
}
