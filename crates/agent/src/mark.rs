//! Marks of what tare makes. What bears none is never removed, whatever the ledger lists.
//!
//! The rules are those of `tare/sites/marks.py`; `tests/data/marks` holds both to them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstat, open, openat, statat};
use rustix::io::Errno;
use serde_json::Value;

use crate::Failure;
use crate::identity::{Identity, parent_of};

/// Variable in the environment of every program that an agent or a tare starts.
pub(crate) const MADE_BY: &str = "TARE_MADE_BY";
/// File in a home: its inode. In a directory outside a home: its device and inode.
const FILE: &str = ".tare";
/// Labels of what tare makes by an engine: its owner, and the run that it belongs to.
const LABEL: &str = "org.tare-bench.owner";
const RUN_LABEL: &str = "org.tare-bench.run";
/// Most bytes that are read of a mark.
const LONGEST: u64 = 64;
/// How long a program may take from execve(2) to its environment.
const SETTLED: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);
/// Directories of a home in which nothing but tare writes.
const OF_HOME: [&str; 9] = [
    "calibration",
    "images",
    "live",
    "machines",
    "programs",
    "rentals",
    "snapshots",
    "unit-costs",
    "work",
];

/// The mark of this process: its identity, which owns its entries in the ledger.
pub(crate) fn own() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| Identity::own().map(|own| own.ident()).unwrap_or_default())
}

/// What names of interfaces begin with, before nine hexadecimal digits: of virtual machines, NFS servers and pods.
const LINKS: [&str; 7] = ["tarb", "tarn", "tart", "tarec", "tarem", "tareo", "tarep"];

/// What the ledger lists, by the opened directory that it is in: links that are put in the way lead nowhere.
#[derive(Debug)]
pub(crate) struct Place {
    above: OwnedFd,
    name: OsString,
}

impl Place {
    pub(crate) fn remove(&self) -> io::Result<()> {
        let path =
            PathBuf::from(format!("/proc/self/fd/{}", self.above.as_raw_fd())).join(&self.name);
        match fs::symlink_metadata(&path) {
            Ok(about) if about.is_dir() => fs::remove_dir_all(path), // follows no link below
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        }
    }
}

/// What is at a path that the ledger of `home` lists; `None` if nothing is.
///
/// # Errors
/// It is not tare's: the path leads elsewhere, or the home or a directory outside of it bears no mark.
pub(crate) fn opened(path: &str, home: &Path) -> Result<Option<Place>, Failure> {
    let place = own_place(path, home)?;
    let (root, below) = match place.strip_prefix(home) {
        Ok(below) => (home, below),
        Err(_) => (Path::new("/"), place.strip_prefix("/")?),
    };
    let inside = root == home;
    let name = below.file_name().ok_or(NO_PLACE)?;
    if !inside && !is_scratch(&name.to_string_lossy()) {
        return Err(NO_PLACE.into());
    }
    // The home itself may be reached by links; nothing below it may be one.
    let Some(top) = present(open(root, FOLDER, Mode::empty()))? else { return Ok(None) };
    let mut above = top.try_clone()?;
    for part in below.parent().into_iter().flat_map(Path::iter) {
        let next = openat(&above, part, FOLDER | OFlags::NOFOLLOW, Mode::empty());
        if matches!(next, Err(Errno::LOOP | Errno::NOTDIR)) {
            return Err("a part of it is a link, so it was left unchanged".into());
        }
        let Some(next) = present(next)? else { return Ok(None) };
        above = next;
    }
    if present(statat(&above, name, AtFlags::SYMLINK_NOFOLLOW))?.is_none() {
        return Ok(None);
    }
    if inside && text_of(&top)? != inode_of(&top)? {
        return Err(format!(
            "{} bears no mark of tare's, so it was left unchanged",
            home.display()
        )
        .into());
    }
    if !inside && !is_marked(&above, name)? {
        return Err("it bears no mark of tare's, so it was left unchanged".into());
    }
    Ok(Some(Place { above, name: name.to_owned() }))
}

/// Makes a home, or takes an empty directory as one, and writes its mark: its inode. Device numbers may change with a
/// boot.
///
/// # Errors
/// It holds what tare did not make.
pub(crate) fn make_home(home: &Path) -> Result<(), Failure> {
    fs::create_dir_all(home)
        .map_err(|error| format!("{} cannot be made: {error}", home.display()))?;
    // Listed before the mark is read: another tare may be making the home, and writes the mark first.
    let empty = fs::read_dir(home)?.all(|entry| {
        entry.is_ok_and(|entry| entry.file_name() == FILE || entry.file_name() == OF_A_FILE_SYSTEM)
    });
    let top = open(home, FOLDER, Mode::empty())?;
    let inode = inode_of(&top)?;
    if empty {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&top, FILE, flags, Mode::from_raw_mode(0o644))?;
        return Ok(fs::File::from(file).write_all(format!("{inode}\n").as_bytes())?);
    }
    if text_of(&top)? == inode {
        return Ok(());
    }
    let home = home.display();
    let hint = format!("if nothing else is in it: stat -c %i {home} >{home}/{FILE}");
    Err(format!("{home} holds what tare did not make: choose an empty directory, or {hint}").into())
}

/// In an empty home with a disk of its own.
const OF_A_FILE_SYSTEM: &str = "lost+found";

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn present<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Err(Errno::NOENT) => Ok(None),
        other => other.map(Some),
    }
}

/// Text of the mark in an opened directory; empty without one.
fn text_of(folder: &OwnedFd) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, FILE, flags, Mode::empty()) else { return Ok(String::new()) };
    let mut text = Vec::new();
    fs::File::from(file).take(LONGEST).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}

fn inode_of(folder: &OwnedFd) -> io::Result<String> {
    Ok(fstat(folder)?.st_ino.to_string())
}

const NO_PLACE: &str = "it is not a path that tare makes, so it was left unchanged";

/// The path, if it is in a directory that only tare makes.
pub(crate) fn own_place(path: &str, home: &Path) -> Result<PathBuf, Failure> {
    let place = PathBuf::from(path);
    let plain = path.starts_with('/')
        && !path.ends_with('/')
        && !path.split('/').skip(1).any(|part| matches!(part, "" | "." | ".."));
    if !plain {
        return Err("it is not an absolute path without detours, so it was left unchanged".into());
    }
    let own = match place.strip_prefix(home) {
        Ok(below) => below.components().next().is_some_and(
            |first| matches!(first, Component::Normal(name) if OF_HOME.iter().any(|own| name == *own)),
        ),
        Err(_) => place.components().any(|part| is_scratch(&part.as_os_str().to_string_lossy())),
    };
    if own { Ok(place) } else { Err(NO_PLACE.into()) }
}

/// `tare-task.NAME`, `tare-pod.NAME`, or `tare-PURPOSE-` and 16 hexadecimal digits.
fn is_scratch(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("tare-") else { return false };
    let task = rest.strip_prefix("task.").or(rest.strip_prefix("pod."));
    if let Some(task) = task {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        return !task.is_empty() && task.chars().all(plain);
    }
    rest.rsplit_once('-').is_some_and(|(purpose, digits)| {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        !purpose.is_empty() && purpose.chars().all(plain) && is_hex(digits, 16)
    })
}

/// Whether a directory outside a home bears its mark. One without any entry was being made by a tare that was killed.
fn is_marked(above: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    let Ok(folder) = openat(above, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) else {
        return Ok(false);
    };
    let (about, text) = (fstat(&folder)?, text_of(&folder)?);
    if !text.is_empty() {
        return Ok(text == format!("{}:{}", about.st_dev, about.st_ino));
    }
    let mut others = Dir::read_from(&folder)?.filter_map(Result::ok);
    Ok(others.all(|entry| matches!(entry.file_name().to_bytes(), b"." | b".." | b".tare")))
}

/// Whether a process, or its parent (a bare task's supervisor), was started by `owner`.
pub(crate) fn made(process: &Identity, owner: &str) -> bool {
    let wanted = format!("{MADE_BY}={owner}");
    [Some(process.pid), parent_of(process.pid)].into_iter().flatten().any(|pid| {
        environment(pid).split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    })
}

/// Environment of a process. While a program begins, it is empty for a moment: execve(2) releases the caller of
/// vfork(2) before it tells /proc where the new environment is.
fn environment(pid: u32) -> Vec<u8> {
    let deadline = Instant::now() + SETTLED;
    loop {
        let variables = fs::read(format!("/proc/{pid}/environ"));
        if !matches!(&variables, Ok(text) if text.is_empty()) || Instant::now() > deadline {
            return variables.unwrap_or_default();
        }
        std::thread::sleep(LOOK);
    }
}

/// Four digits for names: FNV-1a of the owner's identity, folded (RFC 9923).
pub(crate) fn token_of(owner: &str) -> String {
    let value = owner
        .bytes()
        .fold(0x811c_9dc5_u32, |value, byte| (value ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{:04x}", (value >> 16) ^ (value & 0xffff))
}

const OTHERS: &str =
    "another tare made it than the one that the ledger names, so it was left unchanged";

/// # Errors
/// The path leads to no control group of a run of this owner: the group of all runs is nobody's own.
pub(crate) fn refuse_cgroup(path: &str, owner: &str) -> Result<(), Failure> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    let below = path.strip_prefix("tare/").or(path.strip_prefix("tare.slice/tare-"));
    let named = below.filter(|_| !path.split('/').any(|part| matches!(part, "" | "." | "..")));
    let named = named.filter(|below| {
        let run = below.split('/').next().unwrap_or_default().split_once('_');
        run.is_some_and(|(token, name)| {
            is_hex(token, 4) && !name.is_empty() && name.chars().all(plain)
        })
    });
    must_name(
        named,
        owner,
        "it is not a control group of a run of tare's, so it was left unchanged",
    )
}

/// # Errors
/// Others than this owner give such names to interfaces.
pub(crate) fn refuse_link(name: &str, owner: &str) -> Result<(), Failure> {
    let named =
        LINKS.iter().find_map(|kind| name.strip_prefix(kind)).filter(|rest| is_hex(rest, 9));
    must_name(
        named,
        owner,
        "it is not a name of an interface that tare made, so it was left unchanged",
    )
}

/// # Errors
/// Others than this owner give such names to tables and chains of this program.
pub(crate) fn refuse_rules(maker: &str, tag: &str, owner: &str) -> Result<(), Failure> {
    let named = (["iptables", "nftables"].contains(&maker) && is_hex(tag, 12)).then_some(tag);
    must_name(named, owner, "it does not name rules that tare made, so it was left unchanged")
}

/// # Errors
/// No container, network or volume with these labels was made by this owner.
pub(crate) fn refuse_labels(labels: &Value, owner: &str) -> Result<(), Failure> {
    if labels.get(RUN_LABEL).is_none() {
        return Err("it has no label of tare's, so it was left unchanged".into());
    }
    if labels[LABEL] == owner { Ok(()) } else { Err(OTHERS.into()) }
}

/// `digits`: those of a name that only tare gives, the owner's token first.
fn must_name(digits: Option<&str>, owner: &str, why: &str) -> Result<(), Failure> {
    match digits {
        None => Err(why.into()),
        Some(digits) if digits.starts_with(&token_of(owner)) => Ok(()),
        Some(_) => Err(OTHERS.into()),
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length
        && text.chars().all(|digit| digit.is_ascii_digit() || ('a'..='f').contains(&digit))
}

#[cfg(test)]
pub(crate) mod tests;
