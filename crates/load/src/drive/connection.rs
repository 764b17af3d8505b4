//! One connection of the plan, which outlives the sockets that it goes through.

use std::collections::VecDeque;

use super::connect::Line;
use super::flight::{Flight, Pending};
use crate::protocol::Protocol;
use crate::workload::Stream;

/// A scheduled request that could not yet be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) intended_ns: u64,
    pub(super) noticed_ns: u64,
    /// `None`: it is drawn.
    pub(super) kind: Option<u8>,
}

pub(super) struct Connection<P> {
    /// `None` while it is being opened again.
    pub(super) line: Option<Line<P>>,
    pub(super) operations: Stream,
    /// Operations that may still be started, where their number ends the run.
    pub(super) budget: u64,
    pub(super) waiting: VecDeque<Arrival>,
    /// Operations whose next request can be sent.
    pub(super) continuing: VecDeque<Pending>,
    pub(super) flight: Flight,
    /// Received, but not yet a whole piece.
    pub(super) rest: Vec<u8>,
    /// What the socket would not yet take.
    pub(super) unsent: Vec<u8>,
    /// It stands in the list of those that have something to send.
    pub(super) ready: bool,
}

impl<P: Protocol> Connection<P> {
    pub(super) fn new(line: Line<P>, operations: Stream, depth: u16, budget: u64) -> Self {
        Self {
            line: Some(line),
            operations,
            budget,
            waiting: VecDeque::new(),
            continuing: VecDeque::new(),
            flight: Flight::new(depth, P::ORDERED),
            rest: Vec::new(),
            unsent: Vec::new(),
            ready: false,
        }
    }
}
