//! Recovery of a journal that was cut short: rows in its tail are moved into it, once.

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

/// A locked journal: no other program records or converts it meanwhile.
#[must_use]
pub struct Held {
    /// `None`: a journal of version 1, which was written without a lock.
    _file: Option<File>,
}

/// Result of reading the intact part of a journal.
struct Scan {
    header: Option<Box<Header>>,
    /// Position in the tail up to which the journal has the rows.
    upto: u64,
    /// It has a footer or was recovered before: there is nothing to move.
    is_settled: bool,
    whole_bytes: u64,
    torn_bytes: u64,
}

/// Locks a journal and moves the rows that are left in its tail into it.
///
/// A crash meanwhile neither loses nor repeats rows: the last whole frame of the journal determines
/// which rows to move, and the tail is removed only after they are written. A damaged journal and
/// its tail are not changed.
///
/// # Errors
/// Another program has locked the journal, or it cannot be read or written.
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
        // Rows of a torn frame are still in the tail: its room is reused only after the write.
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

/// Appends the tail's rows after a position. Returns how many, and why not all, if so.
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
    // With its position: a recovery after a crash here must not append these rows again.
    failed = failed.or(writer.seal(reached).err());
    match (failed, walked) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok((rows, None)),
        (None, Err(Broken { position, why })) => {
            Ok((rows, Some(format!("its tail is damaged at position {position}: {why}"))))
        }
    }
}
