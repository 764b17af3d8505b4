//! Memory that is shared with a file, as words that any thread may read and write.

use std::fs::File;
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapped file: stored words are in the file and outlive the program.
pub struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory belongs to the mapping alone, and atomics may be used by all threads.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first words of a file, which must be long enough, and must not be truncated meanwhile.
    ///
    /// # Errors
    /// The file system or a memory limit does not allow it.
    pub fn of(file: &File, words: usize) -> rustix::io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a place where nothing is mapped.
        let start = unsafe { mmap(null_mut(), words * 8, access, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { start, words })
    }
}

impl Deref for Mapping {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `words` words are mapped, aligned to a page, until `drop`; any bits are a number.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is what was mapped, and no slice of it outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.words * 8) };
    }
}
