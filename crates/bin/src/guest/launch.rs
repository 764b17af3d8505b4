//! Launching of the task's program in a fork of process 1: root, limits, user, environment, directory.
//!
//! It sets the same as launcher.py for a bare task, in the same order.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::fchown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{Gid, Uid};
use rustix::process::{Resource, Rlimit, chroot, setrlimit};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use serde_json::Value;

use crate::Failure;
use crate::root::{ROOT, resolve};

/// Environment variable with the description of the program.
pub(crate) const SPEC: &str = "TARE_SPEC";
/// Exit code if the program could not be launched.
pub(crate) const FAILED: i32 = 125;
const LIMITS: [(&str, Resource); 14] = [
    ("core", Resource::Core),
    ("cpu", Resource::Cpu),
    ("data", Resource::Data),
    ("fsize", Resource::Fsize),
    ("locks", Resource::Locks),
    ("memlock", Resource::Memlock),
    ("msgqueue", Resource::Msgqueue),
    ("nice", Resource::Nice),
    ("nofile", Resource::Nofile),
    ("nproc", Resource::Nproc),
    ("rss", Resource::Rss),
    ("rtprio", Resource::Rtprio),
    ("sigpending", Resource::Sigpending),
    ("stack", Resource::Stack),
];

/// Becomes the program of `$TARE_SPEC`; returns only after a failure, which is printed on standard error.
pub(crate) fn launch() -> i32 {
    let failure = match become_program() {
        Ok(never) => match never {},
        Err(failure) => failure,
    };
    eprintln!("tare: {failure}");
    FAILED
}

enum Never {}

fn become_program() -> Result<Never, Failure> {
    let spec: Value = serde_json::from_str(&std::env::var(SPEC)?)?;
    for file in texts(&spec["cgroup_procs"])? {
        fs::write(&file, "0").map_err(|error| format!("{file}: {error}"))?;
    }
    chroot(ROOT).map_err(|error| format!("the image's root cannot be entered: {error}"))?;
    std::env::set_current_dir("/")?;
    let user = User::find(Path::new("/"), spec["user"].as_str().unwrap_or(""))?;
    if spec["own_output"] == true {
        fchown(std::io::stdout(), Some(user.uid), Some(user.gid))?;
        fchown(std::io::stderr(), Some(user.uid), Some(user.gid))?;
    }
    limit(&spec["rlimits"])?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    user.become_it()?;
    let workdir = spec["workdir"].as_str().ok_or("no workdir")?;
    std::env::set_current_dir(workdir).map_err(|error| format!("{workdir}: {error}"))?;
    let argv = texts(&spec["argv"])?;
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut env = BTreeMap::from([
        ("HOME".to_string(), user.home.clone()),
        ("HOSTNAME".to_string(), hostname.trim().to_string()),
    ]);
    for (name, value) in spec["env"].as_object().ok_or("no env")? {
        env.insert(name.clone(), value.as_str().ok_or("a variable that is no text")?.to_string());
    }
    let program = argv.first().ok_or("no program")?;
    let path = env.get("PATH").map_or("", String::as_str);
    let found = search(program, path)
        .ok_or_else(|| format!("cannot execute {program}: no such program"))?;
    let error = Command::new(found).arg0(program).args(&argv[1..]).env_clear().envs(&env).exec();
    Err(format!("cannot execute {program}: {error}").into())
}

/// Finds a program like execvp(3): a name without a slash in each directory of `path`.
fn search(program: &str, path: &str) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    if program.contains('/') {
        return Some(program.to_string());
    }
    let candidates = path.split(':').map(|place| format!("{place}/{program}"));
    let executable = |path: &String| {
        fs::metadata(path)
            .is_ok_and(|seen| seen.is_file() && seen.permissions().mode() & 0o111 != 0)
    };
    candidates.into_iter().find(executable)
}

fn limit(limits: &Value) -> Result<(), Failure> {
    for (name, pair) in limits.as_object().ok_or("no rlimits")? {
        let (_, resource) = LIMITS
            .iter()
            .find(|(known, _)| known == name)
            .ok_or_else(|| format!("no limit {name}"))?;
        let bound =
            |at: usize| pair[at].as_i64().filter(|value| *value >= 0).map(|value| value as u64);
        let wanted = Rlimit { current: bound(0), maximum: bound(1) };
        setrlimit(*resource, wanted)
            .map_err(|error| format!("the limit {name} cannot be set: {error}"))?;
    }
    Ok(())
}

/// User of a task, by the image's own /etc/passwd and /etc/group, with an engine's rules.
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) home: String,
}

impl User {
    /// `root`: path of the image's root.
    ///
    /// # Errors
    /// The image has no such user or group.
    pub(crate) fn find(root: &Path, wanted: &str) -> Result<Self, Failure> {
        let (name, group) = wanted.split_once(':').unwrap_or((wanted, ""));
        let name = if name.is_empty() { "0" } else { name };
        let accounts = table(root, "/etc/passwd", 6);
        let account = accounts.iter().find(|row| row[0] == name || row[2] == name);
        let uid = match account {
            Some(row) => row[2].parse()?,
            None => name.parse().map_err(|_| format!("the image has no user {name:?}"))?,
        };
        let mut gid = account.map_or(Ok(0), |row| row[3].parse())?;
        let home = account.map_or("", |row| row[5].as_str());
        let groups = table(root, "/etc/group", 4);
        let member = |row: &&Vec<String>| {
            account.is_some_and(|own| row[3].split(',').any(|name| name == own[0]))
        };
        let mut others =
            groups.iter().filter(member).filter_map(|row| row[2].parse().ok()).collect();
        if !group.is_empty() {
            gid = match groups.iter().find(|row| row[0] == group || row[2] == group) {
                Some(row) => row[2].parse()?,
                None => group.parse().map_err(|_| format!("the image has no group {group:?}"))?,
            };
            others = Vec::new();
        }
        let home = if home.is_empty() { "/" } else { home }.to_string();
        Ok(Self { uid, gid, groups: others, home })
    }

    /// Gives up root permanently. This program has one thread, so the calls apply to all of it.
    fn become_it(&self) -> Result<(), Failure> {
        let all: Vec<Gid> =
            std::iter::once(&self.gid).chain(&self.groups).map(|gid| Gid::from_raw(*gid)).collect();
        set_thread_groups(&all)?;
        set_thread_gid(Gid::from_raw(self.gid))?;
        set_thread_uid(Uid::from_raw(self.uid))?;
        Ok(())
    }
}

fn table(root: &Path, path: &str, fields: usize) -> Vec<Vec<String>> {
    let raw = resolve(root, path).ok().and_then(|path| fs::read(path).ok());
    let text = raw.map(|raw| String::from_utf8_lossy(&raw).into_owned()).unwrap_or_default();
    let rows = text.lines().map(|line| line.split(':').map(str::to_string).collect::<Vec<_>>());
    rows.filter(|row| row.len() >= fields).collect()
}

/// # Errors
/// It is not a list of strings.
pub(crate) fn texts(value: &Value) -> Result<Vec<String>, Failure> {
    let list = value.as_array().ok_or("not a list")?;
    list.iter().map(|each| Ok(each.as_str().ok_or("not a text")?.to_string())).collect()
}
