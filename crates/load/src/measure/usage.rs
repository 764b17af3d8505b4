//! Resource usage of the client itself.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::clock;
use crate::sys;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Usage {
    pub cpu_ns: u64,
    /// Time on a run queue, waiting for a CPU. `None`: not reported by this kernel.
    pub run_queue_ns: Option<u64>,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// Part of the CPU time that was spent polling until the next arrival was due.
    pub polled_ns: u64,
}

impl Usage {
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns - before.cpu_ns,
            run_queue_ns: self.run_queue_ns.zip(before.run_queue_ns).map(|(now, then)| now - then),
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
            minor_faults: self.minor_faults - before.minor_faults,
            major_faults: self.major_faults - before.major_faults,
            polled_ns: self.polled_ns - before.polled_ns,
        }
    }

    pub fn add(&mut self, more: &Self) {
        self.cpu_ns += more.cpu_ns;
        self.run_queue_ns = match (self.run_queue_ns, more.run_queue_ns) {
            (Some(first), Some(second)) => Some(first + second),
            (first, second) => first.or(second),
        };
        self.voluntary_switches += more.voluntary_switches;
        self.involuntary_switches += more.involuntary_switches;
        self.minor_faults += more.minor_faults;
        self.major_faults += more.major_faults;
        self.polled_ns += more.polled_ns;
    }
}

/// Reads the calling thread's usage from a file that stays open.
pub struct Meter {
    schedstat: Option<File>,
}

impl Meter {
    #[must_use]
    pub fn of_this_thread() -> Self {
        Self { schedstat: File::open("/proc/thread-self/schedstat").ok() }
    }

    #[must_use]
    pub fn read(&self) -> Usage {
        let counts = sys::counts_of_this_thread();
        Usage {
            cpu_ns: clock::thread_cpu_ns(),
            run_queue_ns: self.schedstat.as_ref().and_then(run_queue_ns),
            voluntary_switches: counts.voluntary_switches,
            involuntary_switches: counts.involuntary_switches,
            minor_faults: counts.minor_faults,
            major_faults: counts.major_faults,
            polled_ns: 0, // the loop sets it
        }
    }
}

/// Largest memory of this program. `getrusage(2)` would include its parent's before `execve`.
#[must_use]
pub fn peak_resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Second number: time waiting on a run queue (Documentation/scheduler/sched-stats.rst).
fn run_queue_ns(file: &File) -> Option<u64> {
    let mut text = [0; 96];
    let length = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_used_shows() {
        let before = peak_resident_kib().expect("Linux says it");
        std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = peak_resident_kib().expect("Linux says it");
        assert!(after >= before && after >= 64 << 10, "{before} {after}");
    }

    #[test]
    fn work_shows() {
        let meter = Meter::of_this_thread();
        let before = meter.read();
        let mut sum = 0_u64;
        for number in 0..3_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
        let used = meter.read().since(&before);
        assert!(used.cpu_ns > 100_000, "{used:?}");
        assert!(used.voluntary_switches >= 1, "{used:?}");
    }
}
