//! One recording: it starts the threads, waits for the sampler, and writes the footer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use tare_record::header::{Footer, Header};

use crate::block;
use crate::clock;
use crate::discover::watcher::{BlockState, Pace, Watcher};
use crate::discover::{Mailbox, Registry, Spec};
use crate::error::ProbeError;
use crate::facts;
use crate::handle;
use crate::pump::{News, Pump, Pumped};
use crate::ring;
use crate::sampler::{Command, Lines, Retired, Sampler, Slot, Summary};
use crate::schedule::Schedule;
use crate::sink::Sink;
use crate::sys::{self, Policy};
use crate::tail::{self, Memory, TailFile};

/// Room of the queues for commands and returned sources.
const QUEUE: usize = 1024;
/// Stack size of threads, which only have a few rows on it.
const STACK_BYTES: usize = 256 * 1024;
/// Longest time until rows in a tail are written: waking the writer costs more than reading them.
const TAIL_PAUSE_NS: u64 = 10_000_000_000;
/// Longest time until other rows are written, or rows that are displayed; half of what `kill -9` may lose.
const OWN_PAUSE_NS: u64 = 450_000_000;

/// What to record and how.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub struct Config {
    pub rate_hz: f64,
    pub host_rate_hz: f64,
    pub duration_s: Option<f64>,
    pub policy: Policy,
    pub with_host: bool,
    pub specs: Vec<Spec>,
    /// For targets that are added during the recording.
    pub mailbox: Option<Mailbox>,
    /// Whether to start with existing targets and add missing ones once they appear.
    pub wait_for_targets: bool,
    /// Whether to count block requests of control groups, with a BPF program.
    pub count_block: bool,
    /// Whether to open performance counters of control groups.
    pub with_perf: bool,
    /// Where to keep rows in a tail until they are in the journal, if at all.
    pub tail: Option<TailPlace>,
}

/// Place of a tail, and its journal.
#[derive(Clone, Debug)]
pub struct TailPlace {
    pub directory: PathBuf,
    pub journal: PathBuf,
}

impl Config {
    fn period_ns(&self) -> u64 {
        (1e9 / self.rate_hz).round() as u64
    }

    #[allow(clippy::cast_precision_loss)] // 10,000 at most
    fn host_every(&self) -> u64 {
        (self.rate_hz / self.host_rate_hz).round().max(1.0) as u64
    }

    fn duration_ns(&self) -> Option<u64> {
        self.duration_s.map(|seconds| (seconds * 1e9).round() as u64)
    }
}

/// Records until the duration is over or `stop` is set.
///
/// # Errors
/// A target is missing, a sink fails (as with a full disk), or rows were dropped.
pub fn record(
    config: &Config,
    mut sinks: Vec<Box<dyn Sink>>,
    stop: &Arc<AtomicBool>,
) -> Result<Footer, ProbeError> {
    if !config.with_host && config.specs.is_empty() {
        return Err(ProbeError::NothingToSample);
    }
    sys::take_stop_signals(false);
    handle::allow_most_open();
    let (news_sender, news) = mpsc::channel();
    let pace = Pace {
        host_every: config.host_every(),
        user_hz: clock::ticks().user_hz,
        with_perf: config.with_perf,
    };
    let mut watcher = Watcher::new(
        config.specs.clone(),
        config.mailbox.clone(),
        config.with_host,
        pace,
        Registry::new(news_sender),
    );
    let block = if config.count_block { watcher.attach_block() } else { BlockState::NotAsked };
    let slots = watcher.open_first(config.wait_for_targets)?;

    let (start, sampler) = SamplerThread::spawn(config.policy, stop)?;
    let room = ring::room_words(slots.len(), watcher.targets(), config.rate_hz);
    let waiting = Waiting::make(config.tail.as_ref(), room);
    let mut header = header_of(config, &start, watcher.layout(), block);
    header.tail = waiting.file.as_ref().map(|file| file.facts.clone());
    header.tail_refused = waiting.refused;
    if let Err(error) = sinks.iter_mut().try_for_each(|sink| sink.begin(&header)) {
        // No journal names it yet, so no recovery would find it.
        remove(waiting.file.as_ref());
        return Err(error.into());
    }
    let pause_ns = if header.tail.is_some() && !sinks.iter().any(|sink| sink.is_watched()) {
        TAIL_PAUSE_NS
    } else {
        OWN_PAUSE_NS
    };
    let rows = Rows { memory: waiting.memory, path: tail_path(&header), pause_ns };
    let pump = PumpParts { rows, news, sinks };
    let threads = Threads::start(slots, watcher, pump, stop, sampler, config)?;
    let (summary, pumped) = threads.join()?;
    finish(stop.load(Ordering::Acquire), &summary, pumped, waiting.file.as_ref())
}

/// Memory of rows that were not passed to the sinks yet.
struct Waiting {
    memory: Memory,
    /// File of the tail, which stays locked.
    file: Option<TailFile>,
    refused: Option<String>,
}

impl Waiting {
    fn make(place: Option<&TailPlace>, words: usize) -> Self {
        let Some(place) = place else {
            return Self { memory: Memory::own(words), file: None, refused: None };
        };
        tail::sweep(&place.directory);
        match TailFile::create(&place.directory, &place.journal, words) {
            Ok((file, memory)) => Self { memory, file: Some(file), refused: None },
            Err(error) => {
                let refused = Some(format!("{}: {error}", place.directory.display()));
                Self { memory: Memory::own(words), file: None, refused }
            }
        }
    }
}

fn tail_path(header: &Header) -> PathBuf {
    header.tail.as_ref().map_or_else(|| PathBuf::from("memory"), |facts| facts.path.clone())
}

/// Removes a tail. If that fails, a few hundred kilobytes stay until the next recording removes them.
fn remove(file: Option<&TailFile>) {
    if let Some(Err(error)) = file.map(TailFile::remove) {
        eprintln!("tare-probe: a tail stays behind: {error}");
    }
}

/// Parts from which the ends of the ring are made.
struct Rows {
    memory: Memory,
    path: PathBuf,
    pause_ns: u64,
}

fn header_of(config: &Config, start: &PolicyOutcome, layout: &str, block: BlockState) -> Header {
    let (block_source, block_refused) = match block {
        BlockState::Attached => (block::SOURCE, None),
        BlockState::Refused(why) => ("none", Some(why)),
        BlockState::NotAsked => ("none", None),
    };
    Header {
        trace_version: tare_record::TRACE_VERSION,
        probe_version: env!("CARGO_PKG_VERSION").to_owned(),
        rate_hz: config.rate_hz,
        host_rate_hz: config.host_rate_hz,
        period_ns: config.period_ns(),
        ticks: clock::ticks(),
        page_bytes: facts::page_bytes(),
        kernel: facts::kernel(),
        cpus: facts::cpu_numbers().len() as u64,
        boot_id: facts::boot_id(),
        scheduler: start.scheduler.clone(),
        scheduler_refused: start.refused.clone(),
        cgroup_layout: layout.to_owned(),
        block_source: block_source.to_owned(),
        block_refused,
        tail: None,
        tail_refused: None,
        started_monotonic_ns: clock::monotonic_ns(),
        started_realtime_ns: clock::realtime_ns(),
    }
}

/// Result of requesting a real-time policy.
struct PolicyOutcome {
    scheduler: String,
    refused: Option<String>,
}

/// What the sampling thread needs to start, which is known once the other threads run.
struct Go {
    slots: Vec<Slot>,
    lines: Lines,
    schedule: Schedule,
    end_ns: Option<u64>,
}

struct SamplerThread {
    handle: JoinHandle<Option<Summary>>,
    go: mpsc::Sender<Go>,
}

impl SamplerThread {
    /// Starts the thread and sets its policy; it waits for [`Go`].
    fn spawn(policy: Policy, stop: &Arc<AtomicBool>) -> Result<(PolicyOutcome, Self), ProbeError> {
        let (go, wait) = mpsc::channel::<Go>();
        let (tell, outcome) = mpsc::channel();
        let stop = Arc::clone(stop);
        let handle = spawn("sampler", move || {
            let _ = tell.send(adopt(policy));
            let go = wait.recv().ok()?;
            sys::take_stop_signals(true);
            Some(Sampler::new(go.slots, go.lines).run(go.schedule, go.end_ns, &stop))
        })?;
        let outcome = outcome.recv().map_err(|_| ProbeError::Panicked { name: "sampler" })?;
        Ok((outcome, Self { handle, go }))
    }
}

/// Sets the calling thread's policy, or returns why that was refused.
fn adopt(policy: Policy) -> PolicyOutcome {
    // Only threads of the default policy have timer slack; without it, they wake on time.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let wanted = match policy {
        Policy::Fifo(priority) => format!("fifo:{priority}"),
        Policy::RoundRobin(priority) => format!("rr:{priority}"),
        Policy::Other => return PolicyOutcome { scheduler: "other".to_owned(), refused: None },
    };
    match sys::set_policy(policy) {
        Ok(()) => PolicyOutcome { scheduler: wanted, refused: None },
        Err(error) => PolicyOutcome {
            scheduler: "other".to_owned(),
            refused: Some(format!("{wanted}: {error}")),
        },
    }
}

/// Parts from which the pump is made.
struct PumpParts {
    rows: Rows,
    news: Receiver<News>,
    sinks: Vec<Box<dyn Sink>>,
}

struct Threads {
    sampler: JoinHandle<Option<Summary>>,
    pump: JoinHandle<Pumped>,
    watcher: JoinHandle<()>,
    drained: Arc<AtomicBool>,
    watcher_stop: Arc<AtomicBool>,
}

impl Threads {
    fn start(
        slots: Vec<Slot>,
        mut watcher: Watcher,
        parts: PumpParts,
        stop: &Arc<AtomicBool>,
        sampler: SamplerThread,
        config: &Config,
    ) -> Result<Self, ProbeError> {
        let (waiting_in, wake_pause_ns) = (parts.rows.path, parts.rows.pause_ns);
        let (rows, receiver) = ring::ring(parts.rows.memory);
        let (mut command_sender, commands) = rtrb::RingBuffer::<Command>::new(QUEUE);
        let (retired, mut retired_receiver) = rtrb::RingBuffer::<Retired>::new(QUEUE);
        let drained = Arc::new(AtomicBool::new(false));
        let watcher_stop = Arc::new(AtomicBool::new(false));
        let pump = Pump {
            rows: receiver,
            news: parts.news,
            sinks: parts.sinks,
            waiting_in,
            drained: Arc::clone(&drained),
            stop: Arc::clone(stop),
        };
        let pump = spawn("pump", move || pump.run())?;
        watcher.settle(pump.thread().clone());
        let watcher_ends = Arc::clone(&watcher_stop);
        let watcher = spawn("watcher", move || {
            watcher.run(&mut command_sender, &mut retired_receiver, &watcher_ends);
        })?;
        let lines = Lines {
            rows,
            commands,
            retired,
            pump: pump.thread().clone(),
            wake_pause_ns,
            watcher: watcher.thread().clone(),
        };
        let start_ns = clock::monotonic_ns() + 1_000_000;
        let go = Go {
            slots,
            lines,
            schedule: Schedule::new(start_ns, config.period_ns()),
            end_ns: config.duration_ns().map(|duration_ns| start_ns + duration_ns),
        };
        // If the sampler has ended, joining it reports that.
        let _ = sampler.go.send(go);
        Ok(Self { sampler: sampler.handle, pump, watcher, drained, watcher_stop })
    }

    /// Waits for the sampler, then for the others to process its remaining rows.
    fn join(self) -> Result<(Summary, Pumped), ProbeError> {
        let summary = self.sampler.join();
        self.watcher_stop.store(true, Ordering::Release);
        self.watcher.thread().unpark();
        let watched = self.watcher.join();
        self.drained.store(true, Ordering::Release);
        self.pump.thread().unpark();
        let pumped = self.pump.join().map_err(|_| ProbeError::Panicked { name: "pump" })?;
        watched.map_err(|_| ProbeError::Panicked { name: "watcher" })?;
        let summary = summary.ok().flatten().ok_or(ProbeError::Panicked { name: "sampler" })?;
        Ok((summary, pumped))
    }
}

fn finish(
    was_stopped: bool,
    summary: &Summary,
    pumped: Pumped,
    tail: Option<&TailFile>,
) -> Result<Footer, ProbeError> {
    if let Some(error) = pumped.error {
        return Err(error.into());
    }
    let footer = Footer {
        ended_monotonic_ns: clock::monotonic_ns(),
        ticks: summary.ticks,
        missed_ticks: summary.missed_ticks,
        dropped_rows: summary.dropped_rows,
        suspended_ns: summary.suspended_ns,
        probe_cpu_ns: summary.probe_cpu_ns,
        sampler_cpu_ns: summary.cpu_ns,
        peak_resident_bytes: summary.peak_resident_bytes,
        lateness_p50_ns: summary.lateness.quantile_ns(0.5),
        lateness_p99_ns: summary.lateness.quantile_ns(0.99),
        lateness_max_ns: summary.lateness.max_ns(),
        ended_by: if was_stopped { "signal" } else { "duration" }.to_owned(),
    };
    for mut sink in pumped.sinks {
        sink.finish(&footer)?;
    }
    remove(tail);
    if summary.dropped_rows > 0 {
        return Err(ProbeError::Dropped { rows: summary.dropped_rows });
    }
    Ok(footer)
}

fn spawn<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ProbeError> {
    thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(work)
        .map_err(|source| ProbeError::Thread { name, source })
}
