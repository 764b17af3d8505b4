//! Losing, reopening and watching of connections.

use rustix::event::epoll::{self, EventData, EventFlags};

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
        way.rest.clear();
        way.unsent.clear();
        let mut begun = connection.flight.drain(node as u16);
        // In a cluster the next step of an operation can go to another node.
        if self.nodes == 1 {
            begun.extend(connection.continuing.drain(..));
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

    pub(super) fn take_reopened(&mut self) {
        while let Ok(reopened) = self.channels.found.try_recv() {
            self.reopening.add(&reopened.usage);
            match reopened.line {
                Ok(line) => {
                    self.window.counts.reconnects += 1;
                    self.window.connects.saturating_record(line.took.as_nanos() as u64);
                    self.routes[reopened.route].line = Some(line);
                    self.connections[reopened.route / self.nodes].freed_ns = monotonic_ns();
                    match self.watch(reopened.route) {
                        Ok(()) => self.make_ready(reopened.route / self.nodes),
                        Err(error) => self.shared.fail(error),
                    }
                }
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
