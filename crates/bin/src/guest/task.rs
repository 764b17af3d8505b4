//! The task of a machine: starting and ending it, and reporting its end before the machine ends.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::launch::{FAILED, SPEC};
use crate::places::{Place, let_go, rooms};
use crate::{Failure, OWN_PATH, container, counters, network, ports, root};

/// The task's control group in the machine's own hierarchy.
pub(crate) const CGROUP: &str = "/sys/fs/cgroup/task";
const CONTROLLERS: [&str; 4] = ["cpu", "memory", "io", "pids"];
/// Time limit for sending the rest of the task's output to the host.
const DRAIN: Duration = Duration::from_secs(5);
const LAUNCH: Duration = Duration::from_secs(60);
/// A program that ends sooner counts as not started; the host gets its status after the machine has ended.
const AT_ONCE: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(2);

pub(crate) struct Task {
    pub(crate) pid: u32,
    way: Way,
}

/// How the machine runs its task.
enum Way {
    /// In the image's root, with the mounts that an engine would make; the description for the launch.
    Plain(Value),
    /// In a container; its description.
    Container(Value),
}

/// A further program in the task's root, groups and limits.
pub(crate) enum Inside {
    Plain(Command),
    Container(container::Entry),
}

impl Inside {
    pub(crate) fn command(&mut self) -> &mut Command {
        match self {
            Self::Plain(command) => command,
            Self::Container(entry) => &mut entry.command,
        }
    }

    /// Kills a program that does not end with the process that the command started.
    pub(crate) fn kill(&self) {
        if let Self::Container(entry) = self {
            entry.kill();
        }
    }
}

impl Way {
    fn of(spec: &Value) -> Self {
        if spec["container"].is_object() {
            return Self::Container(spec["container"].clone());
        }
        let mut program = spec["program"].clone();
        program["cgroup_procs"] = json!([format!("{CGROUP}/cgroup.procs")]);
        program["own_output"] = json!(true);
        Self::Plain(program)
    }

    fn build(&self, spec: &Value) -> Result<Vec<Place>, Failure> {
        match self {
            Self::Plain(_) => root::build(spec),
            Self::Container(_) => container::build(spec),
        }
    }

    fn command(&self) -> Command {
        match self {
            Self::Plain(program) => launcher(program),
            Self::Container(_) => container::command(),
        }
    }

    /// Process of the program, if it has begun. `child`: the process that was started.
    fn pid_of(&self, child: u32) -> Option<u32> {
        match self {
            Self::Plain(_) => fs::read_link(format!("/proc/{child}/exe"))
                .is_ok_and(|path| path != Path::new(OWN_PATH))
                .then_some(child),
            Self::Container(_) => container::pid_of(child),
        }
    }
}

impl Task {
    /// # Errors
    /// The image has no such user.
    pub(crate) fn inside(&self, argv: &[String], user: Option<&str>) -> Result<Inside, Failure> {
        let user = user.filter(|user| !user.is_empty());
        match &self.way {
            Way::Plain(program) => {
                let mut spec = program.clone();
                spec["argv"] = json!(argv);
                spec["own_output"] = json!(false);
                if let Some(user) = user {
                    spec["user"] = json!(user);
                }
                Ok(Inside::Plain(launcher(&spec)))
            }
            Way::Container(what) => Ok(Inside::Container(container::Entry::new(what, argv, user)?)),
        }
    }

    /// Sends SIGTERM, and SIGKILL to all processes after `grace`; returns as soon as the task has ended.
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

/// Exit code as in Python's subprocess: negative for a signal.
pub(crate) fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
}

/// Sets up network, control group and root, then starts the program, which runs when this returns.
///
/// # Errors
/// A part could not be set up, or the program could not be executed.
pub(crate) fn start(spec: &Value) -> Result<Arc<Task>, Failure> {
    network::set_up(&spec["network"])
        .map_err(|failure| format!("the network cannot be set up: {failure}"))?;
    let name = spec["hostname"].as_str().ok_or("no hostname")?;
    rustix::system::sethostname(name.as_bytes())?;
    limit(spec["memory_bytes"].as_u64())?;
    let way = Way::of(spec);
    let mounted = way.build(spec)?;
    let (out, err) = (ports::open("tare.stdout")?, ports::open("tare.stderr")?);
    let mut status = ports::open("tare.status")?;
    counters::begin(ports::open("tare.counters")?);
    let mut child =
        way.command().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pumps = (pump(child.stdout.take(), out), pump(child.stderr.take(), err));
    let started = child.id();
    let (ended, end) = channel();
    thread::spawn(move || {
        let code = child.wait().map_or(FAILED, code_of);
        // At once: what follows takes seconds, in which the machine still lives.
        let report = json!({"code": code, "oom_kills": oom_kills(), "rooms": rooms(&mounted)});
        if let Err(error) = status.write_all(format!("{report}\n").as_bytes()) {
            eprintln!("tare-guest: the task's end ({code}) could not be reported: {error}");
        }
        let _ = ended.send(code);
        kill_all();
        let deadline = Instant::now() + DRAIN;
        for pump in [pumps.0, pumps.1] {
            let _ = pump.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        }
        let_go(&mounted);
        std::process::exit(0);
    });
    let pid = launched(&way, started, &end)?;
    Ok(Arc::new(Task { pid, way }))
}

fn launcher(program: &Value) -> Command {
    let mut command = Command::new(OWN_PATH);
    command.arg("launch").env_clear().env(SPEC, program.to_string());
    command
}

/// Waits until the launching process has become the program, and it keeps running; returns its process.
fn launched(way: &Way, started: u32, end: &Receiver<i32>) -> Result<u32, Failure> {
    let began = Instant::now();
    while began.elapsed() < LAUNCH {
        if let Some(pid) = way.pid_of(started) {
            return match end.recv_timeout(AT_ONCE) {
                Ok(_) => gone(),
                Err(_) => Ok(pid),
            };
        }
        if end.recv_timeout(POLL).is_ok() {
            gone();
        }
    }
    Err(format!("the program did not begin within {} s", LAUNCH.as_secs()).into())
}

/// Waits for the end of the machine, which is imminent; nothing is answered any more.
fn gone() -> ! {
    loop {
        thread::park();
    }
}

/// Makes the task's control group, with the memory limit of the study.
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

/// How often the kernel killed for lack of memory in this machine, including the task's group.
fn oom_kills() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

/// Copies a pipe to a port in a thread; the receiver gets a message at its end.
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

/// Copies with read and write: `std::io::copy` would use splice(2), whose data did not reach the host.
fn forward(pipe: &mut impl Read, port: &mut fs::File) -> std::io::Result<()> {
    let mut block = vec![0; 1 << 15];
    loop {
        match pipe.read(&mut block)? {
            0 => return Ok(()),
            length => port.write_all(&block[..length])?,
        }
    }
}
