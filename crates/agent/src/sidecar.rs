//! For an agent that is not root: a container of the engine's does what only root or the data's owners may.
//!
//! tare has told how its own sidecar is made (python/tare/sites/sidecar/); one like it runs a single program.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::Failure;
use crate::engine::Engine;
use crate::ledger::Ledger;

static MADE: AtomicU32 = AtomicU32::new(0);

/// Empties trees of control groups and removes them, the first of its arguments so many, then those above if empty.
const REMOVE_CGROUPS: &str = r#"
left=$1; shift
while [ "$left" -gt 0 ]; do
    tries=50
    while [ -d "$1" ]; do
        find "$1" -depth -type d -exec rmdir -- {} \; 2>/dev/null
        [ -d "$1" ] || break
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { echo "$1 still holds processes" >&2; exit 1; }
        sleep 0.2
    done
    shift; left=$((left - 1))
done
for above; do rmdir -- "$above" 2>/dev/null || :; done
"#;

/// `wanted`: what the engine is asked for, but for the program.
pub(crate) struct Sidecar<'a> {
    pub(crate) engine: Engine<'a>,
    pub(crate) wanted: &'a Value,
    pub(crate) ledger: &'a Ledger,
}

impl Sidecar<'_> {
    /// Run a program to its end. The container stands in the ledger while it is there.
    pub(crate) fn run(&self, argv: &[&str]) -> Result<(), Failure> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("tare-sidecar-{}-{number}", std::process::id());
        let mut wanted = self.wanted.clone();
        *wanted.get_mut("Cmd").ok_or("nobody has told how a sidecar is made")? = argv.into();
        self.ledger.note("container".into(), name.clone(), false)?;
        let done = self.engine.run_once(&name, &wanted);
        self.engine.remove("container", &name)?;
        self.ledger.forget("container".into(), name)?;
        done
    }
    /// One in which others have files.
    pub(crate) fn remove_tree(&self, path: &str) -> Result<(), Failure> {
        self.run(&["rm", "-rf", "--one-file-system", "--", path])
    }

    /// One of a user's containers, which the engine has ended, in every hierarchy: the groups are root's.
    pub(crate) fn clear_cgroup(
        &self,
        path: &str,
        mounts: &BTreeSet<String>,
    ) -> Result<(), Failure> {
        let (mut trees, mut above) = (Vec::new(), Vec::new());
        for mount in mounts {
            let tree = Path::new(mount).join(path);
            if tree.exists() {
                let parents =
                    tree.ancestors().skip(1).take_while(|place| *place != Path::new(mount));
                above.extend(parents.map(|place| place.display().to_string()));
                trees.push(tree.display().to_string());
            }
        }
        if trees.is_empty() {
            return Ok(());
        }
        let count = trees.len().to_string();
        let words = ["sh", "-c", REMOVE_CGROUPS, "sh", &count];
        let places = trees.iter().chain(&above).map(String::as_str);
        self.run(&words.into_iter().chain(places).collect::<Vec<_>>())
    }
}

/// Whether it is for want of rights that something failed.
pub(crate) fn denied(failure: &Failure) -> bool {
    let error = failure.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}
