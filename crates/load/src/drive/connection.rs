//! One connection of the plan. It has one socket, or one to each node of a cluster, and outlives them.

use std::collections::VecDeque;

use super::connect::Line;
use super::flight::{Flight, Pending};
use crate::workload::Stream;

/// A scheduled request that could not be sent yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) intended_ns: u64,
    pub(super) noticed_ns: u64,
    /// `None`: the kind is drawn.
    pub(super) kind: Option<u8>,
}

pub(super) struct Connection {
    pub(super) operations: Stream,
    /// Operations that may still be started, if their number ends the run.
    pub(super) budget: u64,
    pub(super) waiting: VecDeque<Arrival>,
    /// Operations whose next request can be sent.
    pub(super) continuing: VecDeque<Pending>,
    pub(super) flight: Flight,
    /// Counter by which requests go in turn to the nodes that have their row.
    pub(super) turn: usize,
    /// Whether it is in the list of connections with something to send.
    pub(super) ready: bool,
}

impl Connection {
    /// `ordered`: replies arrive in the order of their requests.
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

    /// Node of the next request, of `nodes` nodes; `replicas` have its row.
    pub(super) fn node(&mut self, replicas: &[u16], nodes: usize) -> u16 {
        self.turn = self.turn.wrapping_add(1);
        let any = |nodes: usize| (self.turn % nodes) as u16;
        if replicas.is_empty() { any(nodes) } else { replicas[usize::from(any(replicas.len()))] }
    }
}

/// Its socket to one node.
pub(super) struct Route<P> {
    /// `None` while it is being reopened.
    pub(super) line: Option<Line<P>>,
    /// Received bytes that are not a whole piece yet.
    pub(super) rest: Vec<u8>,
    /// Bytes that the socket has not accepted yet.
    pub(super) unsent: Vec<u8>,
}

impl<P> Route<P> {
    pub(super) fn new(line: Line<P>) -> Self {
        Self { line: Some(line), rest: Vec::new(), unsent: Vec::new() }
    }

    /// Whether requests can be sent.
    pub(super) fn is_clear(&self) -> bool {
        self.line.is_some() && self.unsent.is_empty()
    }
}
