//! Losing, reopening and watching of connections.

use std::collections::VecDeque;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::super::flight::Pending;
use super::super::shared::Notice;
use super::{OF_CONNECTIONS, Worker};
use crate::error::Fault;
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
        let (lost, rest): (VecDeque<Pending>, VecDeque<Pending>) =
            std::mem::take(&mut connection.continuing)
                .into_iter()
                .partition(|pending| usize::from(pending.node) == node);
        begun.extend(lost);
        connection.continuing = rest;
        for pending in begun {
            self.window.lost(pending.operation.kind);
            self.plan.workload.ended(&pending.operation);
            self.outstanding -= 1;
        }
        self.window.counts.disconnects += 1;
        let sentence = format!("{}: {fault}", self.plan.address_of(node));
        self.window.error(OF_CONNECTIONS, Label::new(fault.word().as_bytes()), &sentence);
        let _ = self.channels.notices.send(Notice::Lost(sentence.clone()));
        if fault.passes() {
            let _ = self.channels.lost.send(route);
        } else {
            self.shared.stop(sentence);
        }
    }

    pub(super) fn take_reopened(&mut self) {
        while let Ok(reopened) = self.channels.found.try_recv() {
            match reopened.line {
                Ok(line) => {
                    self.window.counts.reconnects += 1;
                    self.window.connects.saturating_record(line.took.as_nanos() as u64);
                    self.routes[reopened.route].line = Some(line);
                    match self.watch(reopened.route) {
                        Ok(()) => self.make_ready(reopened.route / self.nodes),
                        Err(error) => self.lose(reopened.route, &Fault::Io(error)),
                    }
                }
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
            self.lose(route, &Fault::from(std::io::Error::from(error)));
        }
    }
}

fn interest(in_room: bool) -> EventFlags {
    let reading = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if in_room { reading | EventFlags::OUT } else { reading }
}
