//! Dealing of arrivals: each goes to the first connection with room for it, so that one that is stuck delays only what it
//! has.

use super::super::connection::{Arrival, can_send};
use super::Worker;
use crate::protocol::Protocol;

impl<P: Protocol> Worker<'_, P> {
    /// Takes the next connection with room for an arrival from their queue.
    fn next_free(&mut self) -> Option<usize> {
        while let Some(index) = self.free.pop_front() {
            let connection = &mut self.connections[index];
            connection.offered = false;
            let routes = &self.routes[index * self.nodes..(index + 1) * self.nodes];
            if connection.has_room() && can_send(routes) {
                return Some(index);
            }
        }
        None
    }

    fn give(&mut self, index: usize, arrival: Arrival) {
        let connection = &mut self.connections[index];
        connection.given.push_back(arrival);
        if connection.has_room() {
            connection.offered = true;
            self.free.push_back(index);
        }
        if !connection.ready {
            connection.ready = true;
            self.ready.push(index);
        }
    }

    /// Gives arrivals that are due by `due_ns` to connections with room, in turn, after those that wait.
    pub(super) fn admit(&mut self, due_ns: u64, now_ns: u64) {
        while !self.waiting.is_empty()
            && let Some(index) = self.next_free()
        {
            if let Some(arrival) = self.waiting.pop_front() {
                self.give(index, arrival);
            }
        }
        let Some(mut arriving) = self.arriving.take() else { return };
        while let Some(intended_ns) = arriving.next_ns().filter(|&next_ns| next_ns <= due_ns) {
            let kind = arriving.next_kind();
            arriving.advance();
            if intended_ns >= self.timeline.mark_ns {
                if self.budget == 0 {
                    break;
                }
                self.budget -= 1;
            }
            self.window.counts.scheduled += 1;
            let arrival = Arrival { intended_ns, noticed_ns: now_ns, kind };
            if let Some(index) = self.next_free() {
                self.give(index, arrival);
            } else if self.waiting.len() < self.most_waiting {
                self.waiting.push_back(arrival);
            } else {
                self.window.counts.missed += 1;
                continue;
            }
            self.outstanding += 1;
        }
        self.arriving = Some(arriving);
    }
}
