//! A file of `/proc` or a control group, opened once and read again and again.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::{Errno, pread};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Above this much, one read may not have been all: a `seq_file` hands out whole records up to a page.
///
/// Its longest record (a line of diskstats or net/dev) is far below the rest of the page.
const MAYBE_MORE: usize = 3072;

/// What one reading brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// So many bytes of the buffer were filled.
    Bytes(usize),
    /// The process ended (`ESRCH`) or the control group was removed (`ENODEV`).
    Gone,
    /// There is more than the buffer holds; nothing of it is to be believed.
    Outgrown,
    /// The kernel refused; the value is missing in this tick.
    Failed,
}

/// A kept file handle.
#[derive(Debug)]
pub struct Handle {
    file: OwnedFd,
}

impl Handle {
    /// # Errors
    /// Where the file cannot be opened.
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

    /// Reads the whole file into a buffer that grows; for discovery, not for the hot path.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}

/// Raises how many files this program may have open to the most that it is allowed: shells and systemd
/// give 1024, of which some fifty control groups take all.
pub fn allow_most_open() {
    let limit = getrlimit(Resource::Nofile);
    // Where that is refused, the file that finds no room says so.
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
