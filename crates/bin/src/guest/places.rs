//! File systems that are mounted for the task: their free room, and unmounting them in the end.

use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use rustix::mount::{UnmountFlags, unmount};
use serde_json::{Map, Value, json};

use crate::Failure;

/// A file system of the machine. `target`: path of a disk with data as the task sees it.
pub(crate) struct Place {
    at: PathBuf,
    target: Option<String>,
}

impl Place {
    /// # Errors
    /// The disk has no target.
    pub(crate) fn of_disk(disk: &Value, at: PathBuf) -> Result<Self, Failure> {
        let target = disk["target"].as_str().ok_or("a disk without target")?;
        Ok(Self { at, target: Some(target.to_string()) })
    }

    pub(crate) fn without_disk(at: PathBuf) -> Self {
        Self { at, target: None }
    }
}

/// Target → `free_bytes` for users, and `bytes` of its disk's file system; unreadable ones are left out.
pub(crate) fn rooms(places: &[Place]) -> Value {
    let known = places.iter().filter_map(|place| Some((place.target.clone()?, room(&place.at)?)));
    Value::Object(known.collect::<Map<_, _>>())
}

fn room(at: &Path) -> Option<Value> {
    let seen = statvfs(at).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(seen.f_frsize);
    Some(json!({"free_bytes": bytes(seen.f_bavail), "bytes": bytes(seen.f_blocks)}))
}

/// Unmounts all, so that disks are clean and the host can read them.
pub(crate) fn let_go(places: &[Place]) {
    for place in places.iter().rev() {
        if let Err(error) = unmount(&place.at, UnmountFlags::empty()) {
            eprintln!("tare-guest: {} could not be unmounted: {error}", place.at.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_of_disks_alone_is_listed_and_what_is_not_there_is_left_out() {
        let own = tempfile::tempdir().expect("a directory can be made");
        let disk = |target: &str, at: &Path| {
            Place::of_disk(&json!({"target": target}), at.to_path_buf()).expect("it has a target")
        };
        let listed = rooms(&[
            disk("/data", own.path()),
            disk("/lost", &own.path().join("nothing")),
            Place::without_disk(own.path().to_path_buf()),
        ]);
        let rooms = listed.as_object().expect("an object");
        assert_eq!(rooms.keys().collect::<Vec<_>>(), ["/data"]);
        assert!(rooms["/data"]["bytes"].as_u64() > Some(0));
        assert!(rooms["/data"]["free_bytes"].as_u64() <= rooms["/data"]["bytes"].as_u64());
    }

    #[test]
    fn a_disk_without_target_is_refused() {
        assert!(Place::of_disk(&json!({"serial": "disk0"}), PathBuf::from("/")).is_err());
    }
}
