//! Losing, reopening and watching of connections.

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::SendFlags;

use super::super::shared::Notice;
use super::{OF_CONNECTIONS, Worker};
use crate::clock::monotonic_ns;
use crate::error::Fault;
use crate::measure::window::Outcome;
use crate::protocol::{Label, Protocol};

impl<P: Protocol> Worker<'_, P> {
    /// Closes a connection that cannot be used any more, and has it reopened.
    pub(super) fn lose(&mut self, route: usize, fault: &Fault) {
        let (connection, node) = (&mut self.connections[route / self.nodes], route % self.nodes);
        let way = &mut self.routes[route];
        let line = way.line.take(); // closing it takes it from epoll, too
        let said = line.as_ref().and_then(|line| line.protocol.farewell()).map(str::to_owned);
        drop(line);
        let dismissed = said.filter(|_| matches!(fault, Fault::Closed | Fault::Reset));
        let dismissed = dismissed.map(Fault::Dismissed);
        let fault = dismissed.as_ref().unwrap_or(fault);
        way.clear();
        let mut begun = connection.flight.drain(node as u16);
        // In a cluster the next step of an operation can go to another node.
        if self.nodes == 1 {
            begun.extend(connection.continuing.drain(..));
            begun.extend(connection.paused.take());
            connection.pause_end_ns = 0;
            connection.sent = 0;
        }
        let (now_ns, limit_ns) = (monotonic_ns(), self.plan.limits.reply.as_nanos() as u64);
        for pending in begun {
            // Nobody knows when its reply would have come: as late as is waited for, or later.
            let at_ns = now_ns.max(pending.step_sent_ns.saturating_add(limit_ns));
            self.conclude(&pending, Outcome::Lost, at_ns);
        }
        self.window.counts.disconnects += 1;
        let sentence = format!("{}: {fault}", self.plan.address_of(node));
        self.window.error(OF_CONNECTIONS, Label::new(fault.word().as_bytes()), &sentence);
        let _ = self.channels.notices.send(Notice::Lost(sentence.clone()));
        if fault.passes() {
            let _ = self.channels.lost.send(route);
            if self.nodes > 1 {
                self.make_ready(route / self.nodes);
            }
        } else {
            self.shared.stop(sentence);
        }
    }

    /// Closes a connection that has sent as many requests as it may, and has it opened anew. Returns whether it did.
    pub(super) fn renew(&mut self, index: usize) -> bool {
        if !self.connections[index].is_over() {
            return false;
        }
        self.connections[index].sent = 0;
        for route in index * self.nodes..(index + 1) * self.nodes {
            let Some(line) = &mut self.routes[route].line else { continue };
            self.output.clear();
            line.protocol.goodbye(&mut self.output);
            if let Some(session) = &mut line.session {
                session.close();
            }
            self.seal(route);
            let way = &mut self.routes[route];
            let Some(line) = way.line.take() else { continue };
            // Without waiting, as clients do: the server sees the end in any case.
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let _ = rustix::net::send(&line.socket, &self.output, flags);
            way.clear();
            way.renewing = true;
            let _ = self.channels.lost.send(route);
        }
        true
    }

    /// Counts an attempt to connect that failed, if connecting is an operation.
    fn count_attempt(&mut self, route: usize, fault: &Fault) {
        if self.plan.requests_per_connection.is_none() {
            return;
        }
        let label = Label::new(fault.word().as_bytes());
        // Without an answer it counts like a request without one.
        let outcome = match fault {
            Fault::TimedOut(_) => Outcome::Lost,
            _ => Outcome::Error(label),
        };
        self.window.connect.end(outcome, self.plan.limits.connect.as_nanos() as u64, None);
        let sentence = format!("{}: {fault}", self.plan.address_of(route % self.nodes));
        self.window.error(OF_CONNECTIONS, label, &sentence);
    }

    pub(super) fn take_reopened(&mut self) {
        while let Ok(reopened) = self.channels.found.try_recv() {
            self.reopening.add(&reopened.usage);
            match reopened.line {
                Ok(line) => {
                    self.window.connect.end(Outcome::Right, line.log_in.as_nanos() as u64, None);
                    let way = &mut self.routes[reopened.route];
                    let renewed = std::mem::take(&mut way.renewing);
                    self.window.counts.reconnects += u64::from(!renewed);
                    way.line = Some(line);
                    self.connections[reopened.route / self.nodes].freed_ns = monotonic_ns();
                    match self.watch(reopened.route) {
                        Ok(()) => self.make_ready(reopened.route / self.nodes),
                        Err(error) => self.shared.fail(error),
                    }
                }
                Err(fault) if reopened.again => self.count_attempt(reopened.route, &fault),
                Err(Fault::Io(error)) if Fault::is_own_error(&error) => self.shared.fail(error),
                Err(fault) => {
                    let address = self.plan.address_of(reopened.route % self.nodes);
                    self.shared.stop(format!("{address}: {fault}"));
                }
            }
        }
    }

    pub(super) fn watch(&self, route: usize) -> std::io::Result<()> {
        match &self.routes[route].line {
            Some(line) => {
                let data = EventData::new_u64(route as u64);
                Ok(epoll::add(&self.epoll, &line.socket, data, interest(false))?)
            }
            None => Ok(()),
        }
    }

    /// Watches the socket; for room to send, too, if there is something to send.
    pub(super) fn watch_again(&mut self, route: usize) {
        let way = &self.routes[route];
        let Some(line) = &way.line else { return };
        let data = EventData::new_u64(route as u64);
        let wanted = interest(!way.unsent.is_empty());
        if let Err(error) = epoll::modify(&self.epoll, &line.socket, data, wanted) {
            self.shared.fail(error.into());
        }
    }
}

fn interest(in_room: bool) -> EventFlags {
    let reading = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if in_room { reading | EventFlags::OUT } else { reading }
}
