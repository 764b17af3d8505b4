//! `tare-agent`, which acts for tare on a host of a site, over the streams of an SSH connection.
//!
//! SSH starts `connect`, which carries frames between its standard streams and a Unix socket of `serve`, the daemon.
//! The daemon outlives connections. Its requests, and the rules for repeated requests and clearing up, are in
//! docs/reference/agent.md.

mod answer;
mod clearing;
mod cni;
mod connect;
mod daemon;
mod echo;
mod engine;
mod files;
mod frame;
mod hold;
mod identity;
mod ledger;
mod mark;
mod mounts;
mod netfilter;
mod outcomes;
mod program;
mod request;
mod sidecar;
mod sounding;
mod started;
mod work;

use std::ffi::OsString;
use std::io::{self, Write};

/// Error in one line, if there is no connection to answer on, or within a request.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Writes a line to the log. A full disk or a closed log stops nothing.
pub(crate) fn log(line: &str) {
    let _written = writeln!(io::stderr(), "tare-agent: {line}");
}

const USAGE: &str =
    "tare-agent acts for tare on another machine: tare itself copies and starts it, by SSH";

/// Runs the program; returns its exit code.
#[must_use]
pub fn run(arguments: Vec<OsString>) -> i32 {
    let mut words = arguments.into_iter();
    let verb = words.next().unwrap_or_default();
    let rest: Vec<OsString> = words.collect();
    let done = match verb.to_str() {
        Some("connect") => connect::connect(&rest),
        Some("serve") => daemon::serve(&rest),
        Some("hold") => hold::hold(&rest),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("tare-agent: {failure}");
            3
        }
    }
}
