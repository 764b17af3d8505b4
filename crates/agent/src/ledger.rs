//! The ledger of this host: a line of JSON for each resource noted or forgotten, on disk before the call returns.
//!
//! All agents of one home write to one file, each line under a lock. The owner of an entry is the agent that noted it:
//! whether a tare on another machine still runs cannot be seen from here, and its agent outlives it by a lease.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// Number of lines above which the file is rewritten without forgotten entries.
const MANY: usize = 2000;

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: String,
    pub(crate) ident: String,
    pub(crate) owner: String,
    pub(crate) keep: bool,
    /// Why its agent could not remove it, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Noted(Entry),
    Forgotten {
        kind: String,
        forgotten: String,
    },
    /// Agents from before this kind of line skip it.
    Failed {
        kind: String,
        ident: String,
        failed: String,
    },
}

pub(crate) struct Ledger {
    path: PathBuf,
    owner: String,
}

impl Ledger {
    pub(crate) fn new(path: PathBuf, owner: String) -> Self {
        Self { path, owner }
    }

    /// The home that the ledger lies in (`HOME/agent/ledger`): it speaks for no other.
    pub(crate) fn home(&self) -> &Path {
        self.path.parent().and_then(Path::parent).unwrap_or(&self.path)
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    pub(crate) fn note(&self, kind: String, ident: String, keep: bool) -> io::Result<()> {
        let owner = self.owner.clone();
        self.append(&Line::Noted(Entry { kind, ident, owner, keep, failed: None }))
    }

    pub(crate) fn forget(&self, kind: String, ident: String) -> io::Result<()> {
        self.append(&Line::Forgotten { kind, forgotten: ident })
    }

    /// Notes why an entry could not be removed.
    pub(crate) fn fail(&self, kind: String, ident: String, failed: String) -> io::Result<()> {
        self.append(&Line::Failed { kind, ident, failed })
    }

    /// All entries, oldest first.
    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        match File::open(&self.path) {
            Ok(file) => Ok(standing(&file)?.0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn append(&self, line: &Line) -> io::Result<()> {
        let mut file = self.locked()?;
        let (entries, lines) = standing(&file)?;
        if lines >= MANY && lines > 2 * entries.len() {
            file = self.rewritten(&entries)?;
        }
        // A preceding line that a crash cut short must not run into this one.
        let text = format!("\n{}\n", serde_json::to_string(line)?);
        file.write_all(text.as_bytes())?;
        file.sync_data()
    }

    /// Opens and locks the file, again if another agent has replaced it meanwhile.
    fn locked(&self) -> io::Result<File> {
        loop {
            let file = OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&self.path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            if same(&file, &self.path)? {
                return Ok(file);
            }
        }
    }

    fn rewritten(&self, entries: &[Entry]) -> io::Result<File> {
        let scratch = self.path.with_extension(std::process::id().to_string());
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&scratch)?;
        for entry in entries {
            writeln!(file, "{}", serde_json::to_string(entry)?)?;
        }
        file.sync_all()?;
        flock(&file, FlockOperation::LockExclusive)?;
        fs::rename(&scratch, &self.path)?;
        Ok(file)
    }
}

fn same(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let own = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino())))
}

/// Entries, oldest first, and the number of lines. A line that a crash cut short is skipped.
fn standing(file: &File) -> io::Result<(Vec<Entry>, usize)> {
    let mut at: HashMap<(String, String), usize> = HashMap::new();
    let mut noted: Vec<Option<Entry>> = Vec::new();
    let mut lines = 0;
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        lines += usize::from(!line.is_empty());
        match serde_json::from_slice(&line) {
            Ok(Line::Noted(entry)) => {
                let key = (entry.kind.clone(), entry.ident.clone());
                if let Some(earlier) = at.insert(key, noted.len()) {
                    noted[earlier] = None;
                }
                noted.push(Some(entry));
            }
            Ok(Line::Forgotten { kind, forgotten }) => {
                if let Some(earlier) = at.remove(&(kind, forgotten)) {
                    noted[earlier] = None;
                }
            }
            Ok(Line::Failed { kind, ident, failed }) => {
                let entry = at.get(&(kind, ident)).and_then(|place| noted[*place].as_mut());
                if let Some(entry) = entry {
                    entry.failed = Some(failed);
                }
            }
            Err(_) => {}
        }
    }
    Ok((noted.into_iter().flatten().collect(), lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idents(ledger: &Ledger) -> Vec<String> {
        ledger.entries().unwrap().into_iter().map(|entry| entry.ident).collect()
    }

    #[test]
    fn what_is_noted_stands_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(folder.path().join("ledger"), "me".into());
        assert!(idents(&ledger).is_empty());
        ledger.note("path".into(), "/a".into(), false).unwrap();
        ledger.note("path".into(), "/b".into(), true).unwrap();
        ledger.note("mount".into(), "/a".into(), false).unwrap();
        ledger.forget("path".into(), "/a".into()).unwrap();
        ledger.forget("path".into(), "/never".into()).unwrap();
        assert_eq!(idents(&ledger), ["/b", "/a"]);
    }

    #[test]
    fn noted_twice_the_later_owner_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        Ledger::new(path.clone(), "first".into()).note("path".into(), "/a".into(), false).unwrap();
        let later = Ledger::new(path, "later".into());
        later.note("path".into(), "/a".into(), false).unwrap();
        let entries = later.entries().unwrap();
        assert_eq!((entries.len(), &entries[0].owner[..]), (1, "later"));
    }

    #[test]
    fn why_an_entry_stays_is_kept_until_it_is_noted_anew() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(folder.path().join("ledger"), "me".into());
        let why = || -> Vec<Option<String>> {
            ledger.entries().unwrap().into_iter().map(|entry| entry.failed).collect()
        };
        for ident in ["/a", "/b"] {
            ledger.note("path".into(), ident.into(), false).unwrap();
        }
        ledger.fail("path".into(), "/a".into(), "busy".into()).unwrap();
        ledger.fail("path".into(), "/never".into(), "busy".into()).unwrap();
        assert_eq!(
            (idents(&ledger), why()),
            (vec!["/a".into(), "/b".into()], vec![Some("busy".into()), None])
        );
        ledger.note("path".into(), "/a".into(), false).unwrap();
        assert_eq!((idents(&ledger), why()), (vec!["/b".into(), "/a".into()], vec![None, None]));
    }

    #[test]
    fn an_entry_of_an_older_agent_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let line = r#"{"kind":"rules","ident":"cni:x","owner":"1:2:b","keep":false}"#;
        fs::write(&path, format!("{line}\n")).unwrap();
        let ledger = Ledger::new(path, "me".into());
        assert_eq!(
            (idents(&ledger), ledger.entries().unwrap()[0].failed.clone()),
            (vec!["cni:x".into()], None)
        );
    }

    #[test]
    fn a_line_cut_short_costs_no_other_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let ledger = Ledger::new(path.clone(), "me".into());
        ledger.note("path".into(), "/a".into(), false).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(br#"{"kind": "path", "id"#).unwrap();
        ledger.note("path".into(), "/b".into(), false).unwrap();
        assert_eq!(idents(&ledger), ["/a", "/b"]);
    }

    #[test]
    fn the_file_does_not_grow_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let ledger = Ledger::new(path.clone(), "me".into());
        let forgotten =
            serde_json::to_string(&Line::Forgotten { kind: "path".into(), forgotten: "/x".into() })
                .unwrap();
        fs::write(&path, format!("{forgotten}\n").repeat(MANY)).unwrap();
        ledger.note("path".into(), "/a".into(), false).unwrap();
        assert_eq!(idents(&ledger), ["/a"]);
        assert!(fs::metadata(&path).unwrap().len() < 200);
    }
}
