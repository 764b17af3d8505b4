//! Connections that are lost, opened again, and watched.

use rustix::event::epoll::{self, EventData, EventFlags};

use super::super::shared::Notice;
use super::{OF_CONNECTIONS, Worker};
use crate::error::Fault;
use crate::protocol::{Label, Protocol};

impl<P: Protocol> Worker<'_, P> {
    /// Closes a connection that is of no more use, and has it opened again.
    pub(super) fn lose(&mut self, index: usize, fault: &Fault) {
        let connection = &mut self.connections[index];
        let line = connection.line.take(); // closing it takes it from epoll, too
        let said = line.as_ref().and_then(|line| line.protocol.farewell()).map(str::to_owned);
        drop(line);
        let dismissed = said.filter(|_| matches!(fault, Fault::Closed | Fault::Reset));
        let dismissed = dismissed.map(Fault::Dismissed);
        let fault = dismissed.as_ref().unwrap_or(fault);
        connection.rest.clear();
        connection.unsent.clear();
        let begun = connection.flight.drain().chain(connection.continuing.drain(..));
        for pending in begun {
            self.window.lost(pending.operation.kind);
            self.plan.workload.ended(&pending.operation);
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

    pub(super) fn take_reopened(&mut self) {
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

    pub(super) fn watch(&self, index: usize) -> std::io::Result<()> {
        match &self.connections[index].line {
            Some(line) => {
                let data = EventData::new_u64(index as u64);
                Ok(epoll::add(&self.epoll, &line.socket, data, interest(false))?)
            }
            None => Ok(()),
        }
    }

    /// The same with or without an interest in room for sending, as there is something to send.
    pub(super) fn watch_again(&mut self, index: usize) {
        let connection = &self.connections[index];
        let Some(line) = &connection.line else { return };
        let data = EventData::new_u64(index as u64);
        let wanted = interest(!connection.unsent.is_empty());
        if let Err(error) = epoll::modify(&self.epoll, &line.socket, data, wanted) {
            self.lose(index, &Fault::from(std::io::Error::from(error)));
        }
    }
}

fn interest(in_room: bool) -> EventFlags {
    let reading = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if in_room { reading | EventFlags::OUT } else { reading }
}
