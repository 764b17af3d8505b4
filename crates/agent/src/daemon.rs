//! The daemon: it serves one connection at a time, outlives each, and ends after a lease without any message.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::Failure;
use crate::answer::{Answer, Fault};
use crate::frame::{self, Message, Messages};
use crate::identity::{Identity, boot_id};
use crate::ledger::Ledger;
use crate::log;
use crate::outcomes::{Arrived, Outcomes};
use crate::program::Cancel;
use crate::request::{self, FORMAT, Request};
use crate::work::Workplace;

/// Lease until a tare sets another.
const FIRST_LEASE: Duration = Duration::from_secs(60);
const SHORTEST_LEASE_S: f64 = 0.1;
const LONGEST_LEASE_S: f64 = 7.0 * 86400.0;
/// Stack size of a thread that handles one request.
const STACK: usize = 256 << 10;
/// How long to wait when no connection can be accepted or no thread started: for want of files, threads or memory.
const SPENT: Duration = Duration::from_millis(50);
/// Signals after which everything is removed.
const ENDS: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
const SBIN: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

struct Daemon {
    identity: Identity,
    home: PathBuf,
    place: PathBuf,
    work: Workplace,
    outcomes: Outcomes,
    lease: Lease,
    /// The tare that the daemon acts for. Locked while the remains of an earlier one are removed.
    epoch: Mutex<Option<String>>,
    /// The connection, to shut it down: a thread that writes to it may be blocked.
    line: Mutex<Option<UnixStream>>,
    speaker: Mutex<Option<UnixStream>>,
}

/// Command `serve HOME PLACE`, with a listening socket as standard input. PLACE is this session's folder.
pub(crate) fn serve(words: &[OsString]) -> Result<(), Failure> {
    let [home, place] = words else { return Err("serve HOME PLACE".into()) };
    let (home, place) = (PathBuf::from(home), PathBuf::from(place));
    let listener: UnixListener = io::stdin().as_fd().try_clone_to_owned()?.into();
    rustix::process::setsid()?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    std::env::set_current_dir("/")?;
    let identity = Identity::own()?;
    let daemon = Arc::new(Daemon {
        work: Workplace::new(Ledger::new(home.join("agent/ledger"), identity.ident())),
        identity,
        home,
        place,
        outcomes: Outcomes::default(),
        lease: Lease::new()?,
        epoch: Mutex::default(),
        line: Mutex::default(),
        speaker: Mutex::default(),
    });
    let (signalled, signals) = UnixStream::pair()?;
    for signal in ENDS {
        signal_hook::low_level::pipe::register(signal, signals.try_clone()?)?;
    }
    daemon.wait(&listener, &signalled);
    Ok(())
}

impl Daemon {
    /// Waits for a connection, a signal or the end of the lease. It ends only after everything was removed: whatever
    /// else fails, for want of files, threads or memory, is tried again.
    fn wait(self: &Arc<Self>, listener: &UnixListener, signalled: &UnixStream) {
        loop {
            let mut watched = [
                PollFd::new(listener, PollFlags::IN),
                PollFd::new(&self.lease.timer, PollFlags::IN),
                PollFd::new(signalled, PollFlags::IN),
            ];
            if let Err(error) = poll(&mut watched, None) {
                if error != rustix::io::Errno::INTR {
                    log(&format!("it cannot wait: {error}"));
                    thread::sleep(SPENT);
                }
                continue;
            }
            let [connected, due, ended] = watched.map(|each| !each.revents().is_empty());
            if ended {
                log("it was asked to end: clearing up");
                return self.vanish();
            }
            if due && self.lease.over() {
                log("the lease is over: clearing up");
                return self.vanish();
            }
            if connected && let Err(error) = self.accept(listener) {
                log(&format!("a connection cannot be accepted: {error}"));
                thread::sleep(SPENT);
            }
        }
    }

    fn accept(self: &Arc<Self>, listener: &UnixListener) -> io::Result<()> {
        let (stream, _) = listener.accept()?;
        let daemon = Arc::clone(self);
        let converse = move || daemon.converse(stream);
        thread::Builder::new().stack_size(STACK).spawn(converse).map(|_| ())
    }

    /// Removes everything, and then the session's folder, so that no other process can find this one.
    fn vanish(&self) {
        self.close();
        // No other process may create the folder again before it is removed.
        let lock = fs::File::open(self.home.join("agent/lock"));
        if let Ok(lock) = &lock {
            let _alone = rustix::fs::flock(lock, rustix::fs::FlockOperation::LockExclusive);
        }
        if let Err(error) = fs::remove_dir_all(&self.place) {
            log(&format!("{} cannot be removed: {error}", self.place.display()));
        }
    }

    /// Ends and removes everything; nothing begins until both are opened again.
    fn close(&self) {
        self.outcomes.close();
        self.work.close();
    }

    fn converse(self: Arc<Self>, stream: UnixStream) {
        if let Err(error) = self.listen(stream) {
            log(&format!("a connection broke: {error}"));
        }
    }

    fn listen(self: &Arc<Self>, stream: UnixStream) -> io::Result<()> {
        let mut messages = Messages::new(BufReader::new(stream.try_clone()?));
        let Some(first) = messages.next()? else { return Ok(()) };
        if !self.greet(first, stream)? {
            return Ok(());
        }
        while let Some(message) = messages.next()? {
            self.lease.heard();
            self.arrive(message)?;
        }
        Ok(())
    }

    /// Handles the first message of a connection. Returns whether the connection is accepted.
    fn greet(&self, message: Message, stream: UnixStream) -> io::Result<bool> {
        let id = message.id;
        let refuse = |what: String| {
            let answer = Answer::fault(&Fault::Other(what));
            frame::write(&stream, id, answer.head, &[]).map(|()| false)
        };
        let (epoch, lease_s, engine) = match request::parse(message.head) {
            Ok((Request::Hello { format, epoch, lease_s, engine }, _)) if format == FORMAT => {
                (epoch, lease_s, engine)
            }
            Ok((Request::Hello { format, .. }, _)) => {
                return refuse(format!("it speaks format {FORMAT}, and was asked for {format}"));
            }
            Ok(_) => return refuse("it was asked for something before it was greeted".to_owned()),
            Err(error) => return refuse(error.to_string()),
        };
        self.lease
            .last(Duration::from_secs_f64(lease_s.clamp(SHORTEST_LEASE_S, LONGEST_LEASE_S)))?;
        let mut spoken_for = lock(&self.epoch);
        if let Some(before) = lock(&self.line).replace(stream.try_clone()?) {
            let _ended = before.shutdown(Shutdown::Both);
        }
        if spoken_for.as_ref().is_some_and(|before| *before != epoch) {
            log("another tare has come in the place of one that died: clearing up");
            self.close();
            self.work.open();
            self.outcomes.open();
            self.lease.heard();
        }
        *spoken_for = Some(epoch);
        self.work.use_engine(engine);
        let answer = Answer::of(self.about()?);
        let mut speaker = lock(&self.speaker);
        frame::write(&stream, id, answer.head, &[])?;
        *speaker = Some(stream);
        Ok(true)
    }

    /// Facts about this agent and host. `place`: the same under all names of the host.
    fn about(&self) -> io::Result<serde_json::Value> {
        let home = fs::metadata(&self.home)?;
        Ok(json!({
            "agent": self.identity.ident(), "boot_id": boot_id(), "home": self.home,
            "uid": rustix::process::geteuid().as_raw(),
            "place": format!("{}:{}:{}", boot_id(), home.dev(), home.ino()),
        }))
    }

    fn arrive(self: &Arc<Self>, message: Message) -> io::Result<()> {
        let Message { id, head, data } = message;
        let (request, acks) = match request::parse(head) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.say(id, &Answer::fault(&Fault::Other(error.to_string())));
                return Ok(());
            }
        };
        self.outcomes.acknowledge(&acks);
        match request {
            Request::Ack => return Ok(()),
            Request::Cancel { of } => {
                self.outcomes.cancel(of);
                return Ok(());
            }
            Request::Bye => {
                self.vanish();
                self.say(id, &Answer::done());
                std::process::exit(0);
            }
            _ => {}
        }
        let cancel = Cancel::new()?;
        match self.outcomes.arrive(id, &cancel) {
            Arrived::Underway => {}
            Arrived::Done(answer) => self.say(id, &answer),
            Arrived::Closed => {
                let why = "everything is being removed, so nothing begins".to_owned();
                self.say(id, &Answer::fault(&Fault::Other(why)));
            }
            Arrived::New => {
                let daemon = Arc::clone(self);
                let begun = thread::Builder::new().stack_size(STACK).spawn(move || {
                    let kept = request.kept();
                    let answer = daemon.work.answer(request, &data, &cancel);
                    let answer = answer.unwrap_or_else(|fault| Answer::fault(&fault));
                    daemon.outcomes.finish(id, kept.then(|| answer.clone()));
                    daemon.say(id, &answer);
                });
                if let Err(error) = begun {
                    self.outcomes.finish(id, None);
                    let why = format!("no thread can be started: {error}");
                    self.say(id, &Answer::fault(&Fault::Other(why)));
                }
            }
        }
        Ok(())
    }

    /// Sends an answer. If it does not arrive, it is requested again on the next connection.
    fn say(&self, id: u64, answer: &Answer) {
        let mut speaker = lock(&self.speaker);
        let parts: Vec<&[u8]> = answer.parts.iter().map(Vec::as_slice).collect();
        if let Some(stream) = speaker.as_ref()
            && frame::write(stream, id, answer.head.clone(), &parts).is_err()
        {
            *speaker = None;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long to wait for messages of tare. The timer is set again only when it expires, not for each message. Timer and
/// `Instant` use `CLOCK_MONOTONIC`, which stands still while the host is suspended: its tare could not speak either.
struct Lease {
    timer: OwnedFd,
    began: Instant,
    lease_ms: AtomicU64,
    heard_ms: AtomicU64,
}

impl Lease {
    fn new() -> io::Result<Self> {
        let lease = Self {
            timer: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?,
            began: Instant::now(),
            lease_ms: AtomicU64::new(0),
            heard_ms: AtomicU64::new(0),
        };
        lease.last(FIRST_LEASE)?;
        Ok(lease)
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn heard(&self) {
        self.heard_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Renews the lease for this long.
    fn last(&self, lease: Duration) -> io::Result<()> {
        self.heard();
        self.lease_ms.store(lease.as_millis() as u64, Ordering::Relaxed);
        self.set(lease)
    }

    /// Whether it is over; if not, sets the timer to its current end.
    fn over(&self) -> bool {
        let end = self.heard_ms.load(Ordering::Relaxed) + self.lease_ms.load(Ordering::Relaxed);
        let left = end.saturating_sub(self.now_ms());
        if left == 0 {
            return true;
        }
        if let Err(error) = self.set(Duration::from_millis(left)) {
            log(&format!("the lease's timer cannot be set: {error}"));
            thread::sleep(SPENT);
        }
        false
    }

    fn set(&self, after: Duration) -> io::Result<()> {
        let value =
            Timespec { tv_sec: after.as_secs() as i64, tv_nsec: after.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

/// The daemon's $PATH, with the directories of administration programs, which sshd's may lack.
pub(crate) fn path_with_sbin(path: &str) -> String {
    let mut folders: Vec<&str> = path.split(':').filter(|folder| !folder.is_empty()).collect();
    folders.extend(SBIN.iter().filter(|place| !path.split(':').any(|folder| folder == **place)));
    folders.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_time_puts_the_end_off() {
        let lease = Lease::new().unwrap();
        lease.last(Duration::from_millis(200)).unwrap();
        thread::sleep(Duration::from_millis(120));
        lease.heard();
        thread::sleep(Duration::from_millis(120));
        assert!(!lease.over());
        thread::sleep(Duration::from_millis(120));
        assert!(lease.over());
    }

    #[test]
    fn programs_of_administration_are_found() {
        assert_eq!(path_with_sbin("/usr/bin:/sbin"), "/usr/bin:/sbin:/usr/local/sbin:/usr/sbin");
    }
}
