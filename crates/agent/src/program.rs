//! Running of programs to their end, each in its own process group, which is killed at the time limit.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::Failure;
use crate::answer::Fault;
use crate::frame::MOST_DATA;
use crate::log;
use crate::mark;
use crate::request::Program;

/// How long the pipes of a killed program are still read; a descendant that left its group may keep them open.
const DRAIN: Duration = Duration::from_secs(1);
const MOST_OUTPUT: usize = MOST_DATA / 2;
/// Interval of checks whether a program has ended that has closed both outputs.
const LOOK: Duration = Duration::from_millis(5);

pub(crate) struct Ended {
    /// Exit code, or the negative number of a signal.
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Ends a program from another thread.
#[derive(Clone)]
pub(crate) struct Cancel(Arc<OwnedFd>);

impl Cancel {
    /// # Errors
    /// No more files can be opened.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    pub(crate) fn now(&self) {
        if let Err(error) = rustix::io::write(&*self.0, &1_u64.to_ne_bytes()) {
            log(&format!("a program could not be cancelled: {error}"));
        }
    }
}

/// Makes the command, with the requested environment.
pub(crate) fn command(name: &str, arguments: &[String], program: &Program) -> Command {
    let mut command = Command::new(name);
    command.args(arguments);
    if let Some(env) = &program.env {
        command.env_clear().envs(env);
    } else {
        command.env(mark::MADE_BY, mark::own());
    }
    command
}

pub(crate) fn run(
    program: &Program,
    stdin: &[u8],
    limit: Duration,
    cancel: &Cancel,
) -> Result<Ended, Fault> {
    let Some((name, arguments)) = program.argv.split_first() else {
        return Err(Fault::Other("no program was named".to_owned()));
    };
    let mut child = command(name, arguments, program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let done = communicate(&mut child, stdin, Instant::now() + limit, cancel);
    if done.is_err() {
        kill_group(&mut child);
    }
    done
}

/// Output of a program that must succeed, and is found by this process's `$PATH`.
///
/// # Errors
/// One sentence that names the program: it cannot be started, takes too long, or its exit code is not 0.
pub(crate) fn printed(argv: &[&str], stdin: &[u8], limit: Duration) -> Result<String, Failure> {
    let program = Program { argv: argv.iter().map(|word| (*word).to_owned()).collect(), env: None };
    let name = argv.first().copied().unwrap_or_default();
    let done =
        run(&program, stdin, limit, &Cancel::new()?).map_err(|fault| format!("{name}: {fault}"))?;
    if done.code == 0 {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(format!("{name}: {}", done.last_words()).into())
}

impl Ended {
    /// Last line on standard error, or the exit code if there is none.
    pub(crate) fn last_words(&self) -> String {
        let errors = String::from_utf8_lossy(&self.stderr);
        let last = errors.trim().lines().last().map(str::to_owned);
        last.unwrap_or_else(|| format!("it ended with {}", self.code))
    }
}

fn communicate(
    child: &mut Child,
    stdin: &[u8],
    deadline: Instant,
    cancel: &Cancel,
) -> Result<Ended, Fault> {
    let mut input = child.stdin.take().map(|pipe| Input { pipe, left: stdin });
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Fault::Other("the program has no outputs".to_owned()));
    };
    let (mut stdout, mut stderr) = (Output::of(stdout)?, Output::of(stderr)?);
    if let Some(open) = &input {
        ioctl_fionbio(&open.pipe, true)?;
    }
    if stdin.is_empty() {
        input = None;
    }
    while stdout.pipe.is_some() || stderr.pipe.is_some() {
        wait(input.as_ref(), &[&stdout, &stderr], cancel, deadline)?;
        if input.as_mut().is_some_and(Input::feed) {
            input = None;
        }
        stdout.take()?;
        stderr.take()?;
    }
    drop(input);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= deadline {
            return Err(Fault::TimedOut);
        }
        std::thread::sleep(LOOK);
    };
    let code = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
    Ok(Ended { code, stdout: stdout.read, stderr: stderr.read })
}

/// Waits until one of the pipes can be used.
fn wait(
    input: Option<&Input<'_>>,
    outputs: &[&Output],
    cancel: &Cancel,
    deadline: Instant,
) -> Result<(), Fault> {
    let mut watched = vec![PollFd::new(&*cancel.0, PollFlags::IN)];
    watched.extend(input.map(|open| PollFd::new(&open.pipe, PollFlags::OUT)));
    watched.extend(
        outputs
            .iter()
            .filter_map(|output| output.pipe.as_ref())
            .map(|pipe| PollFd::new(pipe, PollFlags::IN)),
    );
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    match poll(&mut watched, Some(&left)) {
        Ok(0) => return Err(Fault::TimedOut),
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if watched[0].revents().is_empty() {
        Ok(())
    } else {
        Err(Fault::Other("it was cancelled".to_owned()))
    }
}

struct Input<'a> {
    pipe: ChildStdin,
    left: &'a [u8],
}

impl Input<'_> {
    /// Writes input; returns whether it is all written or no longer read.
    fn feed(&mut self) -> bool {
        while !self.left.is_empty() {
            match self.pipe.write(self.left) {
                Ok(length) => self.left = &self.left[length..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        true
    }
}

struct Output {
    pipe: Option<std::fs::File>,
    read: Vec<u8>,
}

impl Output {
    fn of(pipe: impl Into<OwnedFd>) -> Result<Self, Fault> {
        let pipe: OwnedFd = pipe.into();
        ioctl_fionbio(pipe.as_fd(), true)?;
        Ok(Self { pipe: Some(pipe.into()), read: Vec::new() })
    }

    /// Reads everything that is available.
    fn take(&mut self) -> Result<(), Fault> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut block = [0; 1 << 14];
        loop {
            match pipe.read(&mut block) {
                Ok(0) => {
                    self.pipe = None;
                    return Ok(());
                }
                Ok(length) if self.read.len() + length > MOST_OUTPUT => {
                    let most = MOST_OUTPUT >> 20;
                    return Err(Fault::Other(format!(
                        "it printed more than {most} MiB, and was killed"
                    )));
                }
                Ok(length) => self.read.extend_from_slice(&block[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn kill_group(child: &mut Child) {
    if let Some(group) = Pid::from_raw(child.id() as i32) {
        let _gone = kill_process_group(group, Signal::KILL);
    }
    let deadline = Instant::now() + DRAIN;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program { argv: vec!["sh".into(), "-c".into(), script.into()], env: None }
    }

    fn run_for(script: &str, stdin: &[u8], limit: Duration) -> Result<Ended, Fault> {
        run(&shell(script), stdin, limit, &Cancel::new().unwrap())
    }

    #[test]
    fn code_and_both_outputs_come_back() {
        let done =
            run_for("cat; echo oops >&2; exit 3", b"hello", Duration::from_secs(10)).ok().unwrap();
        assert_eq!(
            (done.code, &done.stdout[..], &done.stderr[..]),
            (3, &b"hello"[..], &b"oops\n"[..])
        );
    }

    #[test]
    fn a_program_that_has_to_succeed_is_named_where_it_does_not() {
        let asked = |argv: &[&str]| printed(argv, b"in", Duration::from_millis(500));
        assert_eq!(asked(&["cat"]).unwrap(), "in");
        let why = |argv: &[&str]| asked(argv).unwrap_err().to_string();
        assert_eq!(why(&["sh", "-c", "echo first >&2; echo last >&2; exit 3"]), "sh: last");
        assert_eq!(why(&["false"]), "false: it ended with 1");
        assert_eq!(why(&["sleep", "5"]), "sleep: it did not end in time, and was killed");
        assert!(why(&["no-such-program"]).starts_with("no-such-program: No such file"));
    }

    #[test]
    fn much_input_and_output_do_not_wait_for_each_other() {
        let much = vec![b'x'; 5 << 20];
        let done =
            run_for("cat; cat /dev/zero | head -c 300000 >&2", &much, Duration::from_secs(30))
                .ok()
                .unwrap();
        assert_eq!((done.stdout.len(), done.stderr.len()), (much.len(), 300_000));
    }

    #[test]
    fn a_program_that_does_not_read_its_input_ends() {
        let much = vec![b'x'; 5 << 20];
        assert_eq!(run_for("exit 0", &much, Duration::from_secs(10)).ok().unwrap().code, 0);
    }

    #[test]
    fn a_signal_is_a_negative_code() {
        assert_eq!(run_for("kill -9 $$", b"", Duration::from_secs(10)).ok().unwrap().code, -9);
    }

    #[test]
    fn the_time_limit_holds_though_a_descendant_has_the_pipes() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("pid");
        let script = format!("setsid sh -c 'echo $$ >{}; exec sleep 300' & wait", file.display());
        let done = run_for(&script, b"", Duration::from_secs(2));
        let descendant = std::fs::read_to_string(file).unwrap();
        let killed = Command::new("kill").args(["-9", descendant.trim()]).status().unwrap();
        assert!(matches!(done, Err(Fault::TimedOut)) && killed.success(), "it was still there");
    }

    #[test]
    fn a_program_can_be_cancelled() {
        let cancel = Cancel::new().unwrap();
        let late = cancel.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            late.now();
        });
        let ended = run(&shell("sleep 300"), b"", Duration::from_secs(200), &cancel);
        assert!(matches!(ended, Err(Fault::Other(_))), "cancelled, not out of time");
    }
}
