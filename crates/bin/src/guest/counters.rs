//! The machine's own counters, as in the kernel's files, once a second as a line of JSON.
//!
//! They are sent without interpretation; files that cannot be read are left out.

use std::fs::{self, File};
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

const INTERVAL: Duration = Duration::from_secs(1);
const FILES: [&str; 8] = [
    "/proc/uptime",
    "/proc/stat",
    "/proc/meminfo",
    "/proc/diskstats",
    "/sys/fs/cgroup/task/cpu.stat",
    "/sys/fs/cgroup/task/memory.current",
    "/sys/fs/cgroup/task/memory.events",
    "/sys/fs/cgroup/task/io.stat",
];

/// Starts a thread that runs until the machine ends. Missed ticks are left out.
pub(crate) fn begin(mut port: File) {
    thread::spawn(move || {
        let began = Instant::now();
        for tick in 0u32.. {
            let due = INTERVAL * tick;
            let now = began.elapsed();
            if now > due + INTERVAL {
                continue;
            }
            thread::sleep(due.saturating_sub(now));
            if port.write_all(format!("{}\n", reading()).as_bytes()).is_err() {
                return;
            }
        }
    });
}

fn reading() -> Value {
    let files = FILES.iter().filter_map(|path| {
        let text = fs::read_to_string(path).ok()?;
        // The line `intr` of /proc/stat has a column for each of several hundred interrupts.
        let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("intr ")).collect();
        Some((path.to_string(), json!(kept.join("\n"))))
    });
    Value::Object(files.collect::<Map<_, _>>())
}
