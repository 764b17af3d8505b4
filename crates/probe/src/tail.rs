//! Memory for rows until they are written: a file that outlives the program, if possible.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock, fstatfs};
use tare_record::tail::{self, HEAD_WORDS, TailFacts, head};

use crate::facts;
use crate::sys::map::Mapping;

/// `f_type` of a file system in memory (include/uapi/linux/magic.h).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Words that two threads share, with a head and a ring.
pub enum Memory {
    /// Memory that ends with the program.
    Own(Box<[AtomicU64]>),
    Tail(Mapping),
}

impl Memory {
    /// A ring of this many words in the program's own memory; a power of two.
    #[must_use]
    pub fn own(capacity_words: usize) -> Self {
        let words = HEAD_WORDS + capacity_words;
        Self::Own(std::iter::repeat_with(|| AtomicU64::new(0)).take(words).collect())
    }
}

impl Deref for Memory {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        match self {
            Self::Own(words) => words,
            Self::Tail(mapping) => mapping,
        }
    }
}

/// The file of a tail, locked so that it does not count as left behind.
pub struct TailFile {
    file: File,
    pub facts: TailFacts,
}

impl TailFile {
    /// Creates a tail with a ring of this many words, for a new journal.
    ///
    /// # Errors
    /// `directory` is not a file system in memory or has no room, or this machine has no boot id.
    pub fn create(
        directory: &Path,
        journal: &Path,
        capacity_words: usize,
    ) -> io::Result<(Self, Memory)> {
        let boot_id = facts::boot_id();
        let id = fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned();
        let (Some(id_words), Some(boot_words)) =
            (tail::uuid_words(&id), tail::uuid_words(&boot_id))
        else {
            return Err(io::Error::other("this machine does not tell which boot this is"));
        };
        let path = directory.join(tail::file_name(&id));
        let words = HEAD_WORDS + capacity_words;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        let facts = TailFacts { path, id, boot_id, bytes: 8 * words as u64 };
        let made = Self { file, facts };
        match made.fill(journal, words, [id_words, boot_words]) {
            Ok(mapping) => Ok((made, Memory::Tail(mapping))),
            Err(error) => {
                made.remove()?;
                Err(error)
            }
        }
    }

    fn fill(&self, journal: &Path, words: usize, ids: [[u64; 2]; 2]) -> io::Result<Mapping> {
        let file = &self.file;
        // A concurrent sweep unlocks it at once, as it has no head yet.
        flock(file, FlockOperation::LockExclusive)?;
        if fstatfs(file)?.f_type as i64 != TMPFS_MAGIC {
            return Err(io::Error::other("not a file system in memory"));
        }
        // Allocated now: memory that is missing later would end the program with SIGBUS.
        fallocate(file, FallocateFlags::empty(), 0, 8 * words as u64)?;
        let mapping = Mapping::of(file, words)?;
        let put = |at: usize, word: u64| mapping[at].store(word, Ordering::Relaxed);
        put_path(&put, &fs::canonicalize(journal).or_else(|_| std::path::absolute(journal))?);
        for (at, words) in [head::ID, head::BOOT_ID].into_iter().zip(ids) {
            put(at, words[0]);
            put(at + 1, words[1]);
        }
        put(head::CAPACITY, (words - HEAD_WORDS) as u64);
        put(head::VERSION, tail::VERSION);
        mapping[head::MAGIC].store(tail::MAGIC, Ordering::Release);
        Ok(mapping)
    }

    /// Removes the file, if it still exists.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.facts.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Stores the journal's path, for later sweeps; a path that is too long is left out.
fn put_path(put: &impl Fn(usize, u64), journal: &Path) {
    let bytes = journal.as_os_str().as_bytes();
    if bytes.len() > 8 * (HEAD_WORDS - head::JOURNAL - 1) {
        return;
    }
    put(head::JOURNAL, bytes.len() as u64);
    for (at, chunk) in bytes.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        put(head::JOURNAL + 1 + at, u64::from_le_bytes(word));
    }
}

/// Removes tails of this user whose recording has ended and whose journal does not exist any more.
pub fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(tail::id_in_name);
        if id.is_some() && is_left_behind(&entry.path()).unwrap_or(false) {
            // Another sweep may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_left_behind(path: &Path) -> io::Result<bool> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() {
        return Ok(false);
    }
    // The lock is refused during the recording.
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let mut bytes = [0; 8 * HEAD_WORDS];
    file.read_exact_at(&mut bytes, 0)?;
    let word = |at: usize| {
        let word = bytes[8 * at..].first_chunk().copied();
        word.map_or(0, u64::from_le_bytes)
    };
    if word(head::MAGIC) != tail::MAGIC || word(head::VERSION) != tail::VERSION {
        return Ok(false);
    }
    let path_bytes = word(head::JOURNAL) as usize;
    let words = &bytes[8 * (head::JOURNAL + 1)..];
    let Some(journal) = words.get(..path_bytes).filter(|path| !path.is_empty()) else {
        return Ok(false);
    };
    let journal = PathBuf::from(std::ffi::OsStr::from_bytes(journal));
    Ok(!journal.try_exists()?)
}
