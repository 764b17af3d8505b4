//! What an agent removes, and what it leaves whatever its ledger lists.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::{Arc, Mutex};

use super::*;
use crate::mark::tests::mark_as_home;
use crate::netfilter::tests::in_own_network;

fn ledger_with(folder: &Path, entries: &[(&str, &str, bool)]) -> Ledger {
    fs::create_dir_all(folder.join("agent")).unwrap();
    mark_as_home(folder);
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
    assert!(left[0].1.starts_with("no container engine answers at /nowhere/engine"), "{left:?}");
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
    own_sys();
    let own = mark::token_of("me");
    let (bridge, tag) = (format!("tarec{own}56789"), format!("{own}456789ab"));
    ip(&["link", "add", "name", &bridge, "type", "bridge"]);
    printed(&["nft", "add", "table", "ip", &format!("tare-{tag}")], b"", CALL).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger_with(
        folder.path(),
        &[
            ("link", &bridge, false),
            ("rules", &format!("nftables:{tag}"), false),
            ("rules", "cni:tare-never-attached", false),
            ("link", &format!("tarec{own}00000"), false),
        ],
    );
    clear(&ledger, "/nowhere", None);
    assert_eq!(ledger.entries().unwrap(), []);
    assert!(!ip(&["link"]).contains("tarec"));
    let tables = printed(&["nft", "list", "tables"], b"", CALL).unwrap();
    assert!(!tables.contains("tare-"));
}

/// The interfaces of a network namespace are listed in /sys by the namespace that mounted it.
fn own_sys() {
    rustix::mount::mount("sysfs", "/sys", "sysfs", rustix::mount::MountFlags::empty(), None)
        .unwrap();
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

/// Entries of every kind that name what is not tare's, or another tare's.
#[test]
fn a_hostile_ledger_costs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("var/lib/x/precious");
    fs::create_dir_all(precious.parent().unwrap()).unwrap();
    fs::write(&precious, "x").unwrap();
    let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = Identity::of(stranger.id()).unwrap().ident();
    let above = precious.parent().unwrap().display().to_string();
    let engine = folder.path().join("engine");
    let others = serve_others(&engine);
    let hostile = [
        ("process", pid.as_str()),
        ("server", &pid),
        ("cgroup", "system.slice"),
        ("cgroup", "user.slice/user-0.slice"),
        ("cgroup", "tare"),
        ("cgroup", "tare.slice"),
        ("cgroup", "tare/0000_run"),
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
        ("container", "postgres"),
        ("network", "bridge"),
        ("volume", "data"),
    ];
    let ledger = ledger_with(folder.path(), &hostile.map(|(kind, ident)| (kind, ident, false)));
    clear(&ledger, engine.to_str().unwrap(), None);
    refused(&ledger, hostile.len());
    assert!(stranger.try_wait().unwrap().is_none() && precious.exists());
    // Other programs mount and unmount meanwhile.
    assert!(mounts(|kind| kind == "proc").unwrap().contains("/proc"));
    assert_eq!(*others.lock().unwrap(), ["GET"; 3], "nothing was asked to go");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

/// An engine in which everything bears another tare's labels; the verbs that it was asked.
fn serve_others(socket: &Path) -> Arc<Mutex<Vec<String>>> {
    let (listener, asked) =
        (UnixListener::bind(socket).unwrap(), Arc::<Mutex<Vec<String>>>::default());
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut block) = (stream.unwrap(), [0; 4096]);
            let length = stream.read(&mut block).unwrap();
            let verb =
                String::from_utf8_lossy(&block[..length]).split(' ').next().unwrap().to_owned();
            seen.lock().unwrap().push(verb);
            let labels = r#"{"org.tare-bench.run": "tare/x", "org.tare-bench.owner": "you"}"#;
            let answer = format!("HTTP/1.0 200 OK\r\n\r\n{{\"Labels\": {labels}}}");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    asked
}

/// Every entry is still there, and each has a sentence.
fn refused(ledger: &Ledger, count: usize) {
    let left = ledger.entries().unwrap();
    assert_eq!(left.len(), count);
    for entry in &left {
        assert!(entry.failed.as_ref().is_some_and(|why| why.contains(' ')), "{entry:?}");
    }
}

#[test]
fn a_hostile_ledger_costs_no_mount_interface_or_table() {
    in_own_network(
        "clearing::tests::a_hostile_ledger_costs_no_mount_interface_or_table",
        leave_others_networks,
    );
}

fn leave_others_networks() {
    own_sys();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("var/lib/x").display().to_string();
    fs::create_dir_all(&data).unwrap();
    rustix::mount::mount("tmpfs", &data, "tmpfs", rustix::mount::MountFlags::empty(), None)
        .unwrap();
    let you = mark::token_of("you");
    let (link, table) = (format!("tarec{you}56789"), format!("{you}456789ab"));
    for name in [&link, "eth9"] {
        printed(&["ip", "link", "add", "name", name, "type", "bridge"], b"", CALL).unwrap();
    }
    for name in [&format!("tare-{table}"), "others"] {
        printed(&["nft", "add", "table", "ip", name], b"", CALL).unwrap();
    }
    let state = || {
        let tables = printed(&["nft", "list", "tables"], b"", CALL).unwrap();
        let links = printed(&["ip", "-oneline", "link"], b"", CALL).unwrap();
        (tables, links, fs::read_to_string("/proc/self/mountinfo").unwrap())
    };
    let rules = format!("nftables:{table}");
    let hostile = [
        ("link", link.as_str()),
        ("link", "eth9"),
        ("rules", &rules),
        ("rules", "nftables:others"),
        ("mount", &data),
        ("path", &data),
    ];
    let ledger = ledger_with(folder.path(), &hostile.map(|(kind, ident)| (kind, ident, false)));
    let before = state();
    clear(&ledger, "/nowhere", None);
    refused(&ledger, hostile.len());
    assert_eq!(state(), before);
    rustix::mount::unmount(&data, rustix::mount::UnmountFlags::empty()).unwrap();
}
