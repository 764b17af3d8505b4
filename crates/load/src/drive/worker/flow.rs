//! Operations that decide after each reply how they go on, pauses, and users who think.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::super::flight::Pending;
use super::Worker;
use crate::clock::monotonic_ns;
use crate::measure::window::Outcome;
use crate::protocol::{Label, Protocol, Status};
use crate::workload::{Answer, Memory, Next, Workload};

/// When which connection may send again; the earliest first.
pub(super) type Pauses = BinaryHeap<Reverse<(u64, usize)>>;

/// Code of errors that a script itself makes.
const OF_SCRIPT: &[u8] = b"script";

/// Asks a new operation how it begins.
pub(super) fn begin(workload: &dyn Workload, memory: &mut Memory, pending: &mut Pending) -> Next {
    memory.data.clear();
    (memory.at, memory.retries) = (0, 0);
    workload.next(&mut pending.operation, memory, None)
}

impl<P: Protocol> Worker<'_, P> {
    /// Asks an operation how it goes on after a reply.
    pub(super) fn answer(&mut self, route: usize, pending: &mut Pending, status: Status) -> Next {
        let line = self.routes[route].line.as_ref();
        let answer = Answer { status, rows: line.and_then(|line| line.protocol.rows()) };
        let memory = &mut self.connections[route / self.nodes].memory;
        self.plan.workload.next(&mut pending.operation, memory, Some(answer))
    }

    /// Does what the operation wants next; `at_ns` is when it said so.
    pub(super) fn go_on(&mut self, index: usize, mut pending: Pending, mut next: Next, at_ns: u64) {
        if next == Next::Again {
            pending.outcome = Outcome::Right;
            pending.operation.step = 0;
            self.window.counts.retries += 1;
            let memory = &mut self.connections[index].memory;
            *memory = Memory { retries: memory.retries + 1, ..Memory::default() };
            next = self.plan.workload.next(&mut pending.operation, memory, None);
        }
        match next {
            Next::Request => self.connections[index].continuing.push_back(pending),
            Next::Pause(time) => {
                self.connections[index].paused = Some(pending);
                self.pause(index, at_ns, time);
            }
            Next::End => self.end(index, &pending, pending.outcome, at_ns),
            Next::Fail(_) | Next::Again => {
                let code = Label::new(OF_SCRIPT);
                let why = if let Next::Fail(why) = next { why } else { "it never begins" };
                self.window.error(pending.operation.kind, code, why);
                self.end(index, &pending, Outcome::Error(code), at_ns);
            }
        }
    }

    fn end(&mut self, index: usize, pending: &Pending, outcome: Outcome, at_ns: u64) {
        self.conclude(pending, outcome, at_ns);
        // An operation without a request would otherwise begin again without end.
        let least = Duration::from_nanos(u64::from(pending.step_sent_ns == 0));
        self.think(index, pending, at_ns, least);
    }

    /// In a closed loop, lets the connection wait after an operation.
    pub(super) fn think(&mut self, index: usize, of: &Pending, at_ns: u64, least: Duration) {
        if self.arriving.is_none() {
            let time = self.plan.workload.think(&of.operation).max(least);
            if !time.is_zero() {
                self.pause(index, at_ns, time);
            }
        }
    }

    fn pause(&mut self, index: usize, from_ns: u64, time: Duration) {
        let end_ns = from_ns.saturating_add(time.as_nanos() as u64).max(1);
        self.connections[index].pause_end_ns = end_ns;
        self.pauses.push(Reverse((end_ns, index)));
    }

    /// End of the first pause.
    pub(super) fn pause_end_ns(&self) -> Option<u64> {
        self.pauses.peek().map(|Reverse((end_ns, _))| *end_ns)
    }

    /// Lets connections whose pauses are over go on.
    pub(super) fn resume(&mut self, now_ns: u64) {
        while self.pause_end_ns().is_some_and(|end_ns| end_ns <= now_ns) {
            let Some(Reverse((end_ns, index))) = self.pauses.pop() else { return };
            let connection = &mut self.connections[index];
            if connection.pause_end_ns != end_ns {
                continue; // it was lost meanwhile
            }
            connection.pause_end_ns = 0;
            if let Some(mut pending) = connection.paused.take() {
                let memory = &mut connection.memory;
                let next = self.plan.workload.next(&mut pending.operation, memory, None);
                self.go_on(index, pending, next, monotonic_ns());
            }
            self.make_ready(index);
        }
    }
}
