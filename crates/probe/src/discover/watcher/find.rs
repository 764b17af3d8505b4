//! Finding and opening of requested control groups, processes and namespaces.

use std::collections::BTreeSet;
use std::path::Path;

use tare_record::header::TargetKind;

use super::{Place, Tracked, Watcher};
use crate::block::{self, BlockSlot};
use crate::discover::hierarchy::{Directories, UNIFIED};
use crate::discover::registry::Sources;
use crate::discover::spec::{CgroupPlace, Spec};
use crate::discover::{cgroup, process};
use crate::facts;
use crate::sampler::PROBE_TARGET;
use crate::source::cgroup::CgroupSource;
use crate::source::perf::PerfSource;
use crate::source::process::ProcessSource;

impl Watcher {
    /// Opens existing targets that are not open yet. Returns the names of missing ones, and why.
    /// Children of a group that cannot be opened are reported once, among the news.
    pub(super) fn scan(&mut self) -> Vec<(String, String)> {
        let mut missing = Vec::new();
        let specs: Vec<Spec> = self.all_specs().cloned().collect();
        for spec in specs {
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
            return Err(format!("no control group {at}"));
        }
        let mut opened = cgroup::open(&directories, self.pace.user_hz).map_err(|error| {
            format!("{error}: it has some twenty; `ulimit -Hn` says how many this program may have")
        })?;
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

    /// Opens performance counters of a control group. Also returns their entry in the table of targets.
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
        let above = format!("{}/", path.trim_end_matches('/'));
        self.child_names.retain(|child, _| match child.strip_prefix(&above) {
            Some(rest) => rest.contains('/') || names.contains(rest),
            None => true,
        });
        self.young.retain(|called| self.child_names.values().any(|known| known == called));
        let hierarchies = parent.all().count();
        for name in names {
            let below = format!("{above}{name}");
            let called = self.child_name(&below, &name);
            let place = CgroupPlace::Path(below.clone());
            if self.is_being_made(&called, &place, hierarchies) {
                continue;
            }
            let Err(reason) = self.find_cgroup(&called, &place) else {
                self.refused.remove(&below);
                continue;
            };
            // A group that ended after the listing is ignored.
            let is_there = !self.hierarchies.directories(&place).is_empty();
            if is_there && self.refused.insert(below) {
                self.news.push((called, reason));
            }
        }
        if parent.is_empty() { Err(format!("no control group at {path}")) } else { Ok(()) }
    }

    /// Whether a child may come to be in more hierarchies, as it is made in one after the other: files that
    /// are not there when it is opened are not looked for again. Who is not in all is looked at once more.
    fn is_being_made(&mut self, called: &str, place: &CgroupPlace, hierarchies: usize) -> bool {
        if !self.is_running || self.is_live(&Place::Cgroup(called.to_owned())) {
            return false;
        }
        let is_in_all = self.hierarchies.directories(place).all().count() == hierarchies;
        !is_in_all && self.young.insert(called.to_owned())
    }

    /// Name of a child as long as it exists: its directory's name, or its path if another
    /// group has that name, as one of two would be passed over.
    fn child_name(&mut self, path: &str, name: &str) -> String {
        if let Some(called) = self.child_names.get(path) {
            return called.clone();
        }
        let is_named =
            |spec: &Spec| matches!(spec, Spec::Cgroup { name: named, .. } if named == name);
        let is_taken = self.all_specs().any(is_named)
            || self.child_names.values().any(|called| called == name);
        let called = if is_taken { path } else { name }.to_owned();
        self.child_names.insert(path.to_owned(), called.clone());
        called
    }

    fn find_process(&mut self, name: &str, pid: u32, tree: bool) -> Result<(), String> {
        let root = self.open_process(name, pid);
        if tree {
            for pid in process::descendants(pid) {
                // A process that ended after the listing is ignored.
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

    /// Adds a block slot for a control group. Also returns its entry in the table of targets.
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
}

fn child_names(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}
