//! Sending of requests and receiving of replies.

use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::super::connection::can_send;
use super::super::flight::Pending;
use super::{Reading, Worker, flow};
use crate::clock::{monotonic_ns, realtime_ns};
use crate::error::Fault;
use crate::measure::Phase;
use crate::measure::window::Outcome;
use crate::protocol::{Protocol, REST_LIMIT, Reply};
use crate::sys;
use crate::workload::Next;

impl<P: Protocol> Worker<'_, P> {
    /// Sends as many requests as the connection may have in flight, in one write to each node.
    pub(super) fn send(&mut self, index: usize) {
        let now_ns = monotonic_ns();
        let open_loop = self.arriving.is_some();
        let first = index * self.nodes;
        let routes = &mut self.routes[first..first + self.nodes];
        let connection = &mut self.connections[index];
        connection.ready = false;
        if !can_send(routes) || connection.pause_end_ns > 0 {
            return connection.give_back(&mut self.waiting);
        }
        self.outputs.iter_mut().for_each(Vec::clear);
        let has_flow = self.plan.workload.has_flow();
        while !connection.flight.is_full() {
            let mut is_new = true;
            let mut pending = if let Some(pending) = connection.continuing.pop_front() {
                is_new = false;
                pending
            } else if connection.is_worn() {
                break;
            } else if open_loop {
                let Some(arrival) = connection.given.pop_front() else { break };
                Pending {
                    intended_ns: arrival.intended_ns,
                    lag_ns: arrival.lag_ns(connection.freed_ns, now_ns),
                    sent_ns: now_ns,
                    operation: match arrival.kind {
                        None => self.plan.workload.draw(&mut connection.operations),
                        Some(kind) => self.plan.workload.draw_of(kind, &mut connection.operations),
                    },
                    ..Pending::default()
                }
            } else {
                let may_start = self.taking.as_ref().is_none_or(|taking| taking.may_start(now_ns));
                if now_ns >= self.timeline.end_ns || !may_start {
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
                    sent_ns: now_ns,
                    operation: self.plan.workload.draw(&mut connection.operations),
                    ..Pending::default()
                }
            };
            let workload = &*self.plan.workload;
            self.values.clear();
            let request = if has_flow {
                let memory = &mut connection.memory;
                if is_new {
                    let next = flow::begin(workload, memory, &mut pending);
                    if next != Next::Request {
                        return self.go_on(index, pending, next, now_ns); // nothing else is under way
                    }
                }
                workload.request_of(&mut pending.operation, memory, &mut self.values)
            } else {
                workload.request(&mut pending.operation, &mut self.values)
            };
            pending.expect = request.expect;
            pending.last = request.last;
            pending.step(now_ns);
            if self.nodes > 1 {
                let mut up = routes.iter_mut().filter_map(|route| route.line.as_mut());
                let replicas = match (self.cluster, up.next()) {
                    (Some(cluster), Some(line)) => {
                        line.protocol.replicas(request.statement, &self.values, cluster)
                    }
                    _ => &[], // nobody knows: each node in turn
                };
                pending.node = connection.node(replicas, routes).unwrap_or_default();
            }
            let slot = connection.flight.next_slot();
            let node = usize::from(pending.node);
            if let Some(line) = &mut routes[node].line {
                let output = &mut self.outputs[node];
                line.protocol.encode(request.statement, &self.values, slot, output);
            }
            connection.flight.put(pending);
            connection.sent += 1;
            self.window.counts.requests += u64::from(self.span.phase != Phase::Drain);
        }
        if connection.is_worn() {
            connection.give_back(&mut self.waiting);
        }
        for node in 0..self.nodes {
            if !self.outputs[node].is_empty() {
                std::mem::swap(&mut self.output, &mut self.outputs[node]);
                self.seal(first + node);
                self.write_behind(first + node);
            }
        }
    }

    pub(super) fn write(&mut self, route: usize) {
        let way = &mut self.routes[route];
        let Some(line) = &way.line else { return };
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let taken = match rustix::net::send(&line.socket, &self.output, flags) {
            Ok(taken) => taken,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return self.lose(route, &Fault::from(std::io::Error::from(error))),
        };
        self.window.counts.bytes_sent += taken as u64;
        if taken < self.output.len() {
            way.unsent.extend_from_slice(&self.output[taken..]);
            self.watch_again(route);
        }
    }

    /// Writes the output, after anything that the socket did not accept before.
    pub(super) fn write_behind(&mut self, route: usize) {
        let way = &mut self.routes[route];
        if way.unsent.is_empty() {
            self.write(route);
        } else {
            way.unsent.extend_from_slice(&self.output);
        }
    }

    /// Sends what the socket did not accept before.
    pub(super) fn flush(&mut self, route: usize) {
        let way = &mut self.routes[route];
        let Some(line) = &way.line else { return };
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(&line.socket, &way.unsent, flags) {
            Ok(taken) => {
                self.window.counts.bytes_sent += taken as u64;
                way.unsent.drain(..taken);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return self.lose(route, &Fault::from(std::io::Error::from(error))),
        }
        if way.unsent.is_empty() {
            self.connections[route / self.nodes].freed_ns = monotonic_ns();
            self.watch_again(route);
            self.make_ready(route / self.nodes);
        }
    }

    pub(super) fn receive(&mut self, route: usize, reading: Reading) {
        let mut wait = reading == Reading::Waiting;
        loop {
            let Some(line) = &self.routes[route].line else { return };
            self.reads = self.reads.wrapping_add(1);
            let share = self.plan.receive_share;
            let sealed = line.session.is_some();
            let input = if sealed { &mut self.sealed_input } else { &mut self.input };
            let room = input.len();
            let read = if share > 0 && self.reads.is_multiple_of(share) {
                sys::receive_stamped(&line.socket, input, wait)
            } else {
                let flags = if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
                rustix::net::recv(&line.socket, &mut **input, flags)
                    .map(|(count, _)| (count, None))
                    .map_err(std::io::Error::from)
            };
            wait = false;
            match read {
                Ok((0, _)) => return self.lose(route, &Fault::Closed),
                Ok((count, received_ns)) => {
                    let read_ns = monotonic_ns();
                    let unread_ns = received_ns.map(|at_ns| realtime_ns().saturating_sub(at_ns));
                    self.turn_over(read_ns); // a reply counts in the window in which it was read
                    self.window.counts.bytes_received += count as u64;
                    let taken = if sealed {
                        self.unseal(route, count, read_ns, unread_ns)
                    } else {
                        self.take_replies(route, count, read_ns, unread_ns)
                    };
                    if let Err(fault) = taken {
                        return self.lose(route, &fault);
                    }
                    if count < room && reading != Reading::ToEnd {
                        return;
                    }
                    // A server that sends faster than this reads would keep it here for ever.
                    self.check(read_ns);
                    if self.is_finished(read_ns) {
                        return;
                    }
                }
                Err(error) => match error.kind() {
                    std::io::ErrorKind::WouldBlock => return,
                    std::io::ErrorKind::Interrupted => {}
                    _ => return self.lose(route, &Fault::from(error)),
                },
            }
        }
    }

    /// Decodes the replies in the rest from before and the first `count` bytes of the input.
    pub(super) fn take_replies(
        &mut self,
        route: usize,
        count: usize,
        read_ns: u64,
        unread_ns: Option<u64>,
    ) -> Result<(), Fault> {
        let malformed = |reason| Fault::Malformed { protocol: P::NAME, reason };
        let mut rest = std::mem::take(&mut self.routes[route].rest);
        let carried = !rest.is_empty();
        if carried {
            rest.extend_from_slice(&self.input[..count]);
        }
        let mut at = 0;
        loop {
            let bytes = if carried { &rest[at..] } else { &self.input[at..count] };
            let Some(line) = &mut self.routes[route].line else { return Ok(()) };
            let decoded = line.protocol.decode(bytes).map_err(malformed)?;
            at += decoded.consumed;
            let Some(reply) = decoded.reply else { break };
            let node = (route % self.nodes) as u16;
            let pending = self.connections[route / self.nodes].flight.take(reply.slot, node);
            let pending = pending.ok_or_else(|| malformed("a reply that nobody asked for"))?;
            // The kernel's time is the one of the last bytes, so for earlier replies it is a lower bound.
            self.settle(route, pending, &reply, read_ns, unread_ns);
        }
        if carried {
            rest.drain(..at);
        } else {
            rest.extend_from_slice(&self.input[at..count]);
        }
        if rest.len() > REST_LIMIT {
            return Err(malformed("a piece without an end"));
        }
        self.routes[route].rest = rest;
        self.connections[route / self.nodes].freed_ns = read_ns;
        self.follow_up(route);
        self.make_ready(route / self.nodes);
        Ok(())
    }

    /// Sends requests that the replies so far need, such as for the next page.
    fn follow_up(&mut self, route: usize) {
        let Some(line) = &mut self.routes[route].line else { return };
        self.output.clear();
        line.protocol.follow_up(&mut self.output);
        if self.output.is_empty() {
            return;
        }
        self.window.counts.requests += u64::from(self.span.phase != Phase::Drain);
        self.seal(route);
        self.write_behind(route);
    }

    /// Handles a reply to one request: its operation continues or ends.
    pub(super) fn settle(
        &mut self,
        route: usize,
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
        let counts = self.counts(&pending);
        let connection = &mut self.connections[route / self.nodes];
        let line = &self.routes[route].line;
        if let (Outcome::Error(code), Some(line), true) = (outcome, line, counts) {
            self.window.error(kind, code, line.protocol.message());
        }
        if self.plan.workload.has_flow() {
            pending.step_read_ns = read_ns;
            let next = self.answer(route, &mut pending, reply.status);
            return self.go_on(route / self.nodes, pending, next, read_ns);
        }
        if !pending.last {
            if matches!(outcome, Outcome::Error(_)) {
                self.plan.workload.failed(&mut pending.operation);
            }
            pending.step_read_ns = read_ns;
            connection.continuing.push_back(pending);
            return;
        }
        let outcome = pending.outcome;
        let counts = self.conclude(&pending, outcome, read_ns);
        if let (Some(unread_ns), Outcome::Right, true) = (unread_ns, outcome, counts) {
            self.window.parts(&pending.parts(read_ns, unread_ns));
        }
        self.think(route / self.nodes, &pending, read_ns, Duration::ZERO);
    }

    /// Whether an operation counts in the current window: those of the warm-up do not count after it.
    fn counts(&self, pending: &Pending) -> bool {
        pending.intended_ns >= self.timeline.mark_ns || self.span.phase == Phase::WarmUp
    }

    /// Counts an operation that ended; returns whether it counts in the phase, and in its turn if there are turns.
    pub(super) fn conclude(&mut self, pending: &Pending, outcome: Outcome, at_ns: u64) -> bool {
        self.outstanding -= 1;
        self.plan.workload.ended(&pending.operation);
        let (right, in_phase) = (outcome == Outcome::Right, self.counts(pending));
        let in_turn = self
            .taking
            .as_mut()
            .map(|taking| in_phase && taking.ended(pending.intended_ns, at_ns, right));
        if right && in_turn.unwrap_or(true) && self.span.phase != Phase::Drain {
            self.window.counts.completed += 1;
        }
        if !in_phase {
            self.window.counts.late_warm_up += 1;
            return false;
        }
        let measured = pending.intended_ns >= self.timeline.mark_ns;
        if right && measured && in_turn == Some(false) {
            self.window.counts.settling += 1;
            return false;
        }
        let open_loop = self.arriving.is_some();
        let latency_ns = at_ns.saturating_sub(pending.intended_ns);
        let service_ns = open_loop.then(|| at_ns.saturating_sub(pending.sent_ns));
        self.window.end(pending.operation.kind, outcome, latency_ns, service_ns);
        if open_loop && outcome.has_time() {
            self.window.lag.saturating_record(pending.lag_ns);
            self.window.waiting.saturating_record(pending.waiting_ns());
        }
        true
    }
}
