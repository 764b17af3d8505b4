//! The tail: rows that wait in memory which outlives the program until they reach the journal.
//!
//! A file of words: a head, then a ring of framed rows, each identified by its position, which counts the
//! words ever written. The journal says with each frame of rows up to which position it holds them,
//! so that what is left to be read follows from the journal alone. The layout is in
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

/// Where tails are: a file system in memory that every Linux has.
pub const DIRECTORY: &str = "/dev/shm";
pub const MAGIC: u64 = u64::from_le_bytes(*b"TARETAIL");
pub const VERSION: u64 = 1;
/// Words in front of the ring: a page.
pub const HEAD_WORDS: usize = 512;
/// Words in front of a framed row's keys: its length (upper half) and checksum.
pub const FRAME_WORDS: usize = 1;

/// Positions of the words of the head. What two threads write is in lines of its own.
pub mod head {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    /// Two words.
    pub const ID: usize = 2;
    /// Two words.
    pub const BOOT_ID: usize = 4;
    /// Words of the ring, a power of two.
    pub const CAPACITY: usize = 6;
    /// Position up to which rows are whole.
    pub const WRITTEN: usize = 16;
    /// Position up to which room may be used again.
    pub const CONSUMED: usize = 32;
    /// Bytes of the journal's path, then the path: 0 where it is too long.
    pub const JOURNAL: usize = 48;
}

/// What a journal's header says of its tail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailFacts {
    pub path: PathBuf,
    /// Drawn at random; also in the file's name.
    pub id: String,
    pub boot_id: String,
    pub bytes: u64,
}

/// Name of the file of a tail.
#[must_use]
pub fn file_name(id: &str) -> String {
    format!("tare-probe-{id}.tail")
}

/// The id in the name of a file, if it is a tail's.
#[must_use]
pub fn id_in_name(name: &str) -> Option<&str> {
    name.strip_prefix("tare-probe-")?.strip_suffix(".tail")
}

/// The two words of a UUID as Linux writes them.
#[must_use]
pub fn uuid_words(text: &str) -> Option<[u64; 2]> {
    let digits = text.replace('-', "");
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    let (upper, lower) = digits.split_at(16);
    Some([u64::from_str_radix(upper, 16).ok()?, u64::from_str_radix(lower, 16).ok()?])
}

/// Words that a row takes up.
#[must_use]
pub const fn framed_words(cells: usize) -> usize {
    FRAME_WORDS + KEY_WORDS + cells
}

/// Makes the word in front of a row, and so checks it.
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
    /// Length and CRC-32 of position, keys and cells: a row of an earlier round does not fit.
    pub fn word(&mut self, position: u64, key: [u64; KEY_WORDS], cells: &[Cell]) -> u64 {
        self.bytes.clear();
        for word in [position].iter().chain(&key).chain(cells) {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        let words = framed_words(cells.len()) as u64;
        (words << 32) | u64::from(crc32fast::hash(&self.bytes))
    }
}

/// Where and why the words are no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    pub position: u64,
    pub why: &'static str,
}

/// Takes rows out of a ring of words.
#[derive(Default)]
pub struct Walker {
    framer: Framer,
    cells: Vec<Cell>,
}

impl Walker {
    /// Hands each row between two positions to `each`, with the position after it.
    ///
    /// `word` gives the word at a place of the ring, which has `capacity` of them.
    ///
    /// # Errors
    /// Where the words are no row, or are not there any more.
    pub fn walk(
        &mut self,
        capacity: u64,
        from: u64,
        to: u64,
        word: impl Fn(usize) -> u64,
        mut each: impl FnMut(Row<'_>, u64),
    ) -> Result<(), Broken> {
        let broken = |position, why| Err(Broken { position, why });
        if from > to || to - from > capacity {
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

/// A tail that was left behind, read whole.
pub struct Tail {
    path: PathBuf,
    words: Vec<u64>,
}

impl Tail {
    /// Reads the tail that a journal names, if it is that: one of this boot, of the journal's id, a
    /// file of this user's or of the one that the journal belongs to.
    ///
    /// # Errors
    /// Why there is none, for people.
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

    /// Hands on the rows that the journal does not hold, which ends at `from`.
    ///
    /// # Errors
    /// Where the words are no row; those before it were handed on.
    pub fn rows_after(&self, from: u64, each: impl FnMut(Row<'_>, u64)) -> Result<(), Broken> {
        let ring = &self.words[HEAD_WORDS..];
        let written = self.words[head::WRITTEN];
        Walker::default().walk(ring.len() as u64, from, written, |at| ring[at], each)
    }

    /// Removes the file; that it is gone already is no failure.
    ///
    /// # Errors
    /// Where it stays.
    pub fn remove(self) -> std::io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The words of a regular file of this user or of `uid`.
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
