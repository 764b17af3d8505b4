//! The process of a started program before the program begins: it has its own session and waits to be released.
//!
//! It becomes the program by exec, which keeps pid and start time. It ends if it can no longer be released.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::Failure;

pub(crate) const READY: u8 = b'r';
pub(crate) const GO: u8 = b'g';
const UNSTARTED: i32 = 127;

/// Command `hold PROGRAM ARGUMENTS...`, with one end of a socket pair as standard input.
pub(crate) fn hold(words: &[OsString]) -> Result<(), Failure> {
    let (name, arguments) = words.split_first().ok_or("hold: no program")?;
    rustix::process::setsid()?;
    // Exec resets signals that are caught to the default action; ignored ones would stay ignored.
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // A copy that exec closes, which tells the other end that the program has begun.
    let mut line: UnixStream = std::io::stdin().as_fd().try_clone_to_owned()?.into();
    line.write_all(&[READY])?;
    let mut word = [0];
    if line.read(&mut word)? == 0 || word[0] != GO {
        return Ok(());
    }
    let error = Command::new(name).args(arguments).stdin(Stdio::null()).exec();
    line.write_all(&error.raw_os_error().unwrap_or(0).to_be_bytes())?;
    std::process::exit(UNSTARTED)
}
