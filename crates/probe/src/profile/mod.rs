//! CPU profiles: stacks of everything that runs on any CPU, sampled about a hundred times a second.
//!
//! The kernel writes a sample into the ring of a CPU whenever a timer of that CPU expires
//! ([`ring`]). Once a second, samples are read, named and counted. Kernel functions are named from
//! `/proc/kallsyms` ([`kernel`]), code of processes by the file that it is mapped from
//! ([`objects`]), and the target that a sample belongs to by its process ([`process`]). The result
//! is a count for each slot of time, subject, command and stack.
//!
//! Code that runs with interrupts off is sampled when it turns them on again, as the timer waits.

mod event;
mod frames;
mod kernel;
mod objects;
mod process;
mod ring;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use tare_record::profile::{Facts, Row};

use crate::clock;
use crate::discover::{Mailbox, Spec};
use crate::error::ProbeError;
use crate::facts;
use event::{Event, Place, Sample};
use frames::{Frames, OF_KERNEL, Stacks, collapsed};
use kernel::KernelSymbols;
use objects::Objects;
use process::{IDLE, Process, SOFTIRQ, Subjects};
use ring::CpuRing;

/// Version of the profile: raised when a column changes its meaning or is removed.
pub const PROFILE_VERSION: u32 = 1;
/// Interval of reading the rings, which have room for about five times as long.
const TURN_NS: u64 = 1_000_000_000;
/// First length of slots; it is doubled whenever there are too many counts.
const FIRST_SLOT_NS: u64 = 100_000_000;
const MOST_COUNTS: usize = 100_000;

/// What to record.
pub struct Config {
    pub rate_hz: u32,
    pub specs: Vec<Spec>,
    /// Targets that are added later.
    pub mailbox: Option<Mailbox>,
    pub duration_ns: Option<u64>,
}

/// A complete recording.
pub struct Profile {
    pub facts: Facts,
    pub rows: Vec<Row>,
}

/// Samples all CPUs until told to stop. `at_work` is called once sampling has started.
///
/// # Errors
/// [`ProbeError::Profile`] if the kernel does not allow this user, or any, to sample all CPUs.
pub fn record(
    config: &Config,
    stop: &AtomicBool,
    at_work: impl FnOnce() -> Result<(), ProbeError>,
) -> Result<Profile, ProbeError> {
    let period_ns = 1_000_000_000 / u64::from(config.rate_hz);
    let mut count = Count::new();
    count.subjects.add(&config.specs);
    let rings = open_rings(period_ns)?;
    count.began_ns = clock::monotonic_ns();
    at_work()?;
    let end_ns = config.duration_ns.map(|duration_ns| count.began_ns + duration_ns);
    let mut due_ns = count.began_ns;
    loop {
        due_ns += TURN_NS;
        clock::sleep_until(end_ns.map_or(due_ns, |end_ns| due_ns.min(end_ns)));
        let is_last = stop.load(Ordering::Relaxed)
            || end_ns.is_some_and(|end_ns| clock::monotonic_ns() >= end_ns);
        if let Some(specs) = config.mailbox.as_ref().and_then(Mailbox::take) {
            count.subjects.add(&specs);
        }
        count.turn(&rings);
        if is_last {
            break;
        }
        // A signal with new targets ends the sleep early.
        due_ns = due_ns.min(clock::monotonic_ns());
    }
    let cpus = rings.len() as u64;
    drop(rings);
    Ok(count.finish(config.rate_hz, period_ns, cpus))
}

fn open_rings(period_ns: u64) -> Result<Vec<CpuRing>, ProbeError> {
    let open = |cpu| CpuRing::open(cpu, period_ns);
    facts::cpu_numbers()
        .into_iter()
        .map(open)
        .collect::<Result<_, _>>()
        .map_err(|source| ProbeError::Profile { advice: advice(&source), source })
}

/// Explains why sampling all CPUs failed, by the error and the kernel's setting.
fn advice(error: &std::io::Error) -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    match (error.raw_os_error(), paranoid) {
        (Some(libc::ENOSYS), _) | (_, Err(_)) => {
            "this kernel is built without perf events".to_owned()
        }
        (Some(libc::EACCES | libc::EPERM), Ok(level)) => format!(
            "kernel.perf_event_paranoid is {}: run as root, with CAP_PERFMON, or set it to -1 or 0; in a container the engine's seccomp filter refuses it too",
            level.trim()
        ),
        (Some(libc::EMFILE), _) => "too many open files: raise the limit of open files".to_owned(),
        _ => "see perf_event_open(2)".to_owned(),
    }
}

/// Key of one count.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    slot: u64,
    process: u32,
    stack: u32,
}

/// Counting of samples.
struct Count {
    subjects: Subjects,
    symbols: KernelSymbols,
    symbols_missing: Option<String>,
    frames: Frames,
    stacks: Stacks,
    of_addresses: HashMap<u64, u32>,
    processes: Vec<(Process, Objects)>,
    by_pid: HashMap<u32, u32>,
    counts: HashMap<Key, u64>,
    began_ns: u64,
    slot_ns: u64,
    samples: u64,
    lost: u64,
    crowded: u64,
    turn: u64,
    cpu_before_ns: u64,
    in_work: Vec<u32>,
}

impl Count {
    fn new() -> Self {
        let (symbols, symbols_missing) = match KernelSymbols::of_host() {
            Ok(symbols) => (symbols, None),
            Err(error) => (KernelSymbols::default(), Some(error.to_string())),
        };
        Self {
            subjects: Subjects::of_host(),
            symbols,
            symbols_missing,
            frames: Frames::default(),
            stacks: Stacks::default(),
            of_addresses: HashMap::new(),
            processes: Vec::new(),
            by_pid: HashMap::new(),
            counts: HashMap::new(),
            began_ns: 0,
            slot_ns: FIRST_SLOT_NS,
            samples: 0,
            lost: 0,
            crowded: 0,
            turn: 0,
            cpu_before_ns: clock::process_cpu_ns(),
            in_work: Vec::new(),
        }
    }

    fn turn(&mut self, rings: &[CpuRing]) {
        self.turn += 1;
        for ring in rings {
            ring.drain(|words| match Event::parse(words) {
                Event::Sample(sample) => self.add(&sample),
                Event::Lost(lost) => self.lost += lost,
                // Another program has another name, other mappings, and maybe another control group.
                Event::Named { pid, tid, by_exec: true } if pid == tid => {
                    self.by_pid.remove(&pid);
                }
                Event::Named { .. } | Event::Other => {}
            });
        }
        while self.counts.len() > MOST_COUNTS {
            self.slot_ns *= 2;
            let mut merged = HashMap::with_capacity(self.counts.len());
            for (key, count) in self.counts.drain() {
                *merged.entry(Key { slot: key.slot / 2, ..key }).or_insert(0) += count;
            }
            let were = merged.len();
            self.counts = merged;
            if were > MOST_COUNTS && self.slot_ns > 1 << 40 {
                break; // one slot holds all of them
            }
        }
    }

    fn add(&mut self, sample: &Sample<'_>) {
        self.samples += 1;
        let process = self.process(sample.pid);
        let mut stack = std::mem::take(&mut self.in_work);
        stack.clear();
        for place in sample.places() {
            match place {
                Place::Kernel(address) => stack.push(self.kernel_frame(address)),
                Place::User(address) => {
                    let objects = &mut self.processes[process as usize].1;
                    let frame = objects.frame(sample.pid, address, self.turn, &mut self.frames);
                    // A call within an object adds nothing, as only the object is named.
                    if stack.last() != Some(&frame) {
                        stack.push(frame);
                    }
                }
            }
        }
        let number = self.stacks.intern(&stack).or_else(|| {
            self.crowded += 1;
            let crowded = self.frames.intern("[more stacks]");
            self.stacks.intern(&[crowded])
        });
        self.in_work = stack;
        if let Some(stack) = number {
            let slot = sample.at_ns.saturating_sub(self.began_ns) / self.slot_ns;
            *self.counts.entry(Key { slot, process, stack }).or_insert(0) += 1;
        }
    }

    fn process(&mut self, pid: u32) -> u32 {
        if let Some(&number) = self.by_pid.get(&pid) {
            return number;
        }
        let process = if pid == 0 { Process::default() } else { Process::of_host(pid) };
        let number = self.processes.len() as u32;
        self.processes.push((process, Objects::default()));
        self.by_pid.insert(pid, number);
        number
    }

    fn kernel_frame(&mut self, address: u64) -> u32 {
        if let Some(&frame) = self.of_addresses.get(&address) {
            return frame;
        }
        let name = self.symbols.name(address).unwrap_or("[unknown]");
        let frame = self.frames.intern(&format!("{name}{OF_KERNEL}"));
        self.of_addresses.insert(address, frame);
        frame
    }

    fn finish(self, rate_hz: u32, period_ns: u64, cpus: u64) -> Profile {
        let ended_ns = clock::monotonic_ns();
        let mut merged: BTreeMap<(String, String, String, u64), u64> = BTreeMap::new();
        for (key, count) in &self.counts {
            let process = &self.processes[key.process as usize].0;
            let stack = collapsed(self.stacks.get(key.stack), &self.frames);
            let (subject, stack) = match process.pid {
                0 if is_interrupted(&stack) => (SOFTIRQ, stack),
                // Stacks of idle CPUs are left out; their number shows how many samples there could be.
                0 => (IDLE, String::new()),
                _ => (self.subjects.name(process), stack),
            };
            let at_ns = self.began_ns + key.slot * self.slot_ns;
            let row = (stack, subject.to_owned(), process.command.clone(), at_ns);
            *merged.entry(row).or_insert(0) += count;
        }
        let rows = merged
            .into_iter()
            .map(|((stack, subject, command, at_ns), samples)| Row {
                at_ns,
                subject,
                command,
                stack,
                samples,
            })
            .collect();
        let facts = Facts {
            profile_version: PROFILE_VERSION,
            probe_version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: facts::kernel(),
            rate_hz: u64::from(rate_hz),
            period_ns,
            cpus,
            began_ns: self.began_ns,
            ended_ns,
            slot_ns: self.slot_ns,
            samples: self.samples,
            lost: self.lost,
            crowded: self.crowded,
            kernel_symbols_missing: self.symbols_missing,
            cpu_ns: clock::process_cpu_ns().saturating_sub(self.cpu_before_ns),
        };
        Profile { facts, rows }
    }
}

/// Whether the idle task's stack has work of an interrupt, mostly of a soft one.
fn is_interrupted(stack: &str) -> bool {
    const WORK: [&str; 5] = [
        "handle_softirqs_[k]",
        "__do_softirq_[k]",
        "__common_interrupt_[k]",
        "sysvec_call_function_single_[k]",
        "handle_irq_event_[k]",
    ];
    stack.split(';').any(|frame| WORK.contains(&frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_in_the_idle_task_is_not_idle() {
        assert!(is_interrupted("cpu_startup_entry_[k];handle_softirqs_[k];net_rx_action_[k]"));
        assert!(!is_interrupted("cpu_startup_entry_[k];do_idle_[k];default_idle_[k]"));
    }

    #[test]
    #[ignore = "needs CAP_PERFMON or perf_event_paranoid of 0; `make test-probe-root` runs it"]
    fn this_process_is_found_at_work() {
        let stop = AtomicBool::new(false);
        let specs =
            vec![Spec::Process { name: "me".to_owned(), pid: std::process::id(), tree: false }];
        let longest_ns = Some(60_000_000_000);
        let config = Config { rate_hz: 199, specs, mailbox: None, duration_ns: longest_ns };
        let (begun, sampling) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let recording = scope.spawn(|| {
                let tell = || {
                    begun.send(()).expect("awaited");
                    Ok(())
                };
                record(&config, &stop, tell).expect("allowed")
            });
            sampling.recv().expect("sampling");
            // On a busy machine it takes long to get as much CPU time: some 120 samples.
            let enough_ns = clock::process_cpu_ns() + 600_000_000;
            while clock::process_cpu_ns() < enough_ns && !recording.is_finished() {
                std::hint::black_box(std::fs::read("/proc/self/stat").ok());
            }
            stop.store(true, Ordering::Relaxed);
            let profile = recording.join().expect("recorded");
            let reads = |row: &&Row| {
                row.stack.contains("vfs_read_[k]") && row.stack.contains("[tare_probe")
            };
            // The program under test is tare-probe itself, and that comes before all targets.
            let found: u64 = profile.rows.iter().filter(reads).map(|row| row.samples).sum();
            assert!(found > 20, "{found} samples of {}", profile.facts.samples);
            assert_eq!(profile.facts.lost, 0);
        });
    }
}
