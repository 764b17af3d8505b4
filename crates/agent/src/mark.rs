//! Marks of what tare makes. What bears none is never removed, whatever the ledger lists.
//!
//! The rules are those of `tare/sites/marks.py`; `tests/data/marks` holds both to them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::identity::{Identity, parent_of};

/// Variable in the environment of every program that an agent or a tare starts.
pub(crate) const MADE_BY: &str = "TARE_MADE_BY";
/// File in a directory outside a home: its device and inode.
const FILE: &str = ".tare";
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

/// Whether something is at a path that the ledger of `home` lists.
///
/// # Errors
/// It is not tare's: the path leads elsewhere, or the directory bears no mark.
pub(crate) fn is_there(path: &str, home: &Path) -> Result<bool, Failure> {
    let place = own_place(path, home)?;
    let inside = place.starts_with(home);
    if !inside && !place.file_name().is_some_and(|name| is_scratch(&name.to_string_lossy())) {
        return Err(NO_PLACE.into());
    }
    match fs::symlink_metadata(&place) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let parent = place.parent().ok_or(NO_PLACE)?;
    let wanted = match parent.strip_prefix(home) {
        Ok(below) if inside => fs::canonicalize(home)?.join(below),
        _ => parent.to_owned(),
    };
    if fs::canonicalize(parent)? != wanted {
        return Err("a part of it is a link, so it was left unchanged".into());
    }
    if !inside && !is_marked(&place)? {
        return Err("it bears no mark of tare's, so it was left unchanged".into());
    }
    Ok(true)
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

/// Whether a directory bears its mark. One without any entry was being made by a tare that was killed.
fn is_marked(place: &Path) -> io::Result<bool> {
    let about = fs::symlink_metadata(place)?;
    if !about.is_dir() {
        return Ok(false);
    }
    let text = fs::read_to_string(place.join(FILE)).unwrap_or_default();
    if !text.is_empty() {
        return Ok(text.trim() == format!("{}:{}", about.dev(), about.ino()));
    }
    let mut others = fs::read_dir(place)?.filter_map(Result::ok);
    Ok(others.all(|entry| entry.file_name() == FILE))
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

/// # Errors
/// The path leads to no control group below tare's own.
pub(crate) fn refuse_cgroup(path: &str) -> Result<(), Failure> {
    let mut parts = path.split('/');
    let first = parts.next().unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    let own = first.strip_prefix("tare").is_some_and(|rest| {
        rest.is_empty()
            || (rest.len() > 1 && rest.starts_with(['-', '.']) && rest.chars().all(plain))
    });
    if own && !parts.any(|part| matches!(part, "" | "." | "..")) {
        return Ok(());
    }
    Err("it is not a control group below tare's own, so it was left unchanged".into())
}

/// # Errors
/// Others than tare give such names to interfaces.
pub(crate) fn refuse_link(name: &str) -> Result<(), Failure> {
    let own =
        LINKS.iter().any(|kind| name.strip_prefix(kind).is_some_and(|digits| is_hex(digits, 9)));
    if own {
        return Ok(());
    }
    Err("it is not a name of an interface that tare made, so it was left unchanged".into())
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length
        && text.chars().all(|digit| digit.is_ascii_digit() || ('a'..='f').contains(&digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_the_shared_table_has_them() {
        let home = Path::new("/srv/tare");
        let table = include_str!("../tests/data/marks");
        let mut rows = 0;
        for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let [verdict, kind, ident] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{line:?} has no three columns");
            };
            let own = match kind {
                "path" => own_place(ident, home).is_ok(),
                "cgroup" => refuse_cgroup(ident).is_ok(),
                "link" => refuse_link(ident).is_ok(),
                _ => continue, // of an engine or a containerd: in Python, and in engine.rs
            };
            assert_eq!(own, verdict == "own", "{line}");
            rows += 1;
        }
        assert!(rows > 30);
    }

    #[test]
    fn a_directory_needs_its_own_mark_and_a_copied_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let (home, first) = (folder.path().join("home"), folder.path().join("tare-task.a"));
        let second = folder.path().join("tare-task.b");
        for place in [&first, &second] {
            fs::create_dir(place).unwrap();
        }
        let about = fs::metadata(&first).unwrap();
        for place in [&first, &second] {
            fs::write(place.join(FILE), format!("{}:{}\n", about.dev(), about.ino())).unwrap();
        }
        let judged = |place: &Path| is_there(place.to_str().unwrap(), &home);
        assert!(judged(&first).unwrap());
        let why = judged(&second).unwrap_err().to_string();
        assert_eq!(why, "it bears no mark of tare's, so it was left unchanged");
        fs::remove_file(second.join(FILE)).unwrap();
        assert!(judged(&second).unwrap(), "an empty one was being made");
        fs::write(second.join("precious"), "x").unwrap();
        assert!(judged(&second).is_err());
        let link = folder.path().join("tare-task.link");
        std::os::unix::fs::symlink(&first, &link).unwrap();
        assert!(judged(&link).is_err(), "a link is no directory");
    }

    #[test]
    fn no_part_of_a_path_in_a_home_may_be_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (home, others) = (folder.path().join("home"), folder.path().join("others"));
        for place in [home.join("work"), others.join("precious")] {
            fs::create_dir_all(place).unwrap();
        }
        std::os::unix::fs::symlink(&others, home.join("work/aside")).unwrap();
        let judged = |name: &str| is_there(home.join(name).to_str().unwrap(), &home);
        assert_eq!(
            judged("work/aside/precious").unwrap_err().to_string(),
            "a part of it is a link, so it was left unchanged"
        );
        assert!(judged("work/aside").unwrap(), "the link itself is in tare's directory");
        assert!(!judged("work/gone").unwrap());
    }
}
