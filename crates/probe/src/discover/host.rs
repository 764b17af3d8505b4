//! Opening of the host's sources.

use std::path::{Path, PathBuf};

use tare_record::header::TargetKind;

use super::registry::{Registry, Sources};
use crate::error::ProbeError;
use crate::facts;
use crate::parse::{diskstats, net_dev};
use crate::source::Source;
use crate::source::device::{Device, DiskSource, InterfaceSource};
use crate::source::memory::MemorySource;
use crate::source::pressure::PressureSource;
use crate::source::stat::{StatSource, StatTargets};

const PROC: &str = "/proc";

/// Opens sources whose targets do not change.
///
/// # Errors
/// `/proc` is not mounted.
pub fn open_fixed(registry: &mut Registry) -> Result<Vec<Box<dyn Source>>, ProbeError> {
    let proc = Path::new(PROC);
    let mut sources = Sources::new();
    for (group, file) in [("cpu", "stat"), ("memory", "meminfo"), ("paging", "vmstat")] {
        sources.insert(group.to_owned(), format!("{PROC}/{file}"));
    }
    let has_pressure = proc.join("pressure/cpu").is_file();
    let pressure = if has_pressure { "/proc/pressure" } else { "absent: no CONFIG_PSI, or psi=0" };
    sources.insert("pressure".to_owned(), pressure.to_owned());
    let host = registry.add(TargetKind::Host, "host", &facts::kernel(), sources);

    let stat_path = proc.join("stat");
    let targets = cpu_targets(registry, host);
    let stat = StatSource::open(&stat_path, targets)
        .map_err(|source| ProbeError::Proc { path: stat_path, source })?;
    let memory = MemorySource::open(proc, host)
        .map_err(|source| ProbeError::Proc { path: proc.to_path_buf(), source })?;
    let mut opened: Vec<Box<dyn Source>> = vec![Box::new(stat), Box::new(memory)];
    if let Some(pressure) = PressureSource::open(proc, host) {
        opened.push(Box::new(pressure));
    }
    Ok(opened)
}

fn cpu_targets(registry: &mut Registry, host: u32) -> StatTargets {
    let mut add = |name: &str| registry.add(TargetKind::Cpu, name, "/proc/stat", Sources::new());
    let all = add("all");
    let numbers = facts::cpu_numbers();
    let most = numbers.iter().max().map_or(0, |number| number + 1);
    let cpus = (0..most).map(|number| add(&number.to_string())).collect();
    StatTargets { host, all, cpus }
}

/// Names of block devices to sample.
#[must_use]
pub fn disk_names() -> Vec<Vec<u8>> {
    let text = std::fs::read("/proc/diskstats").unwrap_or_default();
    let seldom_used: [&[u8]; 3] = [b"loop", b"ram", b"zram"];
    diskstats::devices(&text)
        .filter(|(name, words)| {
            diskstats::was_used(*words)
                || !seldom_used.iter().any(|prefix| name.starts_with(prefix))
        })
        .map(|(name, _)| name.to_vec())
        .collect()
}

/// Names of the interfaces in a process's network namespace.
#[must_use]
pub fn interface_names(process: &Path) -> Vec<Vec<u8>> {
    let text = std::fs::read(process.join("net/dev")).unwrap_or_default();
    net_dev::interfaces(&text).map(|(name, _)| name.to_vec()).collect()
}

/// Opens `/proc/diskstats` for these devices.
///
/// # Errors
/// It cannot be opened.
pub fn open_disks(known: Vec<Device>) -> std::io::Result<Box<dyn Source>> {
    Ok(Box::new(DiskSource::open(Path::new("/proc/diskstats"), known)?))
}

/// Opens the interfaces of a process's network namespace.
///
/// # Errors
/// The process does not exist.
pub fn open_interfaces(process: &Path, known: Vec<Device>) -> std::io::Result<Box<dyn Source>> {
    Ok(Box::new(InterfaceSource::open(process, known)?))
}

/// Directory of a process; the probe's own for the host's interfaces.
#[must_use]
pub fn process_directory(pid: Option<u32>) -> PathBuf {
    pid.map_or_else(|| PathBuf::from("/proc/self"), |pid| PathBuf::from(format!("{PROC}/{pid}")))
}
