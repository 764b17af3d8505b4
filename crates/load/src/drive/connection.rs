//! One connection of the plan, which outlives the sockets that it goes through: one, or one to each node of a cluster.

use std::collections::VecDeque;

use super::connect::Line;
use super::flight::{Flight, Pending};
use crate::workload::Stream;

/// A scheduled request that could not yet be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) intended_ns: u64,
    pub(super) noticed_ns: u64,
    /// `None`: it is drawn.
    pub(super) kind: Option<u8>,
}

pub(super) struct Connection {
    pub(super) operations: Stream,
    /// Operations that may still be started, where their number ends the run.
    pub(super) budget: u64,
    pub(super) waiting: VecDeque<Arrival>,
    /// Operations whose next request can be sent.
    pub(super) continuing: VecDeque<Pending>,
    pub(super) flight: Flight,
    /// Requests go to the nodes that have their row in turn.
    pub(super) turn: usize,
    /// It stands in the list of those that have something to send.
    pub(super) ready: bool,
}

impl Connection {
    /// `ordered`: replies come in the order of their requests.
    pub(super) fn new(operations: Stream, depth: u16, ordered: bool, budget: u64) -> Self {
        Self {
            operations,
            budget,
            waiting: VecDeque::new(),
            continuing: VecDeque::new(),
            flight: Flight::new(depth, ordered),
            turn: 0,
            ready: false,
        }
    }

    /// Which of `nodes` the next request goes to, if `replicas` have its row.
    pub(super) fn node(&mut self, replicas: &[u16], nodes: usize) -> u16 {
        self.turn = self.turn.wrapping_add(1);
        let any = |nodes: usize| (self.turn % nodes) as u16;
        if replicas.is_empty() { any(nodes) } else { replicas[usize::from(any(replicas.len()))] }
    }
}

/// Its way to one node.
pub(super) struct Route<P> {
    /// `None` while it is being opened again.
    pub(super) line: Option<Line<P>>,
    /// Received, but not yet a whole piece.
    pub(super) rest: Vec<u8>,
    /// What the socket would not yet take.
    pub(super) unsent: Vec<u8>,
}

impl<P> Route<P> {
    pub(super) fn new(line: Line<P>) -> Self {
        Self { line: Some(line), rest: Vec::new(), unsent: Vec::new() }
    }

    /// Requests can be sent.
    pub(super) fn is_clear(&self) -> bool {
        self.line.is_some() && self.unsent.is_empty()
    }
}
