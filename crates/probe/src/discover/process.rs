//! Processes and their descendants.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::parse::pid_stat;

#[must_use]
pub fn directory(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// Command of a process, for the table of targets.
#[must_use]
pub fn command(pid: u32) -> Option<String> {
    let stat = fs::read(directory(pid).join("stat")).ok()?;
    Some(String::from_utf8_lossy(pid_stat::command(&stat)?).into_owned())
}

/// All descendants of a process, by the parents in `/proc/*/stat`.
///
/// A child whose parent has ended gets another parent; the watcher keeps members that it has found
/// before.
#[must_use]
pub fn descendants(root: u32) -> BTreeSet<u32> {
    below(root, &children_by_parent())
}

fn children_by_parent() -> BTreeMap<u32, Vec<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let Ok(entries) = fs::read_dir("/proc") else { return children };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = fs::read(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = pid_stat::parent(&stat).and_then(|pid| u32::try_from(pid).ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

fn below(root: u32, children: &BTreeMap<u32, Vec<u32>>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for &child in children.get(&pid).into_iter().flatten() {
            if found.insert(child) {
                open.push(child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grandchildren_belong_to_the_tree() {
        let children = BTreeMap::from([(1, vec![2, 9]), (2, vec![3]), (3, vec![4, 5])]);
        assert_eq!(below(2, &children), BTreeSet::from([3, 4, 5]));
        assert_eq!(below(9, &children), BTreeSet::new());
    }

    #[test]
    fn a_child_of_this_process_is_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let found = descendants(std::process::id());
        child.kill().expect("kill");
        child.wait().expect("reap");
        assert!(found.contains(&child.id()));
    }
}
