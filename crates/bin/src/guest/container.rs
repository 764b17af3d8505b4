//! A container inside the machine: crun gives the task its own namespaces, control group and overlay.
//!
//! The host sends its description (`spec["container"]`: an OCI configuration, the user, and which disk is a layer of
//! the root); user and group ids are looked up here, in the image's own /etc/passwd.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mount::{MountFlags, mount};
use serde_json::{Value, json};

use crate::Failure;
use crate::launch::User;
use crate::places::Place;
use crate::root::{self, ROOT, resolve};

const RUNTIME: &str = "/bin/crun";
const NAME: &str = "task";
const BUNDLE: &str = "/bundle";
const STATE: &str = "/run/crun";
const PID_FILE: &str = "/run/task.pid";
const DISKS: &str = "/disks";
/// Directory for layer and work directory on a disk that is a layer, beside the data that was on it before.
const OWN: &str = ".tare";
/// Directory that `mke2fs` makes in the root of a file system.
const LOST: &str = "lost+found";

/// Mounts the disks and the container's root, and writes its configuration. Returns what to unmount in the end, in
/// the order of mounting.
///
/// # Errors
/// A mount fails; the message names its place.
pub(crate) fn build(spec: &Value) -> Result<Vec<Place>, Failure> {
    let container = &spec["container"];
    let mut mounted = Vec::new();
    for disk in spec["disks"].as_array().ok_or("no disks")? {
        let serial = disk["serial"].as_str().ok_or("a disk without serial")?;
        if disk["target"] == "/" {
            root::mount_at(disk, Path::new(ROOT))?;
        } else {
            let place = Path::new(DISKS).join(serial);
            root::mount_at(disk, &place)?;
            mounted.push(Place::of_disk(disk, place)?);
        }
    }
    for (target, content) in spec["names"].as_object().ok_or("no names")? {
        root::own_file(target, content.as_str().ok_or("a name without content")?)?;
    }
    mounted.push(Place::without_disk(overlay(&container["layer"])?));
    let mut config = container["config"].clone();
    let user = container["user"].as_str().ok_or("no user")?;
    config["process"] = as_user(&config["process"], &User::find(Path::new(ROOT), user)?)?;
    fs::write(format!("{BUNDLE}/config.json"), config.to_string())?;
    Ok(mounted)
}

/// Mounts the container's root: the image's disk is below, and written files are above, on the layer's disk if any.
fn overlay(layer: &Value) -> Result<PathBuf, Failure> {
    let mut lower = ROOT.to_string();
    let above = if let Some(serial) = layer["serial"].as_str() {
        let disk = Path::new(DISKS).join(serial);
        let target = layer["target"].as_str().ok_or("a layer without target")?;
        let own = disk.join(OWN);
        if layer["copy_up"] == true {
            into_layer(&disk, &own.join("layer"), target)?;
            lower = format!("{}:{ROOT}", own.join("layer").display());
        } else {
            into_layer(&disk, &own.join("upper"), target)?;
        }
        own
    } else {
        // Only mount points are ever written there, as the root is read-only then.
        let own = PathBuf::from("/upper");
        fs::create_dir_all(&own)?;
        mount("tmpfs", &own, "tmpfs", MountFlags::empty(), None)?;
        own
    };
    let (upper, work) = (above.join("upper"), above.join("work"));
    let place = Path::new(BUNDLE).join("rootfs");
    for directory in [&upper, &work, &place] {
        fs::create_dir_all(directory)?;
    }
    let options =
        format!("lowerdir={lower},upperdir={},workdir={}", upper.display(), work.display());
    let data = std::ffi::CString::new(options.clone())?;
    mount("overlay", &place, "overlay", MountFlags::empty(), Some(data.as_c_str()))
        .map_err(|error| format!("an overlay of {options} cannot be mounted: {error}"))?;
    Ok(place)
}

/// Moves the data of a disk to `target` in a layer on that disk; directories above it are as in the image.
fn into_layer(disk: &Path, layer: &Path, target: &str) -> Result<(), Failure> {
    let seen = fs::metadata(disk)?;
    let inside = resolve(Path::new(ROOT), target)?;
    let steps = inside.strip_prefix(ROOT)?;
    let mut here = layer.to_path_buf();
    fs::create_dir_all(&here)?;
    for (n, step) in steps.iter().enumerate() {
        here.push(step);
        fs::create_dir(&here)?;
        let above: PathBuf = steps.iter().take(n + 1).collect();
        if let Ok(model) = fs::metadata(Path::new(ROOT).join(above)) {
            alike(&here, &model)?;
        }
    }
    for entry in fs::read_dir(disk)? {
        let name = entry?.file_name();
        if name != OWN && name != LOST {
            fs::rename(disk.join(&name), here.join(&name))?;
        }
    }
    alike(&here, &seen)
}

fn alike(path: &Path, model: &fs::Metadata) -> Result<(), Failure> {
    chown(path, Some(model.uid()), Some(model.gid()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(model.mode() & 0o7777))?;
    Ok(())
}

/// The `process` of an OCI configuration, with the user's ids and home.
fn as_user(process: &Value, user: &User) -> Result<Value, Failure> {
    let mut process = process.clone();
    process["user"] = json!({"uid": user.uid, "gid": user.gid, "additionalGids": user.groups});
    let given = process["env"].as_array_mut().ok_or("no env")?;
    if !given.iter().any(|each| each.as_str().is_some_and(|text| text.starts_with("HOME="))) {
        given.insert(0, json!(format!("HOME={}", user.home)));
    }
    Ok(process)
}

/// Command that ends with the container's program, with its exit code, or 128 plus the signal that killed it.
pub(crate) fn command() -> Command {
    let mut command = runtime();
    // The root of an initial RAM file system cannot be replaced by pivot_root(2).
    command.args(["run", "--no-pivot", "--bundle", BUNDLE, "--pid-file", PID_FILE, NAME]);
    command
}

/// The container's first process, once the runtime has become the program.
pub(crate) fn pid_of(runtime: u32) -> Option<u32> {
    let pid = pid_in(PID_FILE)?;
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let own = fs::read_link(format!("/proc/{runtime}/exe")).ok()?;
    (program != own).then_some(pid)
}

/// A further program in the container. `pid_file`: contains its process, which does not end with the runtime's.
pub(crate) struct Entry {
    pub(crate) command: Command,
    process: PathBuf,
    pid_file: PathBuf,
}

impl Entry {
    /// # Errors
    /// The image has no such user.
    pub(crate) fn new(
        container: &Value,
        argv: &[String],
        user: Option<&str>,
    ) -> Result<Self, Failure> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = user.or_else(|| container["user"].as_str()).unwrap_or("");
        let mut changed =
            as_user(&container["config"]["process"], &User::find(Path::new(ROOT), name)?)?;
        changed["args"] = json!(argv);
        let process = PathBuf::from(format!("/run/exec-{number}.json"));
        let pid_file = PathBuf::from(format!("/run/exec-{number}.pid"));
        fs::write(&process, changed.to_string())?;
        let mut command = runtime();
        command.arg("exec").arg("--process").arg(&process).arg("--pid-file").arg(&pid_file);
        command.arg(NAME);
        Ok(Self { command, process, pid_file })
    }

    /// Kills the program itself, which would outlive the runtime.
    pub(crate) fn kill(&self) {
        if let Some(pid) = self.pid_file.to_str().and_then(pid_in)
            && let Some(pid) = rustix::process::Pid::from_raw(pid as i32)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        for path in [&self.process, &self.pid_file] {
            let _ = fs::remove_file(path);
        }
    }
}

fn runtime() -> Command {
    let mut command = Command::new(RUNTIME);
    command.env_clear().args(["--root", STATE, "--cgroup-manager", "cgroupfs"]);
    command
}

fn pid_in(path: &str) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_users_numbers_and_a_home_unless_it_has_one() {
        let user = User { uid: 900, gid: 901, groups: vec![902], home: "/data".to_string() };
        let changed =
            as_user(&json!({"args": ["a"], "env": ["PATH=/bin"]}), &user).expect("it has an env");
        assert_eq!(changed["user"], json!({"uid": 900, "gid": 901, "additionalGids": [902]}));
        assert_eq!(changed["env"], json!(["HOME=/data", "PATH=/bin"]));
        let given = as_user(&json!({"env": ["HOME=/x"]}), &user).expect("it has an env");
        assert_eq!(given["env"], json!(["HOME=/x"]));
    }
}
