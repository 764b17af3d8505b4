//! Files of `/proc` or control groups that are opened once and read repeatedly.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::{Errno, pread};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Size above which one read may be incomplete: a `seq_file` returns whole records up to a page.
///
/// Its longest record (a line of diskstats or net/dev) is far below the rest of the page.
const MAYBE_MORE: usize = 3072;

/// Result of one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// This many bytes were read.
    Bytes(usize),
    /// The process ended (`ESRCH`) or the control group was removed (`ENODEV`).
    Gone,
    /// The content is longer than the buffer, which must not be used.
    Outgrown,
    /// The read failed; the value is missing at this tick.
    Failed,
}

/// An open file.
#[derive(Debug)]
pub struct Handle {
    file: OwnedFd,
}

impl Handle {
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?.into() })
    }

    /// Reads the file from its start into `buffer`. Allocates nothing.
    #[must_use]
    pub fn read(&self, buffer: &mut [u8]) -> Reading {
        let mut filled = 0;
        loop {
            match pread(&self.file, &mut buffer[filled..], filled as u64) {
                Ok(0) => return Reading::Bytes(filled),
                Ok(bytes) if filled + bytes == buffer.len() => return Reading::Outgrown,
                Ok(bytes) if bytes < MAYBE_MORE => return Reading::Bytes(filled + bytes),
                Ok(bytes) => filled += bytes,
                Err(Errno::INTR) => {}
                Err(Errno::SRCH | Errno::NODEV | Errno::NOENT) => return Reading::Gone,
                Err(_) => return Reading::Failed,
            }
        }
    }

    /// Reads the whole file into a growing buffer; for discovery, not for the hot path.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}

/// Raises this program's limit of open files as far as allowed: shells and systemd set 1024, which
/// about fifty control groups use up.
pub fn allow_most_open() {
    let limit = getrlimit(Resource::Nofile);
    // If that is refused, opening a file above the limit reports it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_longer_than_a_page_is_read_whole() {
        let handle = Handle::open(Path::new("/proc/kallsyms")).expect("kallsyms");
        let mut buffer = vec![0; 1 << 26];
        let Reading::Bytes(bytes) = handle.read(&mut buffer) else { panic!("not read") };
        let whole = std::fs::read("/proc/kallsyms").expect("kallsyms");
        assert!(bytes > 8192);
        assert_eq!(bytes, whole.len());
    }

    #[test]
    fn a_file_that_outgrew_its_buffer_is_not_cut() {
        let handle = Handle::open(Path::new("/proc/meminfo")).expect("meminfo");
        assert_eq!(handle.read(&mut [0; 64]), Reading::Outgrown);
    }

    #[test]
    fn a_handle_of_a_process_that_ended_says_so() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let path = format!("/proc/{}/stat", child.id());
        let handle = Handle::open(Path::new(&path)).expect("alive");
        let mut buffer = [0; 4096];
        assert!(matches!(handle.read(&mut buffer), Reading::Bytes(_)));
        child.kill().expect("kill");
        child.wait().expect("reap");
        assert_eq!(handle.read(&mut buffer), Reading::Gone);
    }
}
