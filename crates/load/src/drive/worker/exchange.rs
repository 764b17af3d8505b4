//! Sending of requests and receiving of replies.

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::super::connection::Route;
use super::super::flight::Pending;
use super::{Reading, Worker};
use crate::clock::{monotonic_ns, realtime_ns};
use crate::error::Fault;
use crate::measure::window::Outcome;
use crate::measure::{Parts, Phase};
use crate::protocol::{Protocol, REST_LIMIT, Reply};
use crate::sys;

impl<P: Protocol> Worker<'_, P> {
    /// Sends as many requests as the connection may have in flight, in one write to each node.
    pub(super) fn send(&mut self, index: usize) {
        let now_ns = monotonic_ns();
        let open_loop = self.arriving.is_some();
        let first = index * self.nodes;
        let routes = &mut self.routes[first..first + self.nodes];
        let connection = &mut self.connections[index];
        connection.ready = false;
        if !routes.iter().all(Route::is_clear) {
            return;
        }
        self.outputs.iter_mut().for_each(Vec::clear);
        while !connection.flight.is_full() {
            let mut pending = if let Some(pending) = connection.continuing.pop_front() {
                pending
            } else if open_loop {
                let Some(arrival) = connection.waiting.pop_front() else { break };
                Pending {
                    intended_ns: arrival.intended_ns,
                    noticed_ns: arrival.noticed_ns,
                    sent_ns: now_ns,
                    operation: match arrival.kind {
                        None => self.plan.workload.draw(&mut connection.operations),
                        Some(kind) => self.plan.workload.draw_of(kind, &mut connection.operations),
                    },
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
            if self.nodes > 1 {
                let replicas = match (self.cluster, &mut routes[0].line) {
                    (Some(cluster), Some(line)) => {
                        line.protocol.replicas(request.statement, &self.values, cluster)
                    }
                    _ => &[], // nobody knows: each node in turn
                };
                pending.node = connection.node(replicas, self.nodes);
            }
            let slot = connection.flight.next_slot();
            let node = usize::from(pending.node);
            if let Some(line) = &mut routes[node].line {
                let output = &mut self.outputs[node];
                line.protocol.encode(request.statement, &self.values, slot, output);
            }
            connection.flight.put(pending);
            self.window.counts.requests += 1;
        }
        for node in 0..self.nodes {
            if !self.outputs[node].is_empty() {
                std::mem::swap(&mut self.output, &mut self.outputs[node]);
                self.seal(first + node);
                self.write(first + node);
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
            let whole = decoded.consumed == bytes.len();
            at += decoded.consumed;
            let Some(reply) = decoded.reply else { break };
            let node = (route % self.nodes) as u16;
            let pending = self.connections[route / self.nodes].flight.take(reply.slot, node);
            let pending = pending.ok_or_else(|| malformed("a reply that nobody asked for"))?;
            // The kernel's time is the one of the last bytes.
            self.settle(route, pending, &reply, read_ns, unread_ns.filter(|_| whole));
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
        self.window.counts.requests += 1;
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
        let in_warm_up = pending.intended_ns < self.timeline.mark_ns;
        let counts = !in_warm_up || self.span.phase == Phase::WarmUp;
        let connection = &mut self.connections[route / self.nodes];
        let line = &self.routes[route].line;
        if let (Outcome::Error(code), Some(line), true) = (outcome, line, counts) {
            self.window.error(kind, code, line.protocol.message());
        }
        if !pending.last {
            if matches!(outcome, Outcome::Error(_)) {
                self.plan.workload.failed(&mut pending.operation);
            }
            connection.continuing.push_back(pending);
            return;
        }
        self.outstanding -= 1;
        self.plan.workload.ended(&pending.operation);
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
}
