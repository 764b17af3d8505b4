//! One thread's loop: what is due is sent, what has come is read, and nothing else happens between.

use std::sync::mpsc::{Receiver, Sender};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::connect::Reopened;
use super::connection::{Arrival, Connection};
use super::flight::Pending;
use super::pace::{Arriving, Span, Timeline};
use super::run::{Notice, Shared};
use crate::clock::{monotonic_ns, realtime_ns};
use crate::error::Fault;
use crate::measure::usage::Meter;
use crate::measure::window::Outcome;
use crate::measure::{Parts, Phase, Usage, Window};
use crate::plan::Plan;
use crate::protocol::{Label, Protocol, REST_LIMIT, Reply, Values};
use crate::sys;

/// Time limits and a stop are looked at so often; it is the only timer in a closed loop.
const HEARTBEAT_NS: u64 = 50_000_000;
/// Read at once, for all connections: what is more comes with the next read.
const INPUT_BYTES: usize = 256 * 1024;
/// Under which number errors of connections are counted, as they are of no kind of operation.
pub const OF_CONNECTIONS: u8 = u8::MAX;

const HEARTBEAT: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

/// The ends of the channels to those that this thread speaks with.
pub(super) struct Channels<P> {
    /// Which of the threads this is.
    pub(super) share: usize,
    pub(super) notices: Sender<Notice>,
    /// Windows to be filled anew.
    pub(super) spare: Receiver<Window>,
    pub(super) lost: Sender<usize>,
    pub(super) found: Receiver<Reopened<P>>,
}

pub(super) struct Worker<'a, P: Protocol> {
    plan: &'a Plan,
    shared: &'a Shared<'a>,
    channels: Channels<P>,
    timeline: Timeline,
    connections: Vec<Connection<P>>,
    /// `None` in a closed loop.
    arriving: Option<Arriving>,
    /// Which connection the next arrival goes to.
    turn: usize,
    most_waiting: usize,
    /// Operations that may still be started, all connections together.
    budget: u64,
    /// Operations that were begun or scheduled and have not ended.
    outstanding: usize,
    /// Connections that have something to send.
    ready: Vec<usize>,
    input: Box<[u8]>,
    output: Vec<u8>,
    values: Values,
    reads: u32,
    span: Span,
    window: Window,
    meter: Meter,
    usage: Usage,
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
        connections: Vec<Connection<P>>,
        bell: OwnedFd,
    ) -> std::io::Result<Self> {
        let span = timeline.first();
        let mut window = Window::new(plan.workload.kinds().len());
        begin(&mut window, &span);
        let meter = Meter::of_this_thread();
        let usage = meter.read();
        let budget = connections.iter().fold(0_u64, |sum, one| sum.saturating_add(one.budget));
        let mut worker = Self {
            plan,
            shared,
            arriving: Arriving::new(plan, timeline, channels.share),
            channels,
            timeline,
            turn: 0,
            most_waiting: (plan.most_waiting / plan.connections).max(1),
            budget,
            outstanding: 0,
            ready: Vec::with_capacity(connections.len()),
            connections,
            input: vec![0; INPUT_BYTES].into(),
            output: Vec::new(),
            values: Values::default(),
            reads: 0,
            span,
            window,
            meter,
            usage,
            last_check_ns: 0,
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            heartbeat: heartbeat()?,
            bell,
        };
        worker.listen()?;
        Ok(worker)
    }

    fn listen(&mut self) -> std::io::Result<()> {
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.epoll, &self.heartbeat, EventData::new_u64(HEARTBEAT), edge)?;
        epoll::add(&self.epoll, &self.bell, EventData::new_u64(BELL), edge)?;
        for index in 0..self.connections.len() {
            self.watch(index)?;
        }
        Ok(())
    }

    /// Until the end of the run; what was measured has been sent by then.
    pub(super) fn run(mut self) -> std::io::Result<()> {
        // By default the kernel may be 50 µs late with a timer.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        sleep_until(self.timeline.start_ns);
        if self.arriving.is_none() {
            (0..self.connections.len()).for_each(|index| self.make_ready(index));
        }
        let mut events = Vec::with_capacity(512);
        loop {
            let now_ns = monotonic_ns();
            self.turn_over(now_ns);
            self.admit(now_ns);
            while let Some(index) = self.ready.pop() {
                self.send(index);
            }
            self.check(now_ns);
            if self.is_finished(now_ns) {
                break;
            }
            events.clear();
            let timeout = self.timeout();
            let buffer = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, buffer, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                self.serve(event.data.u64(), event.flags);
            }
        }
        self.finish();
        Ok(())
    }

    fn serve(&mut self, source: u64, flags: EventFlags) {
        match source {
            HEARTBEAT => {
                // The kernel starts the next period when this one is read (timerfd_create(2)).
                let _ = rustix::io::read(&self.heartbeat, &mut [0; 8]);
            }
            BELL => self.take_reopened(),
            index => {
                let index = index as usize;
                if flags.contains(EventFlags::OUT) {
                    self.flush(index);
                }
                let ending = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
                if flags.intersects(ending | EventFlags::IN) {
                    self.receive(index, flags.intersects(ending));
                }
            }
        }
    }

    /// When the next arrival is due; the heartbeat wakes for everything else.
    fn timeout(&self) -> Option<Timespec> {
        let next_ns = self.arriving.as_ref()?.next_ns()?;
        let left_ns = next_ns.saturating_sub(monotonic_ns());
        Some(Timespec {
            tv_sec: (left_ns / 1_000_000_000) as i64,
            tv_nsec: (left_ns % 1_000_000_000) as i64,
        })
    }

    fn make_ready(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !connection.ready {
            connection.ready = true;
            self.ready.push(index);
        }
    }

    /// Gives the arrivals that are due to their connections, in turn.
    fn admit(&mut self, now_ns: u64) {
        let Some(arriving) = &mut self.arriving else { return };
        while let Some(intended_ns) = arriving.next_ns().filter(|&next_ns| next_ns <= now_ns) {
            arriving.advance();
            if intended_ns >= self.timeline.mark_ns {
                if self.budget == 0 {
                    return;
                }
                self.budget -= 1;
            }
            let index = self.turn;
            self.turn = (self.turn + 1) % self.connections.len();
            self.window.counts.scheduled += 1;
            let connection = &mut self.connections[index];
            if connection.waiting.len() >= self.most_waiting {
                self.window.counts.missed += 1;
                continue;
            }
            connection.waiting.push_back(Arrival { intended_ns, noticed_ns: now_ns });
            self.outstanding += 1;
            if !connection.ready {
                connection.ready = true;
                self.ready.push(index);
            }
        }
    }

    /// Sends all that the connection may have in flight, in one write.
    fn send(&mut self, index: usize) {
        let now_ns = monotonic_ns();
        let open_loop = self.arriving.is_some();
        let connection = &mut self.connections[index];
        connection.ready = false;
        if connection.line.is_none() || !connection.unsent.is_empty() {
            return;
        }
        self.output.clear();
        while !connection.flight.is_full() {
            let mut pending = if let Some(pending) = connection.continuing.pop_front() {
                pending
            } else if open_loop {
                let Some(arrival) = connection.waiting.pop_front() else { break };
                Pending {
                    intended_ns: arrival.intended_ns,
                    noticed_ns: arrival.noticed_ns,
                    sent_ns: now_ns,
                    operation: self.plan.workload.draw(&mut connection.operations),
                    ..Pending::default()
                }
            } else {
                if now_ns >= self.timeline.end_ns {
                    break;
                }
                if now_ns >= self.timeline.mark_ns {
                    if connection.budget == 0 {
                        break;
                    }
                    connection.budget -= 1;
                    self.budget = self.budget.saturating_sub(1);
                }
                self.outstanding += 1;
                Pending {
                    intended_ns: now_ns,
                    noticed_ns: now_ns,
                    sent_ns: now_ns,
                    operation: self.plan.workload.draw(&mut connection.operations),
                    ..Pending::default()
                }
            };
            self.values.clear();
            let request = self.plan.workload.request(&mut pending.operation, &mut self.values);
            pending.expect = request.expect;
            pending.last = request.last;
            pending.step_sent_ns = now_ns;
            let slot = connection.flight.next_slot();
            if let Some(line) = &mut connection.line {
                line.protocol.encode(request.statement, &self.values, slot, &mut self.output);
            }
            connection.flight.put(pending);
            self.window.counts.requests += 1;
        }
        if !self.output.is_empty() {
            self.write(index);
        }
    }

    fn write(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(line) = &connection.line else { return };
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let taken = match rustix::net::send(&line.socket, &self.output, flags) {
            Ok(taken) => taken,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return self.lose(index, &Fault::from(std::io::Error::from(error))),
        };
        self.window.counts.bytes_sent += taken as u64;
        if taken < self.output.len() {
            connection.unsent.extend_from_slice(&self.output[taken..]);
            self.watch_again(index);
        }
    }

    /// Sends what the socket did not take before.
    fn flush(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(line) = &connection.line else { return };
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(&line.socket, &connection.unsent, flags) {
            Ok(taken) => {
                self.window.counts.bytes_sent += taken as u64;
                connection.unsent.drain(..taken);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return self.lose(index, &Fault::from(std::io::Error::from(error))),
        }
        if connection.unsent.is_empty() {
            self.watch_again(index);
            self.make_ready(index);
        }
    }

    /// Reads all that is there; `to_end`: until the connection says that nothing more comes.
    fn receive(&mut self, index: usize, to_end: bool) {
        loop {
            let Some(line) = &self.connections[index].line else { return };
            self.reads = self.reads.wrapping_add(1);
            let share = self.plan.receive_share;
            let read = if share > 0 && self.reads.is_multiple_of(share) {
                sys::receive_stamped(&line.socket, &mut self.input)
            } else {
                rustix::net::recv(&line.socket, &mut *self.input, RecvFlags::DONTWAIT)
                    .map(|(count, _)| (count, None))
                    .map_err(std::io::Error::from)
            };
            match read {
                Ok((0, _)) => return self.lose(index, &Fault::Closed),
                Ok((count, received_ns)) => {
                    let read_ns = monotonic_ns();
                    let unread_ns = received_ns.map(|at_ns| realtime_ns().saturating_sub(at_ns));
                    self.window.counts.bytes_received += count as u64;
                    if let Err(reason) = self.take_replies(index, count, read_ns, unread_ns) {
                        let fault = Fault::Malformed { protocol: P::NAME, reason };
                        return self.lose(index, &fault);
                    }
                    if count < self.input.len() && !to_end {
                        return;
                    }
                }
                Err(error) => match error.kind() {
                    std::io::ErrorKind::WouldBlock => return,
                    std::io::ErrorKind::Interrupted => {}
                    _ => return self.lose(index, &Fault::from(error)),
                },
            }
        }
    }

    /// Takes the replies from the first `count` bytes of the input, and what was left from before.
    fn take_replies(
        &mut self,
        index: usize,
        count: usize,
        read_ns: u64,
        unread_ns: Option<u64>,
    ) -> Result<(), &'static str> {
        let mut rest = std::mem::take(&mut self.connections[index].rest);
        let carried = !rest.is_empty();
        if carried {
            rest.extend_from_slice(&self.input[..count]);
        }
        let mut at = 0;
        loop {
            let bytes = if carried { &rest[at..] } else { &self.input[at..count] };
            let connection = &mut self.connections[index];
            let Some(line) = &mut connection.line else { return Ok(()) };
            let decoded = line.protocol.decode(bytes)?;
            let whole = decoded.consumed == bytes.len();
            at += decoded.consumed;
            let Some(reply) = decoded.reply else { break };
            let pending =
                connection.flight.take(reply.slot).ok_or("a reply that nobody asked for")?;
            // The kernel's time is that of the last bytes.
            self.settle(index, pending, &reply, read_ns, unread_ns.filter(|_| whole));
        }
        if carried {
            rest.drain(..at);
        } else {
            rest.extend_from_slice(&self.input[at..count]);
        }
        if rest.len() > REST_LIMIT {
            return Err("a piece without an end");
        }
        self.connections[index].rest = rest;
        self.make_ready(index);
        Ok(())
    }

    /// A reply to one request: its operation goes on or ends.
    fn settle(
        &mut self,
        index: usize,
        mut pending: Pending,
        reply: &Reply,
        read_ns: u64,
        unread_ns: Option<u64>,
    ) {
        let kind = pending.operation.kind;
        let outcome = Outcome::of(reply, &pending.expect);
        if pending.outcome == Outcome::Right {
            pending.outcome = outcome;
        }
        let in_warm_up = pending.intended_ns < self.timeline.mark_ns;
        let counts = !in_warm_up || self.span.phase == Phase::WarmUp;
        let connection = &mut self.connections[index];
        if let (Outcome::Error(code), Some(line), true) = (outcome, &connection.line, counts) {
            self.window.error(kind, code, line.protocol.message());
        }
        if !pending.last {
            connection.continuing.push_back(pending);
            return;
        }
        self.outstanding -= 1;
        if !counts {
            self.window.counts.late_warm_up += 1;
            return;
        }
        let latency_ns = read_ns.saturating_sub(pending.intended_ns);
        if self.arriving.is_none() {
            self.window.end(kind, pending.outcome, latency_ns, None);
        } else {
            let service_ns = read_ns.saturating_sub(pending.sent_ns);
            self.window.end(kind, pending.outcome, latency_ns, Some(service_ns));
            self.window.lag.saturating_record(pending.noticed_ns - pending.intended_ns);
            self.window.waiting.saturating_record(pending.sent_ns - pending.noticed_ns);
        }
        if let Some(unread_ns) = unread_ns {
            let service_ns = read_ns.saturating_sub(pending.sent_ns);
            let unread_ns = unread_ns.min(service_ns);
            self.window.parts(&Parts {
                lag_ns: pending.noticed_ns - pending.intended_ns,
                waiting_ns: pending.sent_ns - pending.noticed_ns,
                server_ns: service_ns - unread_ns,
                unread_ns,
            });
        }
    }

    /// Closes a connection that is of no more use, and has it opened again.
    fn lose(&mut self, index: usize, fault: &Fault) {
        let connection = &mut self.connections[index];
        connection.line = None; // closing it takes it from epoll, too
        connection.rest.clear();
        connection.unsent.clear();
        let begun = connection.flight.drain().chain(connection.continuing.drain(..));
        for pending in begun {
            self.window.lost(pending.operation.kind);
            self.outstanding -= 1;
        }
        self.window.counts.disconnects += 1;
        let sentence = format!("{}: {fault}", self.plan.address);
        self.window.error(OF_CONNECTIONS, Label::new(fault.word().as_bytes()), &sentence);
        let _ = self.channels.notices.send(Notice::Lost(sentence.clone()));
        if fault.passes() {
            let _ = self.channels.lost.send(index);
        } else {
            self.shared.stop(sentence);
        }
    }

    fn take_reopened(&mut self) {
        while let Ok(reopened) = self.channels.found.try_recv() {
            match reopened.line {
                Ok(line) => {
                    self.window.counts.reconnects += 1;
                    self.window.connects.saturating_record(line.took.as_nanos() as u64);
                    self.connections[reopened.connection].line = Some(line);
                    match self.watch(reopened.connection) {
                        Ok(()) => self.make_ready(reopened.connection),
                        Err(error) => self.lose(reopened.connection, &Fault::Io(error)),
                    }
                }
                Err(fault) => self.shared.stop(format!("{}: {fault}", self.plan.address)),
            }
        }
    }

    fn watch(&self, index: usize) -> std::io::Result<()> {
        match &self.connections[index].line {
            Some(line) => {
                let data = EventData::new_u64(index as u64);
                Ok(epoll::add(&self.epoll, &line.socket, data, interest(false))?)
            }
            None => Ok(()),
        }
    }

    /// The same with or without an interest in room for sending, as there is something to send.
    fn watch_again(&mut self, index: usize) {
        let connection = &self.connections[index];
        let Some(line) = &connection.line else { return };
        let data = EventData::new_u64(index as u64);
        let wanted = interest(!connection.unsent.is_empty());
        if let Err(error) = epoll::modify(&self.epoll, &line.socket, data, wanted) {
            self.lose(index, &Fault::from(std::io::Error::from(error)));
        }
    }

    /// Looks for replies that are overdue, once a heartbeat.
    fn check(&mut self, now_ns: u64) {
        if now_ns - self.last_check_ns < HEARTBEAT_NS {
            return;
        }
        self.last_check_ns = now_ns;
        let limit = self.plan.limits.reply;
        for index in 0..self.connections.len() {
            let oldest_ns = self.connections[index].flight.oldest_sent_ns();
            if oldest_ns.is_some_and(|sent| now_ns.saturating_sub(sent) > limit.as_nanos() as u64) {
                self.lose(index, &Fault::TimedOut(limit.as_secs_f64()));
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

    /// Ends the windows whose time is over.
    fn turn_over(&mut self, now_ns: u64) {
        while now_ns >= self.span.end_ns {
            self.admit(self.span.end_ns - 1);
            let end_ns = self.span.end_ns;
            self.span = self.timeline.after(&self.span);
            self.hand_over(end_ns);
        }
    }

    fn finish(&mut self) {
        self.window.counts.unfinished = self.outstanding as u64;
        self.hand_over(monotonic_ns());
        let _ = self.channels.notices.send(Notice::Done);
    }

    /// Sends the current window off and begins the next one.
    fn hand_over(&mut self, end_ns: u64) {
        let kinds = self.plan.workload.kinds().len();
        let mut fresh = self.channels.spare.try_recv().unwrap_or_else(|_| Window::new(kinds));
        begin(&mut fresh, &self.span);
        let mut full = std::mem::replace(&mut self.window, fresh);
        let usage = self.meter.read();
        full.usage = usage.since(&self.usage);
        full.end_ns = end_ns;
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

fn interest(in_room: bool) -> EventFlags {
    let reading = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if in_room { reading | EventFlags::OUT } else { reading }
}

fn heartbeat() -> std::io::Result<OwnedFd> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let every = Timespec { tv_sec: 0, tv_nsec: HEARTBEAT_NS as i64 };
    let setting = Itimerspec { it_interval: every, it_value: every };
    timerfd_settime(timer.as_fd(), TimerfdTimerFlags::empty(), &setting)?;
    Ok(timer)
}

fn sleep_until(at_ns: u64) {
    let left_ns = at_ns.saturating_sub(monotonic_ns());
    std::thread::sleep(std::time::Duration::from_nanos(left_ns));
}
