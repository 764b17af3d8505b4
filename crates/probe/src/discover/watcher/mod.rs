//! The watcher, which opens targets that appear and closes targets that have ended.

mod devices;
mod find;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rtrb::{Consumer, Producer};
use tare_record::header::What;

use super::hierarchy::Hierarchies;
use super::host;
use super::mailbox::Mailbox;
use super::registry::Registry;
use super::spec::Spec;
use crate::block::{BlockCounter, BlockSlot};
use crate::clock;
use crate::error::ProbeError;
use crate::sampler::{Command, PROBE_TARGET, Retired, Slot};
use crate::source::{Life, Source};

/// Interval of scans for new containers and processes.
const SCAN: Duration = Duration::from_secs(1);
/// Interval of scans for new disks and interfaces, if nothing else is scanned for.
const DEVICE_SCAN: Duration = Duration::from_secs(10);

/// Files to leave for the journal, the tail and the probe's own cost.
const SPARE_FILES: usize = 8;

/// How often host and targets are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The host's sources are read at every n-th tick.
    pub host_every: u64,
    pub user_hz: u64,
    /// Whether to open performance counters for control groups.
    pub with_perf: bool,
}

/// Whether block requests are counted, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockState {
    Attached,
    Refused(String),
    NotAsked,
}

/// What a slot of the sampler samples.
#[derive(Clone, Debug)]
struct Tracked {
    /// Place that a target frees when it ends.
    place: Place,
    targets: Vec<u32>,
    block: Option<BlockSlot>,
}

/// Identity of a watched object, so that it is opened only once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Host(&'static str),
    Cgroup(String),
    Perf(String),
    Process(String, u32),
    Interfaces(String),
}

pub struct Watcher {
    specs: Vec<Spec>,
    /// Targets that were added during the recording.
    handed: Vec<Spec>,
    mailbox: Option<Mailbox>,
    hierarchies: Hierarchies,
    registry: Registry,
    pace: Pace,
    with_host: bool,
    block: Option<BlockCounter>,
    live: BTreeMap<u32, Tracked>,
    /// Ended processes, and trees with an ended root, which are not opened again under their pid.
    ended: BTreeSet<Place>,
    device_names: BTreeMap<Place, Vec<Vec<u8>>>,
    device_targets: BTreeMap<(Place, Vec<u8>), u32>,
    /// Path of each existing child of a watched group → its name.
    child_names: BTreeMap<String, String>,
    /// Whether the first scan is over.
    is_running: bool,
    /// Children that were not yet in all hierarchies at the first scan that found them.
    young: BTreeSet<String>,
    /// Paths of existing children that could not be opened.
    refused: BTreeSet<String>,
    /// Names of children that could not be opened since the last scan, and why.
    news: Vec<(String, String)>,
    /// Targets that were added last and not scanned for yet.
    unseen: Vec<Spec>,
    next_slot: u32,
    fresh: Vec<Slot>,
    stale: Vec<u32>,
}

impl Watcher {
    #[must_use]
    pub fn new(
        specs: Vec<Spec>,
        mailbox: Option<Mailbox>,
        with_host: bool,
        pace: Pace,
        registry: Registry,
    ) -> Self {
        Self {
            specs,
            handed: Vec::new(),
            mailbox,
            hierarchies: Hierarchies::of_host(),
            registry,
            pace,
            with_host,
            block: None,
            live: BTreeMap::new(),
            ended: BTreeSet::new(),
            device_names: BTreeMap::new(),
            device_targets: BTreeMap::new(),
            child_names: BTreeMap::new(),
            is_running: false,
            young: BTreeSet::new(),
            refused: BTreeSet::new(),
            news: Vec::new(),
            unseen: Vec::new(),
            next_slot: 0,
            fresh: Vec::new(),
            stale: Vec::new(),
        }
    }

    #[must_use]
    pub fn layout(&self) -> &'static str {
        self.hierarchies.layout()
    }

    /// Number of targets so far.
    #[must_use]
    pub fn targets(&self) -> usize {
        self.registry.count()
    }

    /// Attaches the program that counts block requests, if there is a control group.
    pub fn attach_block(&mut self) -> BlockState {
        let has_groups = self
            .specs
            .iter()
            .any(|spec| matches!(spec, Spec::Cgroup { .. } | Spec::Children { .. }));
        if !has_groups && self.mailbox.is_none() {
            return BlockState::NotAsked;
        }
        match BlockCounter::attach() {
            Ok(counter) => {
                self.block = Some(counter);
                BlockState::Attached
            }
            Err(error) => BlockState::Refused(error.to_string()),
        }
    }

    /// Opens all requested targets.
    ///
    /// # Errors
    /// A target does not exist, and `wait_for_targets` is not set.
    pub fn open_first(&mut self, wait_for_targets: bool) -> Result<Vec<Slot>, ProbeError> {
        // So that targets leave room for the files of the recording itself.
        let spare: Vec<_> = (0..SPARE_FILES).map(|_| File::open("/dev/null")).collect();
        if self.with_host {
            for source in host::open_fixed(&mut self.registry)? {
                self.add(Place::Host("fixed"), source, Vec::new(), self.pace.host_every);
            }
        }
        self.scan_devices();
        let mut missing = self.scan();
        missing.append(&mut self.news);
        for (name, reason) in missing {
            if !wait_for_targets {
                return Err(ProbeError::TargetNotFound { name, reason, advice: MISSING_ADVICE });
            }
            self.tell_missing(&name, &reason);
        }
        drop(spare);
        Ok(std::mem::take(&mut self.fresh))
    }

    /// Runs until told to stop.
    pub fn run(
        mut self,
        commands: &mut Producer<Command>,
        retired: &mut Consumer<Retired>,
        stop: &Arc<AtomicBool>,
    ) {
        self.is_running = true;
        let mut devices_at_ns = clock::monotonic_ns();
        if let Some(mailbox) = &self.mailbox {
            mailbox.wake_me();
        }
        while !stop.load(Ordering::Acquire) {
            self.take_handed();
            let pause = if self.must_scan() { SCAN } else { DEVICE_SCAN };
            std::thread::park_timeout(pause);
            self.take_handed();
            while let Ok(gone) = retired.pop() {
                self.bury(&gone);
            }
            if self.must_scan() {
                let (missing, unseen) = (self.scan(), std::mem::take(&mut self.unseen));
                for (name, reason) in missing {
                    if unseen.iter().any(|spec| spec.name() == name) {
                        self.tell_missing(&name, &reason);
                    }
                }
                for (name, reason) in std::mem::take(&mut self.news) {
                    self.tell_missing(&name, &reason);
                }
            }
            let now_ns = clock::monotonic_ns();
            if now_ns - devices_at_ns >= DEVICE_SCAN.as_nanos() as u64 {
                devices_at_ns = now_ns;
                self.scan_devices();
            }
            self.send_out(commands);
        }
        while let Ok(gone) = retired.pop() {
            self.bury(&gone);
        }
    }

    fn take_handed(&mut self) {
        if let Some(handed) = self.mailbox.as_ref().and_then(Mailbox::take) {
            let is_new = |spec: &&Spec| !self.handed.contains(spec);
            self.unseen.extend(handed.iter().filter(is_new).cloned().collect::<Vec<_>>());
            self.handed = handed;
        }
    }

    fn tell_missing(&self, name: &str, reason: &str) {
        let detail = format!("{name}: {reason}");
        self.registry.event(What::NotFound, PROBE_TARGET, 0, clock::monotonic_ns(), detail);
    }

    fn all_specs(&self) -> impl Iterator<Item = &Spec> {
        self.specs.iter().chain(&self.handed)
    }

    /// Whether a requested target may still appear.
    fn must_scan(&self) -> bool {
        self.all_specs().any(|spec| match spec {
            Spec::Children { .. } | Spec::Process { tree: true, .. } => true,
            Spec::Cgroup { name, .. } => !self.is_live(&Place::Cgroup(name.clone())),
            Spec::Process { name, pid, .. } => self.may_come(&Place::Process(name.clone(), *pid)),
            Spec::Interfaces { name, .. } => self.may_come(&Place::Interfaces(name.clone())),
        })
    }

    fn may_come(&self, place: &Place) -> bool {
        !self.is_live(place) && !self.ended.contains(place)
    }

    fn is_live(&self, place: &Place) -> bool {
        self.live.values().any(|tracked| tracked.place == *place)
    }

    /// Sets the thread to wake for news, and waits until it has written the present ones.
    pub fn settle(&mut self, pump: std::thread::Thread) {
        self.registry.wake(pump);
        self.registry.settle();
    }

    fn send_out(&mut self, commands: &mut Producer<Command>) {
        if !self.fresh.is_empty() {
            self.registry.settle();
        }
        // If the queue is full, the rest is sent at the next turn.
        while let Some(id) = self.stale.pop() {
            if let Err(rtrb::PushError::Full(_)) = commands.push(Command::Remove(id)) {
                self.stale.push(id);
                return;
            }
        }
        while let Some(slot) = self.fresh.pop() {
            if let Err(rtrb::PushError::Full(Command::Add(slot))) =
                commands.push(Command::Add(slot))
            {
                self.fresh.push(slot);
                return;
            }
        }
    }

    /// Reports an ended target and frees its places (the caller drops `gone`).
    fn bury(&mut self, gone: &Retired) {
        let Some(tracked) = self.live.remove(&gone.slot.id) else { return };
        if let (Some(counter), Some(slot)) = (&mut self.block, &tracked.block) {
            counter.remove(slot);
        }
        if gone.life == Life::Alive {
            return;
        }
        for &target in &tracked.targets {
            let detail = format!("{:?}", tracked.place);
            self.registry.event(What::Vanished, target, gone.tick, gone.at_ns, detail);
        }
        if let Place::Cgroup(name) = tracked.place {
            // Counters of a removed group never fail, so they are closed with it.
            self.drop_slot(&Place::Perf(name));
        } else {
            self.ended.insert(tracked.place);
        }
    }

    fn add(&mut self, place: Place, source: Box<dyn Source>, targets: Vec<u32>, every: u64) {
        self.track(Tracked { place, targets, block: None }, source, every);
    }

    fn track(&mut self, tracked: Tracked, source: Box<dyn Source>, every: u64) {
        let id = self.next_slot;
        self.next_slot += 1;
        self.live.insert(id, tracked);
        self.fresh.push(Slot { id, source, every, next_tick: 0 });
    }

    /// Has the sampler return a slot that a new one replaces.
    fn drop_slot(&mut self, place: &Place) {
        let found =
            self.live.iter().find(|(_, tracked)| tracked.place == *place).map(|(id, _)| *id);
        if let Some(id) = found {
            self.live.remove(&id);
            self.stale.push(id);
        }
    }
}

const MISSING_ADVICE: &str = "check its name, or give --wait to record it once it can be";
