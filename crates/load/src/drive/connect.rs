//! Opening of connections: all of them before the run, and lost ones again during it.
//!
//! Both block, on threads other than the measuring ones.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, OwnedFd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::error::{Fault, LoadError};
use crate::measure::Usage;
use crate::measure::usage::Meter;
use crate::plan::Plan;
use crate::protocol::cluster::Cluster;
use crate::protocol::{Opened, Protocol, Statement, Wire};
use crate::sys;
use crate::tls::Session;

/// A connection that requests may be sent on.
pub(super) struct Line<P> {
    pub(super) socket: OwnedFd,
    /// `None`: unencrypted.
    pub(super) session: Option<Session>,
    pub(super) protocol: P,
    /// How long it took to connect, log in and prepare.
    pub(super) took: Duration,
    /// How long it took until the log-in was accepted.
    pub(super) log_in: Duration,
    /// How much of that the TLS handshake took.
    pub(super) handshake: Option<Duration>,
}

/// How many connections are opened at once before the run, and for each thread during it.
const AT_ONCE: usize = 16;
/// Likewise if connecting is what is measured.
const RENEWED_AT_ONCE: usize = 256;
/// Pause between attempts to reach a server that does not accept connections.
const PAUSE: Duration = Duration::from_millis(20);
/// Other open file descriptors: standard streams, logs, epoll and events.
const OTHER_FILES: u64 = 64;

/// Raises the limit of open files as far as this process may.
///
/// # Errors
/// The limit is too low for the plan's connections.
pub(super) fn make_room(connections: usize) -> Result<(), LoadError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = connections as u64 + OTHER_FILES;
    let found = getrlimit(Resource::Nofile);
    if found.current.is_none_or(|limit| limit >= needed) {
        return Ok(());
    }
    let limit = found.maximum.unwrap_or(u64::MAX);
    let wanted = Rlimit { current: Some(needed), maximum: found.maximum };
    if limit < needed || setrlimit(Resource::Nofile, wanted).is_err() {
        return Err(LoadError::FileLimit { connections, needed, limit });
    }
    Ok(())
}

fn open<P: Protocol>(plan: &Plan, node: usize) -> Result<Line<P>, Fault> {
    let started = Instant::now();
    let (wire, protocol) = dial(plan, node, plan.workload.statements())?;
    let Opened { socket, session, handshake, log_in } = wire.into_opened()?;
    if plan.waits_for_one() {
        rustix::io::ioctl_fionbio(&socket, false).map_err(io::Error::from)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(plan.heartbeat()))
            .map_err(io::Error::from)?;
    }
    if plan.receive_share > 0 {
        sys::stamp_received(&socket)?;
    }
    Ok(Line { socket, session, protocol, took: started.elapsed(), log_in, handshake })
}

/// Opens a blocking connection for these statements.
pub(super) fn dial<P: Protocol>(
    plan: &Plan,
    node: usize,
    statements: &[Statement],
) -> Result<(Wire, P), Fault> {
    let mut wire = wire::<P>(plan, node)?;
    let protocol = P::open(&mut wire, &plan.access, statements)?;
    Ok((wire, protocol))
}

fn wire<P: Protocol>(plan: &Plan, node: usize) -> Result<Wire, Fault> {
    let mut wire = Wire::connect(plan.address_of(node), plan.limits.connect)?;
    if let Some(tls) = plan.access.tls.as_ref().filter(|_| P::TLS_FIRST) {
        wire.secure(tls)?;
    }
    Ok(wire)
}

/// Asks which node has which rows, if the plan names several nodes.
///
/// # Errors
/// A node cannot be asked.
pub(super) fn discover<P: Protocol>(plan: &Plan) -> Result<Option<Cluster>, LoadError> {
    if plan.others.is_empty() {
        return Ok(None);
    }
    let mut wires = Vec::new();
    for node in 0..plan.nodes() {
        wires.push(wire::<P>(plan, node).map_err(|source| failed(plan, node, source))?);
    }
    P::discover(&mut wires, &plan.access).map_err(|(node, source)| failed(plan, node, source))
}

fn failed(plan: &Plan, node: usize, source: Fault) -> LoadError {
    LoadError::Connect { address: plan.address_of(node).to_owned(), source }
}

/// Opens all connections of the plan, in order, each to all nodes.
///
/// # Errors
/// The first failure; the remaining connections are not tried.
pub(super) fn open_all<P: Protocol>(plan: &Plan) -> Result<Vec<Line<P>>, LoadError> {
    let (next, all) = (AtomicUsize::new(0), plan.connections * plan.nodes());
    let failure = Mutex::new(None);
    let opened = Mutex::new(Vec::with_capacity(all));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(all) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= all {
                        break;
                    }
                    let node = number % plan.nodes();
                    match open(plan, node) {
                        Ok(line) => opened.lock().expect("no panic").push((number, line)),
                        Err(fault) => {
                            next.store(all, Ordering::Relaxed);
                            let fault = failed(plan, node, fault);
                            failure.lock().expect("no panic").get_or_insert(fault);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().expect("no panic") {
        return Err(error);
    }
    let mut opened = opened.into_inner().expect("no panic");
    opened.sort_unstable_by_key(|&(number, _)| number);
    Ok(opened.into_iter().map(|(_, line)| line).collect())
}

/// Attempt to reopen a connection.
pub(super) struct Reopened<P> {
    pub(super) route: usize,
    pub(super) line: Result<Line<P>, Fault>,
    /// Whether another attempt follows.
    pub(super) again: bool,
    /// What that cost this program.
    pub(super) usage: Usage,
}

/// Starts threads that reopen the routes named in `lost` until its sender is dropped, and signal `bell` for each.
///
/// Nobody waits for their end: connecting may block for as long as a server is away.
pub(super) fn start_reopening<P: Protocol>(
    plan: &Arc<Plan>,
    connections: usize,
    lost: Receiver<usize>,
    found: &Sender<Reopened<P>>,
    bell: &OwnedFd,
) -> io::Result<()> {
    let lost = Arc::new(Mutex::new(lost));
    let at_once = plan.requests_per_connection.map_or(AT_ONCE, |_| RENEWED_AT_ONCE);
    for _ in 0..at_once.min(connections * plan.nodes()) {
        let (plan, lost, found) = (Arc::clone(plan), Arc::clone(&lost), found.clone());
        let bell = bell.try_clone()?;
        std::thread::Builder::new()
            .name("reopen".into())
            .spawn(move || reopen::<P>(&plan, &lost, &found, bell))?;
    }
    Ok(())
}

fn reopen<P: Protocol>(
    plan: &Plan,
    lost: &Mutex<Receiver<usize>>,
    found: &Sender<Reopened<P>>,
    bell: impl AsFd,
) {
    let meter = Meter::of_this_thread();
    let mut spent = meter.read();
    loop {
        let next = lost.lock().expect("no panic").recv();
        let Ok(route) = next else { return };
        let deadline = Instant::now() + plan.limits.reconnect;
        loop {
            let line = open(plan, route % plan.nodes());
            let again = matches!(&line, Err(fault) if fault.passes() && Instant::now() < deadline);
            let now = meter.read();
            let usage = now.since(&spent);
            spent = now;
            if found.send(Reopened { route, line, again, usage }).is_err() {
                return; // the run is over
            }
            // Only a counter at its limit would block, and then the reader is signalled anyway.
            let _ = rustix::io::write(&bell, &1_u64.to_ne_bytes());
            if !again {
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }
}
