//! Saves a journal that was cut short: moves what waits in its tail into it, once.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Entry, Reader, Writer};
use crate::error::RecordError;
use crate::header::{Header, Recovered};
use crate::lock;
use crate::tail::{Broken, Tail};

/// Rows in a frame.
const FRAME_ROWS: u64 = 4096;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A journal that nobody else records or converts while this is held.
#[must_use]
pub struct Held {
    /// `None`: a journal of version 1, which was written without a lock.
    _file: Option<File>,
}

/// What a journal holds, as far as it is whole.
struct Scan {
    header: Option<Box<Header>>,
    /// Position of the tail that it has reached.
    upto: u64,
    /// It has a footer, or was saved before: nothing is left to be moved.
    is_settled: bool,
    whole_bytes: u64,
    torn_bytes: u64,
}

/// Takes a journal for the caller alone and moves into it what its tail still has.
///
/// A crash in between leaves nothing out and nothing twice: which rows are to be moved follows from
/// the last whole frame of the journal, and the tail goes only when they are there. A damaged
/// journal and its tail are left as they are.
///
/// # Errors
/// Where another program has the journal, or it cannot be read or written.
pub fn recover(journal: &Path) -> Result<Held, RecordError> {
    if Reader::open(journal)?.version() == 1 {
        return Ok(Held { _file: None });
    }
    let failed = |error| RecordError::io(journal, error);
    let file = OpenOptions::new().read(true).write(true).open(journal).map_err(failed)?;
    lock::exclusive(&file, journal)?;
    match scan(journal) {
        Ok(found) => settle(&file, journal, &found)?,
        Err(RecordError::Damaged { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(Held { _file: Some(file) })
}

fn scan(journal: &Path) -> Result<Scan, RecordError> {
    let mut reader = Reader::open(journal)?;
    let (mut header, mut reached, mut is_settled) = (None, 0, false);
    while let Some(entry) = reader.entry()? {
        match entry {
            Entry::Header(found) => header = Some(found),
            Entry::Rows { upto, .. } => reached = upto,
            Entry::Footer(_) | Entry::Recovered(_) => is_settled = true,
            Entry::Target(_) | Entry::Event(_) => {}
        }
    }
    let (whole_bytes, torn_bytes) = (reader.offset(), reader.torn_bytes());
    Ok(Scan { header, upto: reached, is_settled, whole_bytes, torn_bytes })
}

fn settle(file: &File, journal: &Path, found: &Scan) -> Result<(), RecordError> {
    let failed = |error| RecordError::io(journal, error);
    let Some(facts) = found.header.as_ref().and_then(|header| header.tail.as_ref()) else {
        return Ok(());
    };
    let boot_id = fs::read_to_string(BOOT_ID).unwrap_or_default();
    let owner = file.metadata().map_err(failed)?.uid();
    let tail = Tail::open(facts, owner, boot_id.trim());
    if !found.is_settled {
        // Rows of a torn frame are still in the tail: room is used again only after the write.
        file.set_len(found.whole_bytes).map_err(failed)?;
        let mut end = file;
        end.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut writer = Writer::resume(end, journal, found.upto);
        let (rows, missing) = match &tail {
            Ok(tail) => take(tail, &mut writer, found.upto)?,
            Err(why) => (0, Some(why.clone())),
        };
        writer.recovered(&Recovered { rows, torn_bytes: found.torn_bytes, missing })?;
        file.sync_data().map_err(failed)?;
    }
    match tail {
        Ok(tail) => tail.remove().map_err(|error| RecordError::io(&facts.path, error)),
        Err(_) => Ok(()),
    }
}

/// Appends what the tail has after a position; how many rows, and why not all.
fn take(
    tail: &Tail,
    writer: &mut Writer<&File>,
    from: u64,
) -> Result<(u64, Option<String>), RecordError> {
    let (mut rows, mut reached, mut failed) = (0_u64, from, None);
    let walked = tail.rows_after(from, |row, upto| {
        if failed.is_some() {
            return;
        }
        writer.push(row);
        (rows, reached) = (rows + 1, upto);
        let written = if rows.is_multiple_of(FRAME_ROWS) { writer.flush(upto) } else { Ok(()) };
        failed = written.err();
    });
    // With its position: what crashes before the next frame must not take these rows once more.
    failed = failed.or(writer.seal(reached).err());
    match (failed, walked) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok((rows, None)),
        (None, Err(Broken { position, why })) => {
            Ok((rows, Some(format!("its tail is damaged at position {position}: {why}"))))
        }
    }
}
