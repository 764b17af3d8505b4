//! One program at a time works on a journal: the one that records it, or one that converts it.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::error::RecordError;

/// Locks a journal until the file is closed.
///
/// `flock(2)`: NFS makes an exclusive lock of it that needs a file opened for writing.
///
/// # Errors
/// Where another program has it, or the file system knows no locks.
pub fn exclusive(file: &File, path: &Path) -> Result<(), RecordError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(RecordError::InUse { path: path.to_path_buf() }),
        Err(error) => Err(RecordError::Lock {
            path: path.to_path_buf(),
            source: io::Error::from_raw_os_error(error.raw_os_error()),
        }),
    }
}
