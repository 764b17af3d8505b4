//! The one task of a machine: started, ended, and its end told before the machine goes.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::launch::{FAILED, SPEC};
use crate::root::{ROOT, build, resolve};
use crate::{Failure, OWN_PATH, counters, network, ports};

/// The task's control group in the machine's own hierarchy.
pub(crate) const CGROUP: &str = "/sys/fs/cgroup/task";
const CONTROLLERS: [&str; 4] = ["cpu", "memory", "io", "pids"];
/// How long what the task left in its pipes may take to the host.
const DRAIN: Duration = Duration::from_secs(5);
const LAUNCH: Duration = Duration::from_secs(60);
/// A program that ends sooner has not begun: the host learns of it by the status, when the machine is gone.
const AT_ONCE: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(2);

pub(crate) struct Task {
    pub(crate) pid: u32,
    program: Value,
}

impl Task {
    /// What a further program in the task's root, groups and limits is launched by.
    pub(crate) fn spec_of(&self, argv: &[String], user: Option<&str>) -> Value {
        let mut spec = self.program.clone();
        spec["argv"] = json!(argv);
        spec["own_output"] = json!(false);
        if let Some(user) = user.filter(|user| !user.is_empty()) {
            spec["user"] = json!(user);
        }
        spec
    }

    /// SIGTERM, and SIGKILL to all of it after `grace`; returns at once where it has ended.
    pub(crate) fn end(&self, grace: Duration) {
        let Some(pid) = Pid::from_raw(self.pid as i32) else { return };
        let began = Instant::now();
        let _ = kill_process(pid, Signal::TERM);
        while began.elapsed() < grace && Path::new(&format!("/proc/{}", self.pid)).exists() {
            thread::sleep(POLL);
        }
        kill_all();
    }
}

/// A status as Python's subprocess tells it: negative for a signal.
pub(crate) fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
}

/// Network, control group, root; then the program, which is at work when this returns.
///
/// # Errors
/// Whatever could not be had, the program's execution among it.
pub(crate) fn start(spec: &Value) -> Result<Arc<Task>, Failure> {
    network::set_up(&spec["network"])
        .map_err(|failure| format!("the network cannot be set up: {failure}"))?;
    let name = spec["hostname"].as_str().ok_or("no hostname")?;
    rustix::system::sethostname(name.as_bytes())?;
    limit(spec["memory_bytes"].as_u64())?;
    build(spec)?;
    let (out, err) = (ports::open("tare.stdout")?, ports::open("tare.stderr")?);
    let mut status = ports::open("tare.status")?;
    counters::begin(ports::open("tare.counters")?);
    let mut program = spec["program"].clone();
    program["cgroup_procs"] = json!([format!("{CGROUP}/cgroup.procs")]);
    program["own_output"] = json!(true);
    let mut child = Command::new(OWN_PATH)
        .arg("launch")
        .env_clear()
        .env(SPEC, program.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let pumps = (pump(child.stdout.take(), out), pump(child.stderr.take(), err));
    let pid = child.id();
    let disks = spec["disks"].clone();
    let (ended, end) = channel();
    thread::spawn(move || {
        let code = child.wait().map_or(FAILED, code_of);
        let _ = ended.send(code);
        kill_all();
        let deadline = Instant::now() + DRAIN;
        for pump in [pumps.0, pumps.1] {
            let _ = pump.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        }
        let kills = oom_kills();
        let_go(&disks);
        let told = json!({"code": code, "oom_kills": kills});
        if let Err(error) = status.write_all(format!("{told}\n").as_bytes()) {
            eprintln!("tare-guest: the task's end ({code}) could not be told: {error}");
        }
        std::process::exit(0);
    });
    launched(pid, &end)?;
    Ok(Arc::new(Task { pid, program }))
}

/// Waits until the program has taken the launcher's place and lives.
fn launched(pid: u32, end: &Receiver<i32>) -> Result<(), Failure> {
    let began = Instant::now();
    while began.elapsed() < LAUNCH {
        if fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path != Path::new(OWN_PATH)) {
            return match end.recv_timeout(AT_ONCE) {
                Ok(_) => gone(),
                Err(_) => Ok(()),
            };
        }
        if end.recv_timeout(POLL).is_ok() {
            gone();
        }
    }
    Err(format!("the program did not begin within {} s", LAUNCH.as_secs()).into())
}

/// The machine ends by itself in a moment, and nothing is answered any more.
fn gone() -> ! {
    loop {
        thread::park();
    }
}

/// The task's control group, with the limit that a bare task of this study has.
fn limit(memory_bytes: Option<u64>) -> Result<(), Failure> {
    let have = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers")?;
    let wanted: Vec<String> = CONTROLLERS
        .iter()
        .filter(|name| have.split_whitespace().any(|each| each == **name))
        .map(|name| format!("+{name}"))
        .collect();
    fs::write("/sys/fs/cgroup/cgroup.subtree_control", wanted.join(" "))?;
    fs::create_dir_all(CGROUP)?;
    if let Some(bytes) = memory_bytes {
        fs::write(format!("{CGROUP}/memory.max"), bytes.to_string())?;
    }
    Ok(())
}

fn kill_all() {
    if let Err(error) = fs::write(format!("{CGROUP}/cgroup.kill"), "1") {
        eprintln!("tare-guest: what the task left running could not be killed: {error}");
    }
}

/// How often the kernel killed in the task's group for want of memory, or anywhere in the machine.
fn oom_kills() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

/// Disks are left clean, so that the host may read them.
fn let_go(disks: &Value) {
    for disk in disks.as_array().into_iter().flatten().rev() {
        let target = disk["target"].as_str().unwrap_or("/");
        if target == "/" {
            continue;
        }
        let done =
            resolve(Path::new(ROOT), target).map(|place| unmount(place, UnmountFlags::empty()));
        if !matches!(done, Ok(Ok(()))) {
            eprintln!("tare-guest: {target} could not be unmounted: {done:?}");
        }
    }
}

/// Copies a pipe to a port until its end, which is told.
fn pump(pipe: Option<impl Read + Send + 'static>, mut port: fs::File) -> Receiver<()> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        if let Some(mut pipe) = pipe {
            let _ = forward(&mut pipe, &mut port);
        }
        let _ = sender.send(());
    });
    receiver
}

/// By hand: `std::io::copy` would splice(2) from a pipe, and what was spliced did not reach the host.
fn forward(pipe: &mut impl Read, port: &mut fs::File) -> std::io::Result<()> {
    let mut block = vec![0; 1 << 15];
    loop {
        match pipe.read(&mut block)? {
            0 => return Ok(()),
            length => port.write_all(&block[..length])?,
        }
    }
}
