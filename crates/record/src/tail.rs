//! The tail: rows that are not in the journal yet, in memory that outlives the program.
//!
//! A file of words: a head, then a ring of framed rows. A row's position is the number of words
//! written before it. Each frame of rows in the journal has the position up to which the journal
//! has them, so the journal alone determines which rows are left to read. The layout is in
//! `docs/reference/trace-journal.md`.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::Cell;
use crate::row::{KEY_WORDS, Key, Row};
use crate::tables;

/// Directory of tails: a file system in memory that every Linux has.
pub const DIRECTORY: &str = "/dev/shm";
pub const MAGIC: u64 = u64::from_le_bytes(*b"TARETAIL");
pub const VERSION: u64 = 1;
/// Words before the ring: a page.
pub const HEAD_WORDS: usize = 512;
/// Words before a framed row's keys: its length (upper half) and checksum.
pub const FRAME_WORDS: usize = 1;

/// Positions of the words of the head. Words that two threads write are in separate cache lines.
pub mod head {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    /// Two words.
    pub const ID: usize = 2;
    /// Two words.
    pub const BOOT_ID: usize = 4;
    /// Size of the ring in words, a power of two.
    pub const CAPACITY: usize = 6;
    /// Position up to which rows are completely written.
    pub const WRITTEN: usize = 16;
    /// Position up to which the room can be reused.
    pub const CONSUMED: usize = 32;
    /// Length of the journal's path in bytes (0 if it is too long), then the path.
    pub const JOURNAL: usize = 48;
}

/// Tail of a journal, in its header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailFacts {
    pub path: PathBuf,
    /// Random; also in the file's name.
    pub id: String,
    pub boot_id: String,
    pub bytes: u64,
}

/// File name of a tail.
#[must_use]
pub fn file_name(id: &str) -> String {
    format!("tare-probe-{id}.tail")
}

/// Id in the name of a file, if it is a tail.
#[must_use]
pub fn id_in_name(name: &str) -> Option<&str> {
    name.strip_prefix("tare-probe-")?.strip_suffix(".tail")
}

/// The two words of a UUID in the format of Linux.
#[must_use]
pub fn uuid_words(text: &str) -> Option<[u64; 2]> {
    let digits = text.replace('-', "");
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    let (upper, lower) = digits.split_at(16);
    Some([u64::from_str_radix(upper, 16).ok()?, u64::from_str_radix(lower, 16).ok()?])
}

/// Size of a framed row in words.
#[must_use]
pub const fn framed_words(cells: usize) -> usize {
    FRAME_WORDS + KEY_WORDS + cells
}

/// Computes the word before a row, which is also its check.
pub struct Framer {
    bytes: Vec<u8>,
}

impl Default for Framer {
    fn default() -> Self {
        let widest = tables::ALL.iter().map(|table| table.columns.len()).max().unwrap_or(0);
        Self { bytes: Vec::with_capacity(8 * (1 + KEY_WORDS + widest)) }
    }
}

impl Framer {
    /// Length, and CRC-32 of position, keys and cells, which no row of an earlier round matches.
    pub fn word(&mut self, position: u64, key: [u64; KEY_WORDS], cells: &[Cell]) -> u64 {
        self.bytes.clear();
        for word in [position].iter().chain(&key).chain(cells) {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        let words = framed_words(cells.len()) as u64;
        (words << 32) | u64::from(crc32fast::hash(&self.bytes))
    }
}

/// Where and why the words are not a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    pub position: u64,
    pub why: &'static str,
}

/// No program writes so many; sums of positions and lengths below it fit 64 bits.
const MOST_WORDS: u64 = 1 << 63;

/// Reads rows from a ring of words.
#[derive(Default)]
pub struct Walker {
    framer: Framer,
    cells: Vec<Cell>,
}

impl Walker {
    /// Calls `each` with each row between two positions, and the position after it.
    ///
    /// `word` returns the word at an index of the ring, which has `capacity` words.
    ///
    /// # Errors
    /// The words are not a row, or have been overwritten.
    pub fn walk(
        &mut self,
        capacity: u64,
        from: u64,
        to: u64,
        word: impl Fn(usize) -> u64,
        mut each: impl FnMut(Row<'_>, u64),
    ) -> Result<(), Broken> {
        let broken = |position, why| Err(Broken { position, why });
        if from > to || to - from > capacity || to > MOST_WORDS {
            return broken(from, "the journal and its tail do not join");
        }
        let at = |position: u64| word((position & (capacity - 1)) as usize);
        let mut position = from;
        while position < to {
            let head = at(position);
            let first = position + FRAME_WORDS as u64;
            let end = position + (head >> 32);
            if end < first + KEY_WORDS as u64 || end > to {
                return broken(position, "its length does not fit");
            }
            let keys = [at(first), at(first + 1)];
            let key = Key::from_words(keys);
            let width = tables::ALL.get(key.table as usize).map(|table| table.columns.len());
            if width.map(framed_words) != Some((end - position) as usize) {
                return broken(position, "its table does not fit its length");
            }
            self.cells.clear();
            self.cells.extend((first + KEY_WORDS as u64..end).map(at));
            if self.framer.word(position, keys, &self.cells) != head {
                return broken(position, "its checksum does not fit");
            }
            each(Row { key, cells: &self.cells }, end);
            position = end;
        }
        Ok(())
    }
}

/// A tail that was left behind, read as a whole.
pub struct Tail {
    path: PathBuf,
    words: Vec<u64>,
}

impl Tail {
    /// Reads the tail that a journal names. It must be of this boot, have the journal's id, and
    /// belong to this user or to the owner of the journal.
    ///
    /// # Errors
    /// Why there is none, as a message for users.
    pub fn open(facts: &TailFacts, journal_uid: u32, boot_id: &str) -> Result<Self, String> {
        let path = &facts.path;
        let shown = path.display();
        if facts.boot_id != boot_id {
            return Err(format!("its tail {shown} was of another boot or machine"));
        }
        if *path != Path::new(DIRECTORY).join(file_name(&facts.id)) {
            return Err(format!("{shown} is not where tails are"));
        }
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened =
            OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
        let file = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("its tail {shown} is not there any more"),
            _ => format!("its tail {shown}: {error}"),
        })?;
        let words = read_owned(&file, journal_uid).map_err(|why| format!("{shown}: {why}"))?;
        let tail = Self { path: path.clone(), words };
        if tail.fits(facts) { Ok(tail) } else { Err(format!("{shown} is not this journal's tail")) }
    }

    fn fits(&self, facts: &TailFacts) -> bool {
        let (Some(id), Some(boot_id)) = (uuid_words(&facts.id), uuid_words(&facts.boot_id)) else {
            return false;
        };
        let Some(words) = self.words.get(..HEAD_WORDS) else { return false };
        let capacity = words[head::CAPACITY];
        words[head::MAGIC] == MAGIC
            && words[head::VERSION] == VERSION
            && words[head::ID..][..2] == id
            && words[head::BOOT_ID..][..2] == boot_id
            && capacity.is_power_of_two()
            && self.words.len() as u64 == HEAD_WORDS as u64 + capacity
            && self.words.len() as u64 * 8 == facts.bytes
    }

    /// Calls `each` with the rows that are not in the journal, which ends at `from`.
    ///
    /// # Errors
    /// The words are not a row; `each` was called with the rows before it.
    pub fn rows_after(&self, from: u64, each: impl FnMut(Row<'_>, u64)) -> Result<(), Broken> {
        let ring = &self.words[HEAD_WORDS..];
        let written = self.words[head::WRITTEN];
        Walker::default().walk(ring.len() as u64, from, written, |at| ring[at], each)
    }

    /// Removes the file, if it still exists.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(self) -> std::io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Reads the words of a regular file that belongs to this user or to `uid`.
fn read_owned(mut file: &File, uid: u32) -> Result<Vec<u64>, String> {
    let about = file.metadata().map_err(|error| error.to_string())?;
    let own = rustix::process::geteuid().as_raw();
    if !about.is_file() || ![own, uid].contains(&about.uid()) {
        return Err("no file of this user's".to_owned());
    }
    let mut bytes = Vec::with_capacity(about.len() as usize);
    file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let words = bytes.chunks_exact(8);
    Ok(words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect())
}
