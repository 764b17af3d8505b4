//! Reading of the ring that a sampling event shares with the kernel (`perf_event_open(2)`, "MMAP layout").

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;

use crate::facts::page_bytes;
use crate::sys::map::Mapping;
use crate::sys::perf::open_cpu_clock;

/// Word of the first page with the kernel's position; this program's position follows it.
const HEAD_WORD: usize = 1024 / 8;
const TAIL_WORD: usize = 1032 / 8;
/// Pages of samples, a power of two: with the one before them within `perf_event_mlock_kb` of 516 as
/// kernels come. At 199 Hz and some 60 frames that is room for five seconds.
const PAGES: usize = 128;

/// The samples of one CPU. Dropping it ends the sampling.
pub(super) struct CpuRing {
    memory: Mapping,
    first: usize,
    words: usize,
    _event: File,
}

impl CpuRing {
    /// Starts to sample.
    ///
    /// # Errors
    /// Those of [`open_cpu_clock`], or no memory can be locked.
    pub(super) fn open(cpu: u64, period_ns: u64) -> io::Result<Self> {
        let event = File::from(open_cpu_clock(cpu, period_ns)?);
        let first = page_bytes() as usize / 8;
        let words = PAGES * first;
        let memory = Mapping::of(&event, first + words)?;
        Ok(Self { memory, first, words, _event: event })
    }

    /// Calls `each` with the words of each new record, and frees their room.
    ///
    /// Its first word is the record's type in the lower half and its bytes in the upper sixteen bits.
    pub(super) fn drain(&self, mut each: impl FnMut(&[u64])) {
        let head = self.memory[HEAD_WORD].load(Ordering::Acquire);
        let mut tail = self.memory[TAIL_WORD].load(Ordering::Relaxed);
        let mut record = Vec::with_capacity(160);
        while tail < head {
            let length = self.word(tail) >> 48;
            if length < 8 || tail + length > head {
                break; // not written by a kernel that we know
            }
            record.clear();
            record.extend((tail..tail + length).step_by(8).map(|at| self.word(at)));
            each(&record);
            tail += length;
        }
        self.memory[TAIL_WORD].store(head, Ordering::Release);
    }

    fn word(&self, at_byte: u64) -> u64 {
        let word = (at_byte / 8) as usize & (self.words - 1);
        self.memory[self.first + word].load(Ordering::Relaxed)
    }
}
