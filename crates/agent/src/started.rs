//! Programs that run in the background.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Access, Mode, OFlags, access, open};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::answer::Fault;
use crate::hold::{GO, READY};
use crate::identity::Identity;
use crate::mark;
use crate::request::Program;

const GRACE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);
/// How long a holding process may take to start, or to become the program.
const QUICK: Duration = Duration::from_secs(30);

struct One {
    child: Child,
    identity: Identity,
    /// Connection to it while it waits to be released.
    line: Option<UnixStream>,
}

#[derive(Default)]
struct All {
    running: Vec<One>,
    closed: bool,
}

#[derive(Default)]
pub(crate) struct Started(Mutex<All>);

impl Started {
    pub(crate) fn start(
        &self,
        program: &Program,
        stdout: &str,
        stderr: &str,
        held: bool,
    ) -> Result<Identity, Fault> {
        self.reap();
        let (name, arguments) = program
            .argv
            .split_first()
            .ok_or_else(|| Fault::Other("no program was named".to_owned()))?;
        let found = find(name).ok_or(Fault::Absent)?;
        let (mut line, other) = UnixStream::pair()?;
        line.set_read_timeout(Some(QUICK))?;
        let mut command = Command::new("/proc/self/exe");
        if let Some(env) = &program.env {
            command.env_clear().envs(env);
        }
        command.env(mark::MADE_BY, mark::own());
        let mut child = command
            .arg("hold")
            .arg(found)
            .args(arguments)
            .stdin(OwnedFd::from(other))
            .stdout(output(stdout)?)
            .stderr(output(stderr)?)
            .spawn()?;
        drop(command); // it has the other end of the line, whose closing is to be seen
        let mut ready = [0];
        if line.read(&mut ready)? == 0 || ready[0] != READY {
            let _status = child.wait()?;
            return Err(Fault::Other("it ended before it began".to_owned()));
        }
        let identity = Identity::of(child.id())?;
        let mut one = One { child, identity: identity.clone(), line: Some(line) };
        if !held && let Err(fault) = begin(one.line.take()) {
            let _status = one.child.wait()?;
            return Err(fault);
        }
        let mut all = self.all();
        if all.closed {
            drop(all);
            one.line = None;
            kill(&one, Signal::KILL);
            let _status = one.child.wait()?;
            return Err(Fault::Other("everything is being removed".to_owned()));
        }
        all.running.push(one);
        Ok(identity)
    }

    /// Releases a held program, which then begins.
    pub(crate) fn release(&self, pid: u32) -> Result<(), Fault> {
        let line = self
            .all()
            .running
            .iter_mut()
            .find(|one| one.identity.pid == pid)
            .ok_or_else(|| Fault::Other(format!("no held program has the pid {pid}")))?
            .line
            .take();
        begin(line)
    }

    /// Ends a held program before it begins.
    pub(crate) fn abandon(&self, pid: u32) {
        for one in self.all().running.iter_mut().filter(|one| one.identity.pid == pid) {
            one.line = None;
        }
        self.reap();
    }

    /// Reaps ended programs, so that no zombie counts as running.
    pub(crate) fn reap(&self) {
        self.all().running.retain_mut(running);
    }

    /// Ends all programs that still run, with their process groups, and lets none begin until `open`.
    pub(crate) fn close(&self) {
        let mut left = {
            let mut all = self.all();
            all.closed = true;
            std::mem::take(&mut all.running)
        };
        for (signal, patience) in [(Signal::TERM, GRACE), (Signal::KILL, QUICK)] {
            for one in &mut left {
                one.line = None;
                kill(one, signal);
            }
            let deadline = Instant::now() + patience;
            while !left.is_empty() && Instant::now() < deadline {
                left.retain_mut(running);
                std::thread::sleep(LOOK);
            }
        }
    }

    pub(crate) fn open(&self) {
        self.all().closed = false;
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn running(one: &mut One) -> bool {
    matches!(one.child.try_wait(), Ok(None))
}

fn kill(one: &One, signal: Signal) {
    if let Some(group) = Pid::from_raw(one.identity.pid as i32) {
        let _gone = kill_process_group(group, signal);
    }
}

/// Releases a program, and waits until it has begun or failed to.
fn begin(line: Option<UnixStream>) -> Result<(), Fault> {
    let Some(mut line) = line else { return Ok(()) };
    line.write_all(&[GO])?;
    let mut errno = Vec::new();
    line.read_to_end(&mut errno)?;
    match errno.try_into().map(i32::from_be_bytes) {
        Ok(number) => Err(Fault::System(io::Error::from_raw_os_error(number))),
        Err(_) => Ok(()),
    }
}

/// Opens an output file, which is truncated and then only appended to.
fn output(path: &str) -> Result<Stdio, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::APPEND | OFlags::CLOEXEC;
    open(path, flags, Mode::from_raw_mode(0o644)).map(Stdio::from)
}

/// Path of a program as execvp(3) finds it; `None` if there is no executable one.
fn find(name: &str) -> Option<PathBuf> {
    let may_run = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| may_run(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| may_run(path))
}
