//! Keeps the sampler's list in step with the machine: what appears is opened, what ended is closed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rtrb::{Consumer, Producer};
use tare_record::header::{TargetKind, What};

use super::cgroup;
use super::hierarchy::{Directories, Hierarchies, UNIFIED};
use super::host;
use super::process;
use super::registry::{Registry, Sources};
use super::spec::{CgroupPlace, Spec};
use crate::block::{self, BlockCounter, BlockSlot};
use crate::clock;
use crate::error::ProbeError;
use crate::facts;
use crate::sampler::{Command, PROBE_TARGET, Retired, Slot};
use crate::source::cgroup::CgroupSource;
use crate::source::device::Device;
use crate::source::perf::PerfSource;
use crate::source::process::ProcessSource;
use crate::source::{Life, Source};

/// Between two looks for containers and processes that came.
const SCAN: Duration = Duration::from_secs(1);
/// Between two looks for new disks and interfaces, where nothing else is looked for.
const DEVICE_SCAN: Duration = Duration::from_secs(10);

/// How often host and targets are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The host's sources are read in every n-th tick.
    pub host_every: u64,
    pub user_hz: u64,
    /// Whether to open performance counters for control groups.
    pub with_perf: bool,
}

/// Whether block requests are counted, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockState {
    Attached,
    Refused(String),
    NotAsked,
}

/// What a slot of the sampler stands for.
#[derive(Clone, Debug)]
struct Tracked {
    /// What it keeps alive; a target that vanishes frees its place.
    place: Place,
    targets: Vec<u32>,
    block: Option<BlockSlot>,
}

/// Identity of something watched, so that it is opened once only.
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
    hierarchies: Hierarchies,
    registry: Registry,
    pace: Pace,
    with_host: bool,
    block: Option<BlockCounter>,
    live: BTreeMap<u32, Tracked>,
    /// Trees whose root has ended, and processes that did: they do not come back under their pid.
    ended: BTreeSet<Place>,
    device_names: BTreeMap<Place, Vec<Vec<u8>>>,
    device_targets: BTreeMap<(Place, Vec<u8>), u32>,
    next_slot: u32,
    fresh: Vec<Slot>,
    stale: Vec<u32>,
}

impl Watcher {
    #[must_use]
    pub fn new(specs: Vec<Spec>, with_host: bool, pace: Pace, registry: Registry) -> Self {
        Self {
            specs,
            hierarchies: Hierarchies::of_host(),
            registry,
            pace,
            with_host,
            block: None,
            live: BTreeMap::new(),
            ended: BTreeSet::new(),
            device_names: BTreeMap::new(),
            device_targets: BTreeMap::new(),
            next_slot: 0,
            fresh: Vec::new(),
            stale: Vec::new(),
        }
    }

    #[must_use]
    pub fn layout(&self) -> &'static str {
        self.hierarchies.layout()
    }

    /// Attaches the program that counts block requests, if there is a control group to count for.
    pub fn attach_block(&mut self) -> BlockState {
        let has_groups = self
            .specs
            .iter()
            .any(|spec| matches!(spec, Spec::Cgroup { .. } | Spec::Children { .. }));
        if !has_groups {
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

    /// Opens all that was asked for.
    ///
    /// # Errors
    /// Where a target is not there and `wait_for_targets` is not set.
    pub fn open_first(&mut self, wait_for_targets: bool) -> Result<Vec<Slot>, ProbeError> {
        if self.with_host {
            for source in host::open_fixed(&mut self.registry)? {
                self.add(Place::Host("fixed"), source, Vec::new(), self.pace.host_every);
            }
        }
        self.scan_devices();
        let missing = self.scan();
        for (name, reason) in missing {
            if !wait_for_targets {
                return Err(ProbeError::TargetNotFound { name, reason, advice: MISSING_ADVICE });
            }
            let now_ns = clock::monotonic_ns();
            self.registry.event(
                What::NotFound,
                PROBE_TARGET,
                0,
                now_ns,
                format!("{name}: {reason}"),
            );
        }
        Ok(std::mem::take(&mut self.fresh))
    }

    /// Runs until told to stop.
    pub fn run(
        mut self,
        commands: &mut Producer<Command>,
        retired: &mut Consumer<Retired>,
        stop: &Arc<AtomicBool>,
    ) {
        let mut devices_at_ns = clock::monotonic_ns();
        while !stop.load(Ordering::Acquire) {
            let pause = if self.must_scan() { SCAN } else { DEVICE_SCAN };
            std::thread::park_timeout(pause);
            while let Ok(gone) = retired.pop() {
                self.bury(&gone);
            }
            if self.must_scan() {
                self.scan();
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

    /// Whether anything that was asked for may still appear.
    fn must_scan(&self) -> bool {
        self.specs.iter().any(|spec| match spec {
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

    fn send_out(&mut self, commands: &mut Producer<Command>) {
        // A full queue keeps the rest for the next turn.
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

    /// Tells of what ended and lets go of its handles (`gone` is dropped by the caller).
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
            // The counters of a group that is gone never fail: they end with it.
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

    /// A block slot for a control group, and what the table of targets says of it.
    fn block_slot(&mut self, directories: &Directories) -> (Option<BlockSlot>, String) {
        let directory = directories.of("blkio").or_else(|| directories.of(UNIFIED));
        match (&mut self.block, directory) {
            (Some(counter), Some(directory)) => match counter.add(directory) {
                Ok(slot) => (Some(slot), block::SOURCE.to_owned()),
                Err(error) => (None, format!("absent: {error}")),
            },
            (None, _) => {
                (None, "absent: block requests are not counted, see the header".to_owned())
            }
            (_, None) => (None, "absent: no blkio or v2 directory".to_owned()),
        }
    }

    /// Opens what is there and not open yet; the names of what is missing, and why.
    fn scan(&mut self) -> Vec<(String, String)> {
        let mut missing = Vec::new();
        for spec in self.specs.clone() {
            let found = match &spec {
                Spec::Cgroup { name, place } => self.find_cgroup(name, place),
                Spec::Children { path } => self.find_children(path),
                Spec::Process { name, pid, tree } => self.find_process(name, *pid, *tree),
                Spec::Interfaces { name, pid } => self.find_interfaces(name, Some(*pid)),
            };
            if let Err(reason) = found {
                missing.push((spec.name().to_owned(), reason));
            }
        }
        missing
    }

    fn find_cgroup(&mut self, name: &str, at: &CgroupPlace) -> Result<(), String> {
        let place = Place::Cgroup(name.to_owned());
        if self.is_live(&place) {
            return Ok(());
        }
        let directories = self.hierarchies.directories(at);
        if directories.is_empty() {
            return Err(format!("no control group at {at:?}"));
        }
        let mut opened = cgroup::open(&directories, self.pace.user_hz);
        if opened.items.is_empty() {
            return Err("its control group has no file that could be read".to_owned());
        }
        let detail =
            directories.all().next().map(|path| path.display().to_string()).unwrap_or_default();
        let (block, served_by) = self.block_slot(&directories);
        opened.sources.insert("block".to_owned(), served_by);
        let (perf, served_by) = self.open_perf(&directories);
        opened.sources.insert("perf".to_owned(), served_by);
        let target = self.registry.add(TargetKind::Cgroup, name, &detail, opened.sources);
        let source = CgroupSource::new(target, opened.items, block.clone());
        self.track(Tracked { place, targets: vec![target], block }, Box::new(source), 1);
        if let Some(perf) = perf {
            let place = Place::Perf(name.to_owned());
            self.drop_slot(&place);
            self.add(place, Box::new(perf.with_target(target)), Vec::new(), 1);
        }
        Ok(())
    }

    /// Performance counters of a control group, and what the table of targets says of them.
    fn open_perf(&self, directories: &Directories) -> (Option<PerfSource>, String) {
        if !self.pace.with_perf {
            return (None, "absent: not asked for".to_owned());
        }
        let Some(directory) = directories.of("perf_event").or_else(|| directories.of(UNIFIED))
        else {
            return (None, "absent: no perf_event or v2 directory".to_owned());
        };
        match PerfSource::open(directory, &facts::cpu_numbers(), PROBE_TARGET) {
            Ok(source) if source.has_hardware() => {
                (Some(source), "hardware and software".to_owned())
            }
            Ok(source) => (Some(source), "software: this machine has no PMU".to_owned()),
            Err(error) => (None, format!("absent: {error}")),
        }
    }

    fn find_children(&mut self, path: &str) -> Result<(), String> {
        let parent = self.hierarchies.directories(&CgroupPlace::Path(path.to_owned()));
        let names: BTreeSet<String> = parent.all().flat_map(child_names).collect();
        for name in names {
            let below = format!("{}/{name}", path.trim_end_matches('/'));
            // One that went between the listing and now is none of ours.
            let _ = self.find_cgroup(&name, &CgroupPlace::Path(below));
        }
        if parent.is_empty() { Err(format!("no control group at {path}")) } else { Ok(()) }
    }

    fn find_process(&mut self, name: &str, pid: u32, tree: bool) -> Result<(), String> {
        let root = self.open_process(name, pid);
        if tree {
            for pid in process::descendants(pid) {
                // One that ended between the listing and now had nothing to tell.
                let _ = self.open_process(name, pid);
            }
        }
        root
    }

    fn open_process(&mut self, name: &str, pid: u32) -> Result<(), String> {
        let place = Place::Process(name.to_owned(), pid);
        if !self.may_come(&place) {
            return Ok(());
        }
        let directory = process::directory(pid);
        let command = process::command(pid).ok_or_else(|| format!("no process {pid}"))?;
        let target_source = ProcessSource::open(&directory, pid, 0)
            .map_err(|error| format!("process {pid}: {error}"))?;
        let io = if target_source.has_io() { "io" } else { "absent: may not be read by this user" };
        let sources = Sources::from([
            ("cpu".to_owned(), "CPU clock of the process".to_owned()),
            ("stat".to_owned(), format!("{}/stat", directory.display())),
            ("io".to_owned(), io.to_owned()),
        ]);
        let detail = format!("pid {pid} {command}");
        let target = self.registry.add(TargetKind::Process, name, &detail, sources);
        self.add(place, Box::new(target_source.with_target(target)), vec![target], 1);
        Ok(())
    }

    fn find_interfaces(&mut self, name: &str, pid: Option<u32>) -> Result<(), String> {
        let place = Place::Interfaces(name.to_owned());
        if !self.may_come(&place) {
            return Ok(());
        }
        let directory = host::process_directory(pid);
        let names = host::interface_names(&directory);
        if names.is_empty() {
            return Err(format!("no network namespace at {}", directory.display()));
        }
        let every = if pid.is_none() { self.pace.host_every } else { 1 };
        let known = self.device_targets(&place, TargetKind::Interface, &names, Some(name));
        let targets = known.iter().map(|device| device.target).collect();
        let source = host::open_interfaces(&directory, known).map_err(|error| error.to_string())?;
        self.device_names.insert(place.clone(), names);
        self.add(place, source, targets, every);
        Ok(())
    }

    /// Opens disks and interfaces, and again where their list has changed.
    fn scan_devices(&mut self) {
        for spec in self.specs.clone() {
            if let Spec::Interfaces { name, pid } = spec {
                self.renew_interfaces(&name, Some(pid));
            }
        }
        if !self.with_host {
            return;
        }
        self.renew_interfaces("host", None);
        // The interfaces of the host's own namespace, opened the first time only.
        let _ = self.find_interfaces("host", None);
        let names = host::disk_names();
        let place = Place::Host("disks");
        if self.device_names.get(&place) == Some(&names) {
            return;
        }
        self.drop_slot(&place);
        let known = self.device_targets(&place, TargetKind::Disk, &names, None);
        if let Ok(source) = host::open_disks(known) {
            self.device_names.insert(place.clone(), names);
            self.add(place, source, Vec::new(), self.pace.host_every);
        }
    }

    fn renew_interfaces(&mut self, name: &str, pid: Option<u32>) {
        let place = Place::Interfaces(name.to_owned());
        let names = host::interface_names(&host::process_directory(pid));
        let changed = self.device_names.get(&place).is_some_and(|known| *known != names);
        if changed && self.is_live(&place) && !names.is_empty() {
            self.drop_slot(&place);
            let _ = self.find_interfaces(name, pid);
        }
    }

    /// Has the sampler give back a slot, because a new one takes its place.
    fn drop_slot(&mut self, place: &Place) {
        let found =
            self.live.iter().find(|(_, tracked)| tracked.place == *place).map(|(id, _)| *id);
        if let Some(id) = found {
            self.live.remove(&id);
            self.stale.push(id);
        }
    }

    /// Targets of devices; one that was known before keeps its number.
    fn device_targets(
        &mut self,
        place: &Place,
        kind: TargetKind,
        names: &[Vec<u8>],
        space: Option<&str>,
    ) -> Vec<Device> {
        names
            .iter()
            .map(|name| {
                let key = (place.clone(), name.clone());
                let target = self.device_targets.get(&key).copied().unwrap_or_else(|| {
                    let plain = String::from_utf8_lossy(name);
                    let full =
                        space.map_or_else(|| plain.to_string(), |space| format!("{space}/{plain}"));
                    self.registry.add(kind, &full, &plain, Sources::new())
                });
                self.device_targets.insert(key, target);
                Device { name: name.clone(), target }
            })
            .collect()
    }
}

const MISSING_ADVICE: &str = "check its name, or give --wait to record once it is there";

fn child_names(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}
