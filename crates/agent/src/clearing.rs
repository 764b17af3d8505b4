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
        "cgroup" => clear_cgroup(ident, sidecar),
        "mount" => {
            mark::own_place(ident, home)?;
            unmount_at(ident)
        }
        "rules" => remove_rules(ident, home),
        "link" => remove_link(ident),
        "path" if !mark::is_there(ident, home)? => Ok(()),
        "path" => match (remove_tree(ident), sidecar) {
            (Err(failure), Some(sidecar)) if denied(&failure) => sidecar.remove_tree(ident),
            (done, _) => done,
        },
        kind if !ORDER.contains(&kind) => Err(format!("no agent removes a {kind}").into()),
        kind => Engine { socket: engine }.remove(kind, ident),
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
fn clear_cgroup(path: &str, sidecar: Option<&Sidecar>) -> Result<(), Failure> {
    mark::refuse_cgroup(path)?;
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
        unmount(target, UnmountFlags::DETACH | UnmountFlags::FORCE)?;
    }
    Ok(())
}

/// `ident`: `PROXY:TAG` for a Service's rules, `cni:TASK` for attachments by CNI's plug-ins.
fn remove_rules(ident: &str, home: &Path) -> Result<(), Failure> {
    let (maker, name) = ident.split_once(':').ok_or("it names no rules of tare's")?;
    if maker != "cni" {
        return netfilter::drop_rules(maker, name);
    }
    let scratch = cni::scratch_of(name)?;
    if !mark::is_there(&scratch, home)? {
        return Ok(());
    }
    cni::detach(name, &scratch)?;
    remove_tree(&scratch)
}

/// The kernel may be removing it meanwhile, if the namespace of its other end has just ended.
fn remove_link(name: &str) -> Result<(), Failure> {
    mark::refuse_link(name)?;
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

/// Removes nothing while a mount is left below it, so that the content of bind mounts is not removed.
fn remove_tree(path: &str) -> Result<(), Failure> {
    for target in
        mounts(|_| true)?.iter().rev().filter(|target| Path::new(target).starts_with(path))
    {
        unmount_at(target)?;
    }
    let done = match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::netfilter::tests::in_own_network;

    fn ledger_with(folder: &Path, entries: &[(&str, &str, bool)]) -> Ledger {
        fs::create_dir_all(folder.join("agent")).unwrap();
        let ledger = Ledger::new(folder.join("agent/ledger"), "me".into());
        for (kind, ident, keep) in entries {
            ledger.note((*kind).into(), (*ident).into(), *keep).unwrap();
        }
        ledger
    }

    #[test]
    fn own_paths_go_and_what_is_kept_stays() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name).display().to_string();
        for name in ["work/run/deep", "images/cache"] {
            fs::create_dir_all(place(name)).unwrap();
        }
        let ledger = ledger_with(
            folder.path(),
            &[("path", &place("work/run"), false), ("path", &place("images/cache"), true)],
        );
        Ledger::new(folder.path().join("agent/ledger"), "other".into())
            .note("path".into(), place("work"), false)
            .unwrap();
        clear(&ledger, "/nowhere", None);
        assert!(!Path::new(&place("work/run")).exists());
        assert!(Path::new(&place("work")).exists() && Path::new(&place("images/cache")).exists());
        assert_eq!(ledger.entries().unwrap().len(), 2);
    }

    #[test]
    fn what_cannot_be_removed_stays_in_the_ledger_and_holds_up_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work/run").display().to_string();
        fs::create_dir_all(&path).unwrap();
        let ledger = ledger_with(
            folder.path(),
            &[("container", "x", false), ("path", "/etc", false), ("path", &path, false)],
        );
        clear(&ledger, "/nowhere/engine", None);
        let left: Vec<_> = ledger
            .entries()
            .unwrap()
            .into_iter()
            .map(|entry| (entry.ident, entry.failed.unwrap()))
            .collect();
        assert_eq!(left.iter().map(|(ident, _)| &ident[..]).collect::<Vec<_>>(), ["x", "/etc"]);
        assert!(
            left[0].1.starts_with("no container engine answers at /nowhere/engine"),
            "{left:?}"
        );
        assert_eq!(left[1].1, "it is not a path that tare makes, so it was left unchanged");
    }

    #[test]
    fn a_damaged_entry_stays_with_its_reason_and_chooses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let damaged = [
            ("rules", "iptables:"),
            ("rules", "ipvs:0123456789ab"),
            ("rules", "cni:../../etc"),
            ("rules", "cni"),
            ("image", "debian:12"),
            ("link", "../../etc"),
            ("namespace", "x@uid"),
        ];
        let entries: Vec<_> = damaged.iter().map(|(kind, ident)| (*kind, *ident, false)).collect();
        let ledger = ledger_with(folder.path(), &entries);
        clear(&ledger, "/nowhere/engine", None);
        let left = ledger.entries().unwrap();
        assert_eq!(left.len(), damaged.len());
        assert!(left.iter().all(|entry| entry.failed.is_some()), "{left:?}");
    }

    #[test]
    fn what_a_pod_has_in_netfilter_goes_before_its_bridge() {
        in_own_network(
            "clearing::tests::what_a_pod_has_in_netfilter_goes_before_its_bridge",
            clear_a_pod_s_network,
        );
    }

    fn clear_a_pod_s_network() {
        let ip = |words: &[&str]| printed(&[&["ip"], words].concat(), b"", CALL).unwrap();
        // Its interfaces are listed in /sys by the namespace that mounted it.
        rustix::mount::mount("sysfs", "/sys", "sysfs", rustix::mount::MountFlags::empty(), None)
            .unwrap();
        ip(&["link", "add", "name", "tarec123456789", "type", "bridge"]);
        printed(&["nft", "add", "table", "ip", "tare-0123456789ab"], b"", CALL).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger_with(
            folder.path(),
            &[
                ("link", "tarec123456789", false),
                ("rules", "nftables:0123456789ab", false),
                ("rules", "cni:tare-never-attached", false),
                ("link", "tarec000000000", false),
            ],
        );
        clear(&ledger, "/nowhere", None);
        assert_eq!(ledger.entries().unwrap(), []);
        assert!(!ip(&["link"]).contains("tarec"));
        let tables = printed(&["nft", "list", "tables"], b"", CALL).unwrap();
        assert!(!tables.contains("tare-"));
    }

    #[test]
    fn a_process_is_ended_and_one_of_its_pid_is_spared() {
        let mut child = Command::new("sleep").arg("60").env(mark::MADE_BY, "me").spawn().unwrap();
        let identity = Identity::of(child.id()).unwrap();
        let other = Identity { started_ticks: identity.started_ticks + 1, ..identity.clone() };
        end(&other.ident(), "me").unwrap();
        let why = end(&identity.ident(), "you").unwrap_err().to_string();
        assert!(why.contains("left running"), "{why}");
        assert!(identity.alive());
        end(&identity.ident(), "me").unwrap();
        assert!(!child.wait().unwrap().success());
    }

    /// Entries of every kind that name what is not tare's.
    #[test]
    fn a_hostile_ledger_costs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let precious = folder.path().join("var/lib/x/precious");
        fs::create_dir_all(precious.parent().unwrap()).unwrap();
        fs::write(&precious, "x").unwrap();
        let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Identity::of(stranger.id()).unwrap().ident();
        let place = |path: &Path| path.display().to_string();
        let above = place(precious.parent().unwrap());
        let hostile = [
            ("process", pid.as_str()),
            ("server", &pid),
            ("cgroup", "system.slice"),
            ("cgroup", "user.slice/user-0.slice"),
            ("mount", "/proc"),
            ("mount", &above),
            ("rules", "nftables:filter"),
            ("rules", "iptables:KUBE"),
            ("rules", "cni:../../etc"),
            ("link", "lo"),
            ("link", "eth0"),
            ("path", "/var/lib"),
            ("path", "/home/alice"),
            ("path", &above),
            ("image", "debian:12"),
        ];
        let entries: Vec<_> = hostile.iter().map(|(kind, ident)| (*kind, *ident, false)).collect();
        let ledger = ledger_with(folder.path(), &entries);
        let before = fs::read_to_string("/proc/self/mountinfo").unwrap();
        clear(&ledger, "/nowhere/engine", None);
        let left = ledger.entries().unwrap();
        assert_eq!(left.len(), hostile.len());
        for entry in &left {
            assert!(entry.failed.as_ref().is_some_and(|why| why.contains(' ')), "{entry:?}");
        }
        assert!(stranger.try_wait().unwrap().is_none() && precious.exists());
        assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), before);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
