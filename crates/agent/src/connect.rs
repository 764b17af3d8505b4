//! The program that SSH starts: it starts a session's daemon, and carries frames between it and its standard streams.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use rustix::fs::{FlockOperation, flock};

use crate::Failure;
use crate::daemon::path_with_sbin;
use crate::mark;

/// First output; a shell's start-up files may have printed anything before it.
const PREAMBLE: &[u8] = b"\ntare-agent 1\n";
const SOCKET: &str = "socket";
const OWN_FILES: &str = "/proc/self/fd";

/// `connect --session NAME [--home PATH]`
pub(crate) fn connect(words: &[OsString]) -> Result<(), Failure> {
    let session = option(words, "--session").ok_or("connect: no --session")?;
    let session = session.to_str().filter(|name| {
        !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    });
    let session = session.ok_or("connect: a session is named by letters, digits and hyphens")?;
    let home = option(words, "--home").map_or_else(default_home, |home| Ok(PathBuf::from(home)))?;
    let agents = private_folder(&home)?;
    let stream = reach(&home, &agents, session)?;
    bridge(&stream)
}

fn option<'a>(words: &'a [OsString], name: &str) -> Option<&'a OsString> {
    words.iter().position(|word| word == name).and_then(|at| words.get(at + 1))
}

/// Same default as tare's `TARE_HOME`.
fn default_home() -> Result<PathBuf, Failure> {
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/tare"));
    }
    let of = |name| {
        std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from)
    };
    let data = of("XDG_DATA_HOME").or_else(|| Some(of("HOME")?.join(".local/share")));
    Ok(data
        .ok_or("$HOME is not set, so nothing says where to keep things: give the host a home")?
        .join("tare"))
}

/// HOME/agent, which only this user may enter: anyone who can connect to the daemon has this user's rights.
fn private_folder(home: &Path) -> Result<PathBuf, Failure> {
    let folder = home.join("agent");
    mark::make_home(home)?;
    let cannot_be_made = |error: io::Error| format!("{} cannot be made: {error}", folder.display());
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(cannot_be_made(error).into());
        }
        _ => {}
    }
    let about = fs::symlink_metadata(&folder)?;
    if !about.is_dir()
        || about.uid() != rustix::process::geteuid().as_raw()
        || about.mode() & 0o077 != 0
    {
        let what = "is not a directory that this user alone may enter: remove it, or chmod 700";
        return Err(format!("{} {what}", folder.display()).into());
    }
    Ok(folder)
}

/// Connects to the session's daemon, and starts it if there is none. Two calls at once start one daemon.
fn reach(home: &Path, agents: &Path, session: &str) -> Result<UnixStream, Failure> {
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(agents.join("lock"))
        .map_err(|error| format!("{} cannot be written: {error}", agents.display()))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let place = agents.join(session);
    if let Ok(stream) =
        File::open(&place).and_then(|folder| UnixStream::connect(socket_in(&folder)))
    {
        return Ok(stream);
    }
    let _absent = fs::remove_dir_all(&place); // of a daemon that was killed
    DirBuilder::new()
        .mode(0o700)
        .create(&place)
        .map_err(|error| format!("{} cannot be made: {error}", place.display()))?;
    let no_socket = |error: io::Error| {
        let hint = if Path::new(OWN_FILES).exists() { "" } else { ": /proc is not mounted" };
        format!("no socket can be made in {}: {error}{hint}", place.display())
    };
    let folder = File::open(&place).map_err(no_socket)?;
    let listener = UnixListener::bind(socket_in(&folder)).map_err(no_socket)?;
    let log = place.join("log");
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&log)
        .map_err(|error| format!("{} cannot be written: {error}", log.display()))?;
    let path = path_with_sbin(&std::env::var("PATH").unwrap_or_default());
    Command::new("/proc/self/exe")
        .arg("serve")
        .args([home, &place])
        .env("PATH", path)
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| format!("the daemon cannot be started: {error}"))?;
    Ok(UnixStream::connect(socket_in(&folder)).map_err(no_socket)?)
}

/// Path by the folder's descriptor, as the path of a socket is limited to 107 bytes (unix(7)).
fn socket_in(folder: &File) -> PathBuf {
    PathBuf::from(format!("{OWN_FILES}/{}/{SOCKET}", folder.as_raw_fd()))
}

/// Carries bytes both ways until either side ends.
fn bridge(stream: &UnixStream) -> Result<(), Failure> {
    let outward = stream.try_clone()?;
    io::stdout().write_all(PREAMBLE)?;
    io::stdout().flush()?;
    thread::spawn(move || {
        let _broken = carry(io::stdin().lock(), &outward);
        let _ended = outward.shutdown(Shutdown::Both);
    });
    carry(stream, io::stdout().lock())?;
    Ok(())
}

fn carry(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut block = vec![0; 1 << 16];
    loop {
        match from.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                to.write_all(&block[..length])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
