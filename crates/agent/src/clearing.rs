//! Removal of everything that this agent's entries in the ledger name, after its tare has not come back.
//!
//! The order is that of `tare clean`: users before what they use. Caches and their entries are kept.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;

use crate::Failure;
use crate::cni;
use crate::engine::Engine;
use crate::identity::Identity;
use crate::ledger::{Entry, Ledger};
use crate::log;
use crate::mark;
use crate::mounts::mounts;
use crate::netfilter;
use crate::program::printed;
use crate::sidecar::{Sidecar, denied};

/// Kinds that an agent can remove, in order; entries of other kinds stay in the ledger, with that reason.
const ORDER: [&str; 11] = [
    "container",
    "process",
    "cgroup",
    "mount",
    "server",
    "rules",
    "link",
    "network",
    "volume",
    "path",
    "image",
];
const GRACE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit of a program.
const CALL: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// Removes everything. Entries that could not be removed stay in the ledger with the reason, and the others are still
/// removed. `wanted`: how to make a sidecar, if this agent is not root.
pub(crate) fn clear(ledger: &Ledger, engine: &str, wanted: Option<&Value>) {
    let mut entries = match ledger.entries() {
        Ok(entries) => entries,
        Err(error) => return log(&format!("the ledger cannot be read: {error}")),
    };
    entries.retain(|entry| !entry.keep && entry.owner == ledger.owner());
    entries.reverse();
    entries.sort_by_key(|entry| ORDER.iter().position(|kind| *kind == entry.kind));
    for entry in entries {
        let (kind, ident) = (entry.kind.clone(), entry.ident.clone());
        let sidecar =
            wanted.map(|wanted| Sidecar { engine: Engine { socket: engine }, wanted, ledger });
        let noted = match remove(&entry, ledger.home(), engine, sidecar.as_ref()) {
            Ok(()) => ledger.forget(kind, ident),
            Err(failure) => {
                log(&format!("{kind} {ident} could not be removed: {failure}"));
                ledger.fail(kind, ident, failure.to_string())
            }
        };
        if let Err(error) = noted {
            log(&format!("the ledger cannot be written: {error}"));
        }
    }
}

fn remove(
    entry: &Entry,
    home: &Path,
    engine: &str,
    sidecar: Option<&Sidecar>,
) -> Result<(), Failure> {
    let ident = entry.ident.as_str();
    match entry.kind.as_str() {
        "process" | "server" => end(ident, &entry.owner),
        "cgroup" => clear_cgroup(ident, &entry.owner, sidecar),
        "mount" => {
            mark::own_place(ident, home)?;
            unmount_at(ident)
        }
        "rules" => remove_rules(ident, home, &entry.owner),
        "link" => remove_link(ident, &entry.owner),
        "path" => match (remove_tree(ident, home), sidecar) {
            (Err(failure), Some(sidecar)) if denied(&failure) => sidecar.remove_tree(ident),
            (done, _) => done,
        },
        kind if !ORDER.contains(&kind) => Err(format!("no agent removes a {kind}").into()),
        kind => Engine { socket: engine }.remove(kind, ident, &entry.owner),
    }
}

/// Ends a process of `owner`. Signals are sent by a pidfd, so they reach this process or none.
fn end(ident: &str, owner: &str) -> Result<(), Failure> {
    let Some(process) = Identity::parse(ident) else { return Ok(()) }; // of another boot
    let pid = Pid::from_raw(process.pid as i32).ok_or("no process has this pid")?;
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    if process.alive() && !mark::made(&process, owner) && process.alive() {
        return Err(
            "it bears no mark of the tare that the ledger names, so it was left running".into()
        );
    }
    for (signal, patience) in [(Signal::TERM, GRACE), (Signal::KILL, PATIENCE)] {
        let deadline = Instant::now() + patience;
        if process.alive() {
            let _gone = pidfd_send_signal(&handle, signal);
        }
        while process.alive() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }
    if process.alive() { Err("it does not end, even after SIGKILL".into()) } else { Ok(()) }
}

/// Kills and removes in a loop: members may fork meanwhile, and a v1 cgroup stays busy until all are reaped.
fn clear_cgroup(path: &str, owner: &str, sidecar: Option<&Sidecar>) -> Result<(), Failure> {
    mark::refuse_cgroup(path, owner)?;
    if let Some(sidecar) = sidecar {
        return sidecar.clear_cgroup(path, &mounts(|kind| kind.starts_with("cgroup"))?);
    }
    let deadline = Instant::now() + PATIENCE;
    for mount in mounts(|kind| kind.starts_with("cgroup"))? {
        let tree = Path::new(&mount).join(path);
        while tree.exists() {
            kill_members(&tree)?;
            if remove_cgroups(&tree).is_ok() {
                break;
            }
            if Instant::now() > deadline {
                return Err("it still holds processes".into());
            }
            std::thread::sleep(LOOK);
        }
        let mut above = tree.parent();
        while let Some(folder) = above.filter(|folder| folder.as_os_str() != mount.as_str()) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
            above = folder.parent();
        }
    }
    Ok(())
}

fn kill_members(tree: &Path) -> io::Result<()> {
    let members = fs::read_to_string(tree.join("cgroup.procs")).unwrap_or_default();
    for pid in members.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
        let _gone = rustix::process::kill_process(pid, Signal::KILL);
    }
    children(tree)?.iter().try_for_each(|child| kill_members(child))
}

fn remove_cgroups(tree: &Path) -> io::Result<()> {
    children(tree)?.iter().try_for_each(|child| remove_cgroups(child))?;
    fs::remove_dir(tree)
}

fn children(tree: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let entries = fs::read_dir(tree)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries
        .iter()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(std::fs::DirEntry::path)
        .collect())
}

fn unmount_at(target: &str) -> Result<(), Failure> {
    // Several mounts may be stacked.
    while mounts(|_| true)?.contains(target) {
        unmount(target, UnmountFlags::DETACH | UnmountFlags::FORCE | UnmountFlags::NOFOLLOW)?;
    }
    Ok(())
}

/// `ident`: `PROXY:TAG` for a Service's rules, `cni:TASK` for attachments by CNI's plug-ins.
fn remove_rules(ident: &str, home: &Path, owner: &str) -> Result<(), Failure> {
    let (maker, name) = ident.split_once(':').ok_or("it names no rules of tare's")?;
    if maker != "cni" {
        mark::refuse_rules(maker, name, owner)?;
        return netfilter::drop_rules(maker, name);
    }
    let scratch = cni::scratch_of(name)?;
    if mark::opened(&scratch, home)?.is_none() {
        return Ok(());
    }
    cni::detach(name, &scratch)?;
    remove_tree(&scratch, home)
}

/// The kernel may be removing it meanwhile, if the namespace of its other end has just ended.
fn remove_link(name: &str, owner: &str) -> Result<(), Failure> {
    mark::refuse_link(name, owner)?;
    let place = Path::new("/sys/class/net").join(name);
    let deadline = Instant::now() + PATIENCE;
    while place.exists() {
        match printed(&["ip", "link", "delete", "dev", name], b"", CALL) {
            Err(failure) if Instant::now() > deadline && place.exists() => return Err(failure),
            Err(_) => std::thread::sleep(LOOK),
            Ok(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Removes nothing while a mount is left below it, so that the content of bind mounts is not removed. The mark is looked
/// at before anything is unmounted, and again in what is then removed.
fn remove_tree(path: &str, home: &Path) -> Result<(), Failure> {
    if mark::opened(path, home)?.is_none() {
        return Ok(());
    }
    for target in
        mounts(|_| true)?.iter().rev().filter(|target| Path::new(target).starts_with(path))
    {
        unmount_at(target)?;
    }
    match mark::opened(path, home)?.map(|place| place.remove()) {
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
