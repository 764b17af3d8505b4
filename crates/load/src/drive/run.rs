//! A run: connections are opened, then one thread per core sends requests; their windows are added up here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};

use super::connect::{self, Line};
use super::connection::{Connection, Route};
use super::once;
use super::pace::Timeline;
use super::shared::{Channels, End, Notice, Shared};
use super::turns::{TurnFigures, Turns};
use super::worker::{ThreadConnections, Worker};
use crate::clock;
use crate::error::LoadError;
use crate::measure::usage::Meter;
use crate::measure::{Latencies, Phase, Window, latencies};
use crate::plan::Plan;
use crate::protocol::Protocol;
use crate::workload::Stream;

/// What the caller receives during the run.
pub enum Progress<'a> {
    /// All connections are open, and the turns are waited for.
    Connected,
    SetUp(&'a SetUp, Mark),
    /// Figures of all threads.
    Window(&'a Window),
    /// Why a connection was lost; only the first within a second.
    Lost(&'a str),
    /// The measurement is over, and the statements after it begin.
    After,
}

/// The end of the warm-up and start of the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub monotonic_ns: u64,
    pub realtime_ns: u64,
}

pub struct SetUp {
    pub seconds: f64,
    /// Time of each connection from the first packet until requests may be sent.
    pub connects: Latencies,
    pub tls: Option<TlsSetUp>,
}

/// Part of it that TLS took.
pub struct TlsSetUp {
    /// TLS version and cipher suite of the first connection.
    pub suite: Option<String>,
    pub handshakes: Latencies,
}

pub struct Outcome {
    pub end: End,
    pub set_up: SetUp,
    pub warm_up: Window,
    /// Figures of the measurement, with operations that ended after the last arrival.
    pub measure: Window,
    pub mark: Mark,
    /// When the last operation that counts was sent, or should have been.
    pub end_ns: u64,
    /// The turns that were taken, with the figures of each.
    pub turns: Option<(Turns, Vec<TurnFigures>)>,
}

/// Time from the last connection to the first request, in which the threads start.
const LEAD_NS: u64 = 20_000_000;

/// Runs the plan. The loss of the server ends the run, with the figures until then.
///
/// # Errors
/// Not all connections can be opened, or a thread cannot be started.
pub fn run<P: Protocol>(
    plan: &Plan,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(Progress<'_>) -> Result<(), LoadError>,
) -> Result<Outcome, LoadError> {
    connect::make_room(plan.connections * plan.nodes())?;
    once::execute::<P>(plan, &plan.before)?;
    let cluster = connect::discover::<P>(plan)?;
    let shared_plan = Arc::new(plan.clone());
    let started_ns = clock::monotonic_ns();
    let lines = connect::open_all::<P>(plan)?;
    let set_up = set_up(&lines, started_ns);
    let turns = match &plan.turns {
        Some(path) => {
            observe(Progress::Connected)?;
            Some(Turns::wait_for(path, interrupted)?)
        }
        None => None,
    };
    let timeline = timeline(plan, turns.as_ref());
    let ahead_ns = timeline.mark_ns.saturating_sub(clock::monotonic_ns());
    let mark =
        Mark { monotonic_ns: timeline.mark_ns, realtime_ns: clock::realtime_ns() + ahead_ns };
    observe(Progress::SetUp(&set_up, mark))?;
    let shared = Shared::new(interrupted);
    let (notices, received) = channel();
    let mut spares = Vec::new();
    let mut dealt = deal(plan, lines).into_iter().enumerate();
    let gathered = std::thread::scope(|scope| {
        let (cluster, turns) = (cluster.as_ref(), turns.as_ref());
        let started = dealt.try_for_each(|(share, Share { connections, routes })| {
            let (spare, windows) = channel();
            spares.push(spare);
            let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
            let rung = bell.try_clone()?;
            let (report_lost, lost) = channel();
            let (find, found) = channel();
            let channels = Channels {
                share,
                notices: notices.clone(),
                spare: windows,
                lost: report_lost,
                found,
            };
            connect::start_reopening::<P>(&shared_plan, connections.len(), lost, &find, &rung)?;
            let of_thread = ThreadConnections { cluster, connections, routes, turns };
            let worker = || Worker::new(plan, &shared, channels, timeline, of_thread, bell)?.run();
            let notices = notices.clone();
            let shared = &shared;
            std::thread::Builder::new().name(format!("drive-{share}")).spawn_scoped(
                scope,
                move || {
                    if let Err(error) = worker() {
                        shared.fail(error);
                        let _ = notices.send(Notice::Done { share });
                    }
                },
            )?;
            Ok(())
        });
        if let Err(error) = started {
            shared.stop(String::new());
            return Err(LoadError::Thread(error));
        }
        drop(notices);
        let gathered = gather(plan, &received, &spares, observe);
        if gathered.is_err() {
            shared.stop("a log could not be written".to_owned());
        }
        gathered
    })?;
    if let Some(error) = shared.take_failure() {
        return Err(LoadError::Machine(error));
    }
    let end = shared.end();
    if end == End::Complete && !plan.after.is_empty() {
        observe(Progress::After)?;
        once::execute::<P>(plan, &plan.after)?;
    }
    Ok(Outcome {
        end,
        set_up,
        mark,
        end_ns: gathered.end_ns.min(timeline.end_ns),
        warm_up: gathered.warm_up,
        measure: gathered.measure,
        turns: turns.map(|turns| (turns, gathered.turns)),
    })
}

fn set_up<P>(lines: &[Line<P>], started_ns: u64) -> SetUp {
    let (mut connects, mut handshakes) = (latencies(), latencies());
    for line in lines {
        connects.saturating_record(line.took.as_nanos() as u64);
        if let Some(handshake) = line.handshake {
            handshakes.saturating_record(handshake.as_nanos() as u64);
        }
    }
    let session = lines.first().and_then(|line| line.session.as_ref());
    let tls = session.map(|session| TlsSetUp { suite: session.described(), handshakes });
    #[allow(clippy::cast_precision_loss)] // some seconds
    SetUp { seconds: (clock::monotonic_ns() - started_ns) as f64 / 1e9, connects, tls }
}

fn timeline(plan: &Plan, turns: Option<&Turns>) -> Timeline {
    let window_ns = plan.window.as_nanos() as u64;
    if let Some(turns) = turns {
        let (mark_ns, end_ns) = (turns.mark_ns(), turns.end_ns());
        return Timeline { start_ns: turns.all[0].start_ns, mark_ns, end_ns, window_ns };
    }
    let start_ns = clock::monotonic_ns() + LEAD_NS;
    let mark_ns = start_ns + plan.warm_up.as_nanos() as u64;
    let end_ns = plan.length.time().map_or(u64::MAX, |time| mark_ns + time.as_nanos() as u64);
    Timeline { start_ns, mark_ns, end_ns, window_ns }
}

/// Connections of one thread.
struct Share<P> {
    connections: Vec<Connection>,
    /// For each connection, one to each node.
    routes: Vec<Route<P>>,
}

/// Distributes connections to threads: thread `t` of `n` has `t`, `t + n`, `t + 2n`, …
fn deal<P: Protocol>(plan: &Plan, lines: Vec<Line<P>>) -> Vec<Share<P>> {
    let none = |_| Share { connections: Vec::new(), routes: Vec::new() };
    let mut shares: Vec<Share<P>> = (0..plan.threads).map(none).collect();
    let connections = plan.connections as u64;
    let mut routes = lines.into_iter().map(Route::new);
    for number in 0..connections {
        let part = |all| all / connections + u64::from(number < all % connections);
        let budget = plan.length.operations().map_or(u64::MAX, part);
        let operations = Stream::new(plan.seed, number, connections);
        let share = &mut shares[number as usize % plan.threads];
        let (depth, most_sent) = (plan.depth, plan.requests_per_connection);
        let connection = Connection::new(operations, depth, most_sent, P::ORDERED, budget);
        share.connections.push(connection);
        share.routes.extend(routes.by_ref().take(plan.nodes()));
    }
    shares
}

struct Gathered {
    warm_up: Window,
    measure: Window,
    end_ns: u64,
    turns: Vec<TurnFigures>,
}

/// A window that not all threads have reported yet.
struct Partial {
    window: Box<Window>,
    /// Thread that its memory belongs to.
    share: usize,
    /// Whether each thread has reported it.
    reported: Vec<bool>,
}

/// Adds up the threads' windows until all threads have ended.
fn gather(
    plan: &Plan,
    received: &Receiver<Notice>,
    spares: &[Sender<Window>],
    observe: &mut dyn FnMut(Progress<'_>) -> Result<(), LoadError>,
) -> Result<Gathered, LoadError> {
    let kinds = plan.workload.kinds().len();
    let mut gathered = Gathered {
        warm_up: Window::new(kinds),
        measure: Window::new(kinds),
        end_ns: 0,
        turns: Vec::new(),
    };
    let mut partial: BTreeMap<(Phase, u32), Partial> = BTreeMap::new();
    let mut done = vec![false; plan.threads];
    let mut last_loss_ns = 0;
    let meter = Meter::of_this_thread();
    let mut spent = meter.read();
    while !done.iter().all(|&done| done) {
        let Ok(notice) = received.recv() else { break };
        match notice {
            Notice::Done { share } => done[share] = true,
            Notice::Turns(figures) => {
                gathered.turns.resize(figures.len(), TurnFigures::default());
                gathered.turns.iter_mut().zip(&figures).for_each(|(sum, more)| sum.add(more));
            }
            Notice::Lost(why) => {
                let now_ns = clock::monotonic_ns();
                if now_ns - last_loss_ns > 1_000_000_000 {
                    observe(Progress::Lost(&why))?;
                    last_loss_ns = now_ns;
                }
            }
            Notice::Window { share, window } => match partial.entry((window.phase, window.index)) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let mut reported = vec![false; plan.threads];
                    reported[share] = true;
                    entry.insert(Partial { window, share, reported });
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    let first = entry.get_mut();
                    first.window.merge(&window);
                    first.window.end_ns = first.window.end_ns.max(window.end_ns);
                    first.reported[share] = true;
                    hand_back(spares, share, window);
                }
            },
        }
        while let Some(entry) = partial.first_entry() {
            let reported = &entry.get().reported;
            if !reported.iter().zip(&done).all(|(&reported, &done)| reported || done) {
                break;
            }
            let Partial { window, share, .. } = entry.remove();
            observe(Progress::Window(&window))?;
            let total = match window.phase {
                Phase::WarmUp => &mut gathered.warm_up,
                Phase::Measure | Phase::Drain => &mut gathered.measure,
            };
            total.merge(&window);
            // Merging and writing windows is a cost of this client, too.
            let now = meter.read();
            total.usage.add(&now.since(&spent));
            spent = now;
            gathered.end_ns = window.end_ns;
            hand_back(spares, share, window);
        }
    }
    Ok(gathered)
}

fn hand_back(spares: &[Sender<Window>], share: usize, mut window: Box<Window>) {
    window.clear();
    let _ = spares[share].send(*window); // a thread that is done needs none
}
