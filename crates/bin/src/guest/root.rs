//! The task's root: the image's disk, and the other mounts that an engine would make.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};
use serde_json::Value;

use crate::Failure;
use crate::places::Place;

/// Mount point of the image's root file system.
pub(crate) const ROOT: &str = "/task";
const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);
/// Most symbolic links in a path, as in `path_resolution(7)`.
const MAX_LINKS: usize = 40;
const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Mounts everything in `spec`: `disks`, `scratch`, `names`, `shm_bytes`. Returns where disks with data are mounted, in
/// the order of mounting.
///
/// # Errors
/// A mount fails; the message names its place.
pub(crate) fn build(spec: &Value) -> Result<Vec<Place>, Failure> {
    let root = Path::new(ROOT);
    let disks = spec["disks"].as_array().ok_or("no disks")?;
    for disk in disks.iter().filter(|disk| disk["target"] == "/") {
        mount_at(disk, root)?;
    }
    put_on("proc", "/proc", PLAIN, "")?;
    put_on("sysfs", "/sys", PLAIN | MountFlags::RDONLY, "")?;
    put_on("cgroup2", "/sys/fs/cgroup", PLAIN | MountFlags::RDONLY, "")?;
    devices(spec["shm_bytes"].as_u64().ok_or("no shm_bytes")?)?;
    for place in spec["scratch"].as_array().ok_or("no scratch")? {
        scratch(place)?;
    }
    let mut places = Vec::new();
    for disk in disks.iter().filter(|disk| disk["target"] != "/") {
        let place = resolve(root, disk["target"].as_str().ok_or("a disk without target")?)?;
        mount_at(disk, &place)?;
        places.push(Place::of_disk(disk, place)?);
    }
    for (target, content) in spec["names"].as_object().ok_or("no names")? {
        name(target, content.as_str().ok_or("a name without content")?)?;
    }
    Ok(places)
}

/// Resolves `path` for a program whose root is `root`: links are followed, but never out of `root`.
///
/// # Errors
/// Links form a loop.
pub(crate) fn resolve(root: &Path, path: &str) -> Result<PathBuf, Failure> {
    let mut todo: Vec<String> = split(path).rev().collect();
    let mut done: Vec<String> = Vec::new();
    let mut links = 0;
    while let Some(part) = todo.pop() {
        if part == ".." {
            done.pop();
            continue;
        }
        let here = done.iter().fold(root.to_path_buf(), |path, step| path.join(step)).join(&part);
        let Ok(target) = fs::read_link(&here) else {
            done.push(part);
            continue;
        };
        links += 1;
        if links > MAX_LINKS {
            return Err(format!("too many links in {path}").into());
        }
        let target = target.to_string_lossy().into_owned();
        if target.starts_with('/') {
            done.clear();
        }
        todo.extend(split(&target).rev());
    }
    Ok(done.iter().fold(root.to_path_buf(), |path, step| path.join(step)))
}

fn split(path: &str) -> impl DoubleEndedIterator<Item = String> + '_ {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_string)
}

/// # Errors
/// The machine has no such disk, or it cannot be mounted.
pub(crate) fn mount_at(disk: &Value, place: &Path) -> Result<(), Failure> {
    let serial = disk["serial"].as_str().ok_or("a disk without serial")?;
    let device = device_of(serial)?;
    fs::create_dir_all(place)
        .map_err(|error| format!("{} cannot be made: {error}", place.display()))?;
    let flags = if disk["read_only"] == true { MountFlags::RDONLY } else { MountFlags::empty() };
    mount(&device, place, "ext4", flags, None).map_err(|error| {
        format!("the disk {serial} cannot be mounted at {}: {error}", place.display())
    })?;
    Ok(())
}

/// Device with this serial number, such as `/dev/vdb`.
fn device_of(serial: &str) -> Result<String, Failure> {
    for entry in fs::read_dir("/sys/block")?.flatten() {
        let own = fs::read_to_string(entry.path().join("serial")).unwrap_or_default();
        if own.trim() == serial {
            return Ok(format!("/dev/{}", entry.file_name().to_string_lossy()));
        }
    }
    Err(format!("the machine has no disk {serial}").into())
}

fn put_on(fstype: &str, target: &str, flags: MountFlags, options: &str) -> Result<(), Failure> {
    let place = resolve(Path::new(ROOT), target)?;
    fs::create_dir_all(&place)
        .map_err(|error| format!("{target} cannot be made in the image: {error}"))?;
    let data = std::ffi::CString::new(options)?;
    mount(fstype, &place, fstype, flags, Some(data.as_c_str()))
        .map_err(|error| format!("{fstype} cannot be mounted at {target}: {error}"))?;
    Ok(())
}

/// Mounts a tmpfs with the mode that the directory has in the image, as runc does.
fn scratch(place: &Value) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    let target = place["target"].as_str().ok_or("scratch without target")?;
    let seen = fs::metadata(resolve(Path::new(ROOT), target)?).ok().filter(fs::Metadata::is_dir);
    let mode = match seen {
        Some(seen) => format!("{:o}", seen.permissions().mode() & 0o7777),
        None => place["mode"].as_str().ok_or("scratch without mode")?.to_string(),
    };
    put_on("tmpfs", target, MountFlags::NOSUID | MountFlags::NODEV, &format!("mode={mode}"))
}

fn devices(shm_bytes: u64) -> Result<(), Failure> {
    let root = Path::new(ROOT);
    put_on("tmpfs", "/dev", MountFlags::NOSUID | MountFlags::STRICTATIME, "mode=755,size=65536k")?;
    let dev = resolve(root, "/dev")?;
    let everyone = Mode::from_raw_mode(0o666);
    for (name, major, minor) in DEVICES {
        mknodat(CWD, dev.join(name), FileType::CharacterDevice, everyone, makedev(major, minor))?;
        rustix::fs::chmod(dev.join(name), everyone)?; // whatever the umask
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name))?;
    }
    let quiet = MountFlags::NOSUID | MountFlags::NOEXEC;
    put_on("devpts", "/dev/pts", quiet, "newinstance,ptmxmode=0666,mode=0620,gid=5")?;
    put_on("tmpfs", "/dev/shm", PLAIN, &format!("mode=1777,size={shm_bytes}"))?;
    put_on("mqueue", "/dev/mqueue", PLAIN, "")
}

/// Mounts a file of this machine over the image's.
fn name(target: &str, content: &str) -> Result<(), Failure> {
    let place = resolve(Path::new(ROOT), target)?;
    if !place.exists() {
        return Ok(());
    }
    let own = own_file(target, content)?;
    mount_bind(&own, &place)?;
    mount_remount(&place, MountFlags::BIND | MountFlags::RDONLY, "")?;
    Ok(())
}

/// Writes a file of this machine for `target`, such as `/names/etc-hosts` for `/etc/hosts`.
///
/// # Errors
/// It cannot be written.
pub(crate) fn own_file(target: &str, content: &str) -> Result<PathBuf, Failure> {
    let own = PathBuf::from("/names").join(target.trim_start_matches('/').replace('/', "-"));
    fs::create_dir_all("/names")?;
    fs::write(&own, content)?;
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_inside_the_root_only() {
        let root = tempfile::tempdir().expect("a directory can be made");
        fs::create_dir(root.path().join("run")).expect("made");
        fs::create_dir(root.path().join("var")).expect("made");
        symlink("/run", root.path().join("var/run")).expect("made");
        symlink("../../../run", root.path().join("var/out")).expect("made");
        for path in ["/var/run/tare", "var/out/./tare"] {
            assert_eq!(resolve(root.path(), path).ok(), Some(root.path().join("run/tare")));
        }
    }

    #[test]
    fn a_circle_of_links_is_refused() {
        let root = tempfile::tempdir().expect("a directory can be made");
        symlink("b", root.path().join("a")).expect("made");
        symlink("a", root.path().join("b")).expect("made");
        assert!(resolve(root.path(), "/a").is_err());
    }
}
