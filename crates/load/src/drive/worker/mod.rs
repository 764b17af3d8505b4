//! The loop of one thread, which sends what is due and reads what has arrived.

mod deal;
mod exchange;
mod flow;
mod lines;
mod sealed;
mod wakes;

use std::collections::VecDeque;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use self::flow::Pauses;
use self::wakes::Wakes;
use super::connection::{Arrival, Connection, Route};
use super::pace::{Arriving, Span, Timeline};
use super::shared::{Channels, Notice, Shared};
use super::turns::{Taking, Turns};
use crate::clock::monotonic_ns;
use crate::error::Fault;
use crate::measure::usage::Meter;
use crate::measure::{Usage, Window};
use crate::plan::Plan;
use crate::protocol::cluster::Cluster;
use crate::protocol::{Protocol, Values};

/// Size of one read; one buffer serves all connections.
const INPUT_BYTES: usize = 256 * 1024;
/// Number under which errors of connections are counted, which have no kind of operation.
pub const OF_CONNECTIONS: u8 = u8::MAX;

/// How much to read from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Everything that has arrived.
    What,
    /// Everything until the end of the stream.
    ToEnd,
    /// What has arrived, or else arrives within a heartbeat.
    Waiting,
}

const OF_HEARTBEAT: u64 = u64::MAX;
const OF_BELL: u64 = u64::MAX - 1;

/// Connections of one thread to the server, or to each node of a cluster.
pub(super) struct ThreadConnections<'a, P> {
    pub(super) cluster: Option<&'a Cluster>,
    pub(super) connections: Vec<Connection>,
    /// Routes of each connection, one to each node.
    pub(super) routes: Vec<Route<P>>,
    pub(super) turns: Option<&'a Turns>,
}

pub(super) struct Worker<'a, P: Protocol> {
    plan: &'a Plan,
    shared: &'a Shared<'a>,
    channels: Channels<P>,
    timeline: Timeline,
    connections: Vec<Connection>,
    /// Routes of each connection, one to each node: route `c * nodes + n` of connection `c`.
    routes: Vec<Route<P>>,
    nodes: usize,
    cluster: Option<&'a Cluster>,
    /// `None` in a closed loop.
    arriving: Option<Arriving<'a>>,
    turns: Option<&'a Turns>,
    taking: Option<Taking<'a>>,
    /// Arrivals for which no connection has had room yet.
    waiting: VecDeque<Arrival>,
    /// Connections that may take an arrival, in turn.
    free: VecDeque<usize>,
    most_waiting: usize,
    /// Operations that may still be started, by all connections together.
    budget: u64,
    /// Operations that were started or scheduled and have not ended.
    outstanding: usize,
    pauses: Pauses,
    /// Connections with something to send.
    ready: Vec<usize>,
    input: Box<[u8]>,
    /// Encrypted input.
    sealed_input: Box<[u8]>,
    output: Vec<u8>,
    /// Output to each node.
    outputs: Vec<Vec<u8>>,
    sealed_output: Vec<u8>,
    values: Values,
    reads: u32,
    span: Span,
    window: Window,
    meter: Meter,
    usage: Usage,
    wakes: Wakes,
    /// Time in the current window that was spent polling clock and sockets until an arrival was due.
    polled_ns: u64,
    /// Cost of reopening connections in the current window, by other threads.
    reopening: Usage,
    last_check_ns: u64,
    epoll: OwnedFd,
    heartbeat: OwnedFd,
    bell: OwnedFd,
}

impl<'a, P: Protocol> Worker<'a, P> {
    pub(super) fn new(
        plan: &'a Plan,
        shared: &'a Shared<'a>,
        channels: Channels<P>,
        timeline: Timeline,
        of_thread: ThreadConnections<'a, P>,
        bell: OwnedFd,
    ) -> std::io::Result<Self> {
        let ThreadConnections { cluster, connections, routes, turns } = of_thread;
        let span = timeline.first();
        let mut window = Window::new(plan.workload.kinds().len());
        begin(&mut window, &span);
        let meter = Meter::of_this_thread();
        let usage = meter.read();
        let budget = connections.iter().fold(0_u64, |sum, one| sum.saturating_add(one.budget));
        let mut worker = Self {
            plan,
            shared,
            arriving: Arriving::new(plan, timeline, turns, channels.share),
            turns,
            taking: turns.map(Taking::new),
            channels,
            timeline,
            waiting: VecDeque::new(),
            free: VecDeque::with_capacity(connections.len()),
            most_waiting: plan.most_waiting.div_ceil(plan.threads).max(1),
            budget,
            outstanding: 0,
            pauses: Pauses::new(),
            ready: Vec::with_capacity(connections.len()),
            connections,
            routes,
            nodes: plan.nodes(),
            cluster,
            input: vec![0; INPUT_BYTES].into(),
            sealed_input: vec![0; if plan.access.tls.is_some() { INPUT_BYTES } else { 0 }].into(),
            output: Vec::new(),
            outputs: vec![Vec::new(); plan.nodes()],
            sealed_output: Vec::new(),
            values: Values::default(),
            reads: 0,
            span,
            window,
            meter,
            usage,
            wakes: Wakes::new(plan.most_polled),
            polled_ns: 0,
            reopening: Usage::default(),
            last_check_ns: 0,
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            heartbeat: heartbeat(plan.heartbeat())?,
            bell,
        };
        worker.listen()?;
        Ok(worker)
    }

    fn listen(&mut self) -> std::io::Result<()> {
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.epoll, &self.heartbeat, EventData::new_u64(OF_HEARTBEAT), edge)?;
        epoll::add(&self.epoll, &self.bell, EventData::new_u64(OF_BELL), edge)?;
        for route in 0..self.routes.len() {
            self.watch(route)?;
        }
        Ok(())
    }

    /// Runs until the end of the run, and sends the measured windows meanwhile.
    pub(super) fn run(mut self) -> std::io::Result<()> {
        // By default, the kernel may delay a timer by 50 µs.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        sleep_until(self.timeline.start_ns);
        (0..self.connections.len()).for_each(|index| self.make_ready(index));
        let mut events = Vec::with_capacity(512);
        loop {
            let now_ns = monotonic_ns();
            self.turn_over(now_ns);
            self.take_turn(now_ns);
            self.resume(now_ns);
            self.admit(now_ns, now_ns);
            while let Some(index) = self.ready.pop() {
                self.send(index);
            }
            self.check(now_ns);
            if self.is_finished(now_ns) {
                break;
            }
            if self.waits_for_one() {
                self.receive(0, Reading::Waiting);
                continue;
            }
            events.clear();
            self.wait(&mut events)?;
            for event in &events {
                self.serve(event.data.u64(), event.flags);
            }
        }
        self.finish();
        Ok(())
    }

    /// In a closed loop, starts operations once a turn has begun.
    fn take_turn(&mut self, now_ns: u64) {
        let begins = self.taking.as_mut().is_some_and(|taking| taking.begins(now_ns));
        if begins && self.arriving.is_none() {
            (0..self.connections.len()).for_each(|index| self.make_ready(index));
        }
    }

    fn serve(&mut self, source: u64, flags: EventFlags) {
        match source {
            OF_HEARTBEAT => {
                // The kernel starts the next period when this one is read (timerfd_create(2)).
                let _ = rustix::io::read(&self.heartbeat, &mut [0; 8]);
            }
            OF_BELL => self.take_reopened(),
            route => {
                let route = route as usize;
                if flags.contains(EventFlags::OUT) {
                    self.flush(route);
                }
                let ending = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
                if flags.intersects(ending) {
                    self.receive(route, Reading::ToEnd);
                } else if flags.contains(EventFlags::IN) {
                    self.receive(route, Reading::What);
                }
            }
        }
    }

    /// Whether to wait in `recv(2)`, which saves one `epoll_wait(2)` for each reply.
    fn waits_for_one(&self) -> bool {
        self.plan.waits_for_one()
            && self.routes.first().is_some_and(Route::is_clear)
            && self.connections.first().is_some_and(|one| one.flight.len() > 0)
    }

    /// Waits for input, the next arrival or turn; the heartbeat wakes it for everything else.
    fn wait(&mut self, events: &mut Vec<Event>) -> std::io::Result<()> {
        let due_ns = match &self.arriving {
            Some(arriving) => arriving.next_ns(),
            None => self.taking.as_ref().and_then(Taking::next_ns),
        };
        let due_ns = due_ns.into_iter().chain(self.pause_end_ns()).min();
        let asked_ns = due_ns.map_or(0, |_| monotonic_ns());
        let left_ns = due_ns.map(|due_ns| due_ns.saturating_sub(asked_ns));
        let sleep_ns = left_ns.map(|left_ns| self.wakes.sleep_ns(left_ns));
        let timeout = sleep_ns.map(|sleep_ns| Timespec {
            tv_sec: (sleep_ns / 1_000_000_000) as i64,
            tv_nsec: (sleep_ns % 1_000_000_000) as i64,
        });
        let buffer = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, buffer, timeout.as_ref()) {
            Ok(0) => {}
            Ok(_) | Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let (Some(left_ns), Some(sleep_ns)) = (left_ns, sleep_ns) else { return Ok(()) };
        let took_ns = monotonic_ns() - asked_ns;
        if sleep_ns > 0 {
            self.wakes.saw(took_ns.saturating_sub(sleep_ns));
        } else {
            self.polled_ns += wakes::polled_ns(took_ns, left_ns);
        }
        Ok(())
    }

    /// Notes that a connection may send: what it has, in a closed loop the next operation, else an arrival.
    fn make_ready(&mut self, index: usize) {
        if self.renew(index) {
            return;
        }
        let connection = &mut self.connections[index];
        if connection.pause_end_ns > 0 {
            return;
        }
        if self.arriving.is_some() && !connection.offered {
            connection.offered = true;
            self.free.push_back(index);
        }
        if !connection.ready && (self.arriving.is_none() || !connection.continuing.is_empty()) {
            connection.ready = true;
            self.ready.push(index);
        }
    }

    /// Checks for overdue replies, once per heartbeat.
    fn check(&mut self, now_ns: u64) {
        if now_ns - self.last_check_ns < self.plan.heartbeat().as_nanos() as u64 {
            return;
        }
        self.last_check_ns = now_ns;
        let limit = self.plan.limits.reply;
        for index in 0..self.connections.len() {
            let Some(oldest) = self.connections[index].flight.oldest() else { continue };
            if now_ns.saturating_sub(oldest.step_sent_ns) > limit.as_nanos() as u64 {
                let route = index * self.nodes + usize::from(oldest.node);
                self.lose(route, &Fault::TimedOut(limit.as_secs_f64()));
            }
        }
    }

    fn is_finished(&self, now_ns: u64) -> bool {
        let drained_ns =
            self.timeline.end_ns.saturating_add(self.plan.limits.drain.as_nanos() as u64);
        let nothing_comes = now_ns >= self.timeline.end_ns
            || self.budget == 0
            || self.arriving.as_ref().is_some_and(Arriving::is_exhausted);
        self.shared.is_stopped() || (nothing_comes && self.outstanding == 0) || now_ns >= drained_ns
    }

    /// Ends windows whose time is over.
    fn turn_over(&mut self, now_ns: u64) {
        while now_ns >= self.span.end_ns {
            self.admit(self.span.end_ns - 1, now_ns);
            let end_ns = self.span.end_ns;
            self.span = self.timeline.after(&self.span);
            self.hand_over(end_ns);
        }
    }

    fn finish(&mut self) {
        self.window.counts.unfinished = self.outstanding as u64;
        self.hand_over(monotonic_ns());
        if let Some(taking) = self.taking.take() {
            let _ = self.channels.notices.send(Notice::Turns(taking.figures));
        }
        let share = self.channels.share;
        let _ = self.channels.notices.send(Notice::Done { share });
    }

    /// Sends the current window and begins the next one.
    fn hand_over(&mut self, end_ns: u64) {
        let kinds = self.plan.workload.kinds().len();
        let mut fresh = self.channels.spare.try_recv().unwrap_or_else(|_| Window::new(kinds));
        begin(&mut fresh, &self.span);
        let mut full = std::mem::replace(&mut self.window, fresh);
        let usage = self.meter.read();
        full.usage = usage.since(&self.usage);
        full.usage.polled_ns = std::mem::take(&mut self.polled_ns);
        full.usage.add(&std::mem::take(&mut self.reopening));
        full.end_ns = end_ns;
        full.driven_ns = self.turns.map(|turns| turns.measured_ns(full.start_ns, end_ns));
        self.usage = usage;
        let share = self.channels.share;
        let _ = self.channels.notices.send(Notice::Window { share, window: Box::new(full) });
    }
}

fn begin(window: &mut Window, span: &Span) {
    window.phase = span.phase;
    window.index = span.index;
    window.start_ns = span.start_ns;
    window.end_ns = span.end_ns;
}

/// The only timer of a closed loop.
fn heartbeat(every: Duration) -> std::io::Result<OwnedFd> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let every = Timespec { tv_sec: 0, tv_nsec: every.as_nanos() as i64 };
    let setting = Itimerspec { it_interval: every, it_value: every };
    timerfd_settime(timer.as_fd(), TimerfdTimerFlags::empty(), &setting)?;
    Ok(timer)
}

fn sleep_until(at_ns: u64) {
    let left_ns = at_ns.saturating_sub(monotonic_ns());
    std::thread::sleep(Duration::from_nanos(left_ns));
}
