//! `tare-agent`: what acts for tare on a host of a site, spoken to over the streams of an SSH connection.
//!
//! `connect` is what SSH starts. It carries frames between its own standard streams and a Unix socket, behind which
//! `serve`, the daemon, outlives every connection. What the daemon is asked, and by which rules it answers twice or
//! clears up, is in docs/reference/agent.md.

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
mod netfilter;
mod outcomes;
mod program;
mod request;
mod sidecar;
mod sounding;
mod started;
mod work;

use std::ffi::OsString;

/// What can go wrong before there is anybody to answer, in one line.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str =
    "tare-agent acts for tare on another machine: tare itself copies and starts it, by SSH";

/// The whole program; the answer is its exit code.
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
