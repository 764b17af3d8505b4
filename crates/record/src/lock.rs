//! Locking of journals: only one program at a time records or converts a journal.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::error::RecordError;

/// Locks a journal until the file is closed.
///
/// By `flock(2)`: on NFS, that is an exclusive lock, which needs a file opened for writing.
///
/// # Errors
/// Another program has locked it, or the file system has no locks.
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
