//! The sampling thread, which sleeps until the next deadline, reads every source, and sends the rows.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

use rtrb::{Consumer, Producer};
use tare_record::ABSENT;
use tare_record::inspect::Suspends;
use tare_record::tables::{self, tick};

use crate::clock;
use crate::handle::{Handle, Reading};
use crate::lateness::Lateness;
use crate::parse::fields::Words;
use crate::ring::RowSender;
use crate::schedule::{Due, Schedule};
use crate::source::{ABOUT_A_SECOND_NS, Life, SCRATCH_BYTES, Seldom, Source, send};

/// A source in the sampler's list.
pub struct Slot {
    pub id: u32,
    pub source: Box<dyn Source>,
    /// Sampled at every n-th tick.
    pub every: u64,
    pub next_tick: u64,
}

/// Command from discovery to the sampler.
pub enum Command {
    Add(Slot),
    Remove(u32),
}

/// A source that the sampler returns; the receiver closes its files, outside of the hot path.
pub struct Retired {
    pub slot: Slot,
    pub tick: u64,
    pub at_ns: u64,
    pub life: Life,
}

/// The sampler's ends of the queues between threads.
pub struct Lines {
    pub rows: RowSender,
    pub commands: Consumer<Command>,
    pub retired: Producer<Retired>,
    /// Woken when there are rows to write.
    pub pump: Thread,
    /// Longest time until it is woken, unless the ring fills.
    pub wake_pause_ns: u64,
    /// Woken when a source is returned.
    pub watcher: Thread,
}

/// Result of the sampler.
#[derive(Clone, Default)]
pub struct Summary {
    pub lateness: Lateness,
    pub ticks: u64,
    pub missed_ticks: u64,
    pub suspended_ns: u64,
    pub dropped_rows: u64,
    pub cpu_ns: u64,
    pub probe_cpu_ns: u64,
    pub peak_resident_bytes: u64,
}

pub struct Sampler {
    slots: Vec<Slot>,
    lines: Lines,
    scratch: Vec<u8>,
    own: OwnCost,
    lateness: Lateness,
    ticks: u64,
    missed_ticks: u64,
    suspends: Suspends,
    last_wake_ns: u64,
}

impl Sampler {
    #[must_use]
    pub fn new(slots: Vec<Slot>, lines: Lines) -> Self {
        Self {
            slots,
            lines,
            scratch: vec![0; SCRATCH_BYTES],
            own: OwnCost::new(),
            lateness: Lateness::default(),
            ticks: 0,
            missed_ticks: 0,
            suspends: Suspends::default(),
            last_wake_ns: 0,
        }
    }

    /// Samples until told to stop, or until `end_ns` of `CLOCK_MONOTONIC`, including a tick that is due then.
    pub fn run(
        mut self,
        mut schedule: Schedule,
        end_ns: Option<u64>,
        stop: &Arc<AtomicBool>,
    ) -> Summary {
        while !stop.load(Ordering::Relaxed) {
            let deadline_ns = schedule.deadline_ns();
            let until_ns = end_ns.map_or(deadline_ns, |end_ns| deadline_ns.min(end_ns));
            clock::sleep_until(until_ns);
            let woke_ns = clock::monotonic_ns();
            if until_ns < deadline_ns && woke_ns >= until_ns {
                break;
            }
            if let Some(due) = schedule.take(woke_ns) {
                self.tick(due, woke_ns);
            }
        }
        self.lines.pump.unpark();
        Summary {
            lateness: self.lateness,
            ticks: self.ticks,
            missed_ticks: self.missed_ticks,
            suspended_ns: self.suspends.total_ns,
            dropped_rows: self.lines.rows.dropped_rows(),
            cpu_ns: clock::thread_cpu_ns(),
            probe_cpu_ns: clock::process_cpu_ns(),
            peak_resident_bytes: self.own.peak_resident_bytes,
        }
    }

    /// Serves one tick.
    pub fn tick(&mut self, due: Due, woke_ns: u64) {
        self.lateness.add(woke_ns - due.deadline_ns);
        self.ticks += 1;
        self.missed_ticks += due.missed;
        self.obey();
        let mut at = 0;
        while at < self.slots.len() {
            let slot = &mut self.slots[at];
            if due.tick < slot.next_tick {
                at += 1;
                continue;
            }
            slot.next_tick = (due.tick / slot.every + 1) * slot.every;
            match slot.source.sample(due.tick, &mut self.scratch, &mut self.lines.rows) {
                Life::Alive => at += 1,
                Life::Gone => at += usize::from(!self.retire(at, due.tick, Life::Gone)),
            }
        }
        self.send_tick(due, woke_ns);
    }

    fn obey(&mut self) {
        while let Ok(command) = self.lines.commands.pop() {
            match command {
                Command::Add(slot) => self.slots.push(slot),
                Command::Remove(id) => {
                    if let Some(at) = self.slots.iter().position(|slot| slot.id == id) {
                        self.retire(at, 0, Life::Alive);
                    }
                }
            }
        }
    }

    /// Removes a slot from the list. `false`: there is no room to return it, so it stays for now.
    fn retire(&mut self, at: usize, tick: u64, life: Life) -> bool {
        if self.lines.retired.is_full() {
            return false;
        }
        let slot = self.slots.remove(at);
        let retired = Retired { slot, tick, at_ns: clock::monotonic_ns(), life };
        // There is room, and no other thread pushes.
        let _ = self.lines.retired.push(retired);
        self.lines.watcher.unpark();
        true
    }

    fn send_tick(&mut self, due: Due, woke_ns: u64) {
        let mut cells = [ABSENT; tick::WIDTH];
        cells[tick::DUE_NS] = due.deadline_ns;
        cells[tick::WOKE_NS] = woke_ns;
        cells[tick::REALTIME_NS] = clock::realtime_ns();
        cells[tick::BOOTTIME_NS] = clock::boottime_ns();
        let done_ns = clock::monotonic_ns();
        // Both clocks are read now, and reported for `woke_ns`, as the columns are declared.
        cells[tick::REALTIME_NS] -= done_ns - woke_ns;
        cells[tick::BOOTTIME_NS] -= done_ns - woke_ns;
        cells[tick::DONE_NS] = done_ns;
        cells[tick::MISSED_TICKS] = due.missed;
        cells[tick::DROPPED_ROWS] = self.lines.rows.dropped_rows();
        self.own.read(done_ns, &mut self.scratch, &mut cells);
        self.suspends.before(&cells);
        send(&mut self.lines.rows, tables::TICK, PROBE_TARGET, due.tick, &cells);
        if done_ns >= self.last_wake_ns + self.lines.wake_pause_ns || self.lines.rows.is_filling() {
            self.last_wake_ns = done_ns;
            self.lines.pump.unpark();
        }
    }
}

/// The probe itself is always the first target.
pub const PROBE_TARGET: u32 = 0;

/// The probe's own cost, read at most once a second.
struct OwnCost {
    statm: Option<Handle>,
    page_bytes: u64,
    seldom: Seldom,
    peak_resident_bytes: u64,
}

impl OwnCost {
    fn new() -> Self {
        Self {
            statm: Handle::open(Path::new("/proc/self/statm")).ok(),
            page_bytes: rustix::param::page_size() as u64,
            seldom: Seldom::default(),
            peak_resident_bytes: 0,
        }
    }

    fn read(&mut self, now_ns: u64, scratch: &mut [u8], cells: &mut [u64; tick::WIDTH]) {
        if !self.seldom.is_due(now_ns) {
            return;
        }
        self.seldom.rest(now_ns, ABOUT_A_SECOND_NS);
        cells[tick::PROBE_CPU_NS] = clock::process_cpu_ns();
        cells[tick::SAMPLER_CPU_NS] = clock::thread_cpu_ns();
        if let Some(statm) = &self.statm
            && let Reading::Bytes(bytes) = statm.read(scratch)
        {
            let mut words = Words::new(&scratch[..bytes]);
            words.number();
            if let Some(pages) = words.number() {
                cells[tick::RESIDENT_BYTES] = pages * self.page_bytes;
                self.peak_resident_bytes = self.peak_resident_bytes.max(pages * self.page_bytes);
            }
        }
    }
}
