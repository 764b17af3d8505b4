//! One connection of the plan. It has one socket, or one to each node of a cluster, and outlives them.

use std::collections::VecDeque;

use super::connect::Line;
use super::flight::{Flight, Pending};
use crate::workload::{Memory, Stream};

/// A scheduled request that was not sent yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) intended_ns: u64,
    pub(super) noticed_ns: u64,
    /// `None`: the kind is drawn.
    pub(super) kind: Option<u8>,
}

impl Arrival {
    /// How long this program kept it from being sent: until it was noticed, and from when a connection had room.
    pub(super) fn lag_ns(&self, freed_ns: u64, sent_ns: u64) -> u64 {
        let able_ns = self.noticed_ns.max(freed_ns);
        self.noticed_ns - self.intended_ns + sent_ns.saturating_sub(able_ns)
    }
}

pub(super) struct Connection {
    pub(super) operations: Stream,
    /// Operations that may still be started, if their number ends the run.
    pub(super) budget: u64,
    /// Arrivals that it sends next; it had room for each when it was given to it.
    pub(super) given: VecDeque<Arrival>,
    /// Operations whose next request can be sent.
    pub(super) continuing: VecDeque<Pending>,
    pub(super) flight: Flight,
    /// Requests sent since it was opened, and how many may be.
    pub(super) sent: u32,
    most_sent: u32,
    /// Counter by which requests go in turn to the nodes that have their row.
    pub(super) turn: usize,
    /// State of an operation that decides after each reply how it goes on.
    pub(super) memory: Memory,
    /// Operation that pauses.
    pub(super) paused: Option<Pending>,
    /// Until when it sends nothing, as its operation pauses or its user thinks; 0: it may send.
    pub(super) pause_end_ns: u64,
    /// Whether it is in the list of connections with something to send.
    pub(super) ready: bool,
    /// Whether it is in the queue of connections that may take an arrival.
    pub(super) offered: bool,
    /// When it last had room again: the last reply on it was read, or it was opened.
    pub(super) freed_ns: u64,
}

impl Connection {
    /// `ordered`: replies arrive in the order of their requests.
    pub(super) fn new(
        operations: Stream,
        depth: u16,
        most_sent: Option<u32>,
        ordered: bool,
        budget: u64,
    ) -> Self {
        Self {
            operations,
            budget,
            given: VecDeque::new(),
            continuing: VecDeque::new(),
            flight: Flight::new(depth, ordered),
            sent: 0,
            most_sent: most_sent.unwrap_or(u32::MAX),
            turn: 0,
            memory: Memory::default(),
            paused: None,
            pause_end_ns: 0,
            ready: false,
            offered: false,
            freed_ns: 0,
        }
    }

    /// Whether another arrival could be sent at once.
    pub(super) fn has_room(&self) -> bool {
        !self.is_worn()
            && self.pause_end_ns == 0
            && self.flight.len() + self.continuing.len() + self.given.len() < self.flight.depth()
    }

    /// Hands arrivals that it cannot send now back to those of all connections, before all others.
    pub(super) fn give_back(&mut self, waiting: &mut VecDeque<Arrival>) {
        while let Some(arrival) = self.given.pop_back() {
            waiting.push_front(arrival);
        }
    }

    /// Whether it has sent as many requests as it may; operations that have begun still end on it.
    pub(super) fn is_worn(&self) -> bool {
        self.sent >= self.most_sent
    }

    /// Whether it is to be closed and opened anew now.
    pub(super) fn is_over(&self) -> bool {
        self.is_worn()
            && self.flight.len() == 0
            && self.continuing.is_empty()
            && self.paused.is_none()
    }

    /// Node of the next request: in turn one of `replicas`, which have its row, else any other that is up. `None`: none is.
    ///
    /// As drivers do, so that the cluster answers for rows whose nodes are away.
    pub(super) fn node<P>(&mut self, replicas: &[u16], routes: &[Route<P>]) -> Option<u16> {
        self.turn = self.turn.wrapping_add(1);
        let up = |node: &u16| routes[usize::from(*node)].line.is_some();
        let turn = self.turn;
        let rotated = |count: usize| (0..count).map(move |step| (turn + step) % count);
        let replica = rotated(replicas.len()).map(|place| replicas[place]).find(up);
        replica.or_else(|| rotated(routes.len()).map(|node| node as u16).find(up))
    }
}

/// Its socket to one node.
pub(super) struct Route<P> {
    /// `None` while it is being reopened.
    pub(super) line: Option<Line<P>>,
    /// Whether it is being reopened as it has sent enough, and not as it was lost.
    pub(super) renewing: bool,
    /// Received bytes that are not a whole piece yet.
    pub(super) rest: Vec<u8>,
    /// Bytes that the socket has not accepted yet.
    pub(super) unsent: Vec<u8>,
}

impl<P> Route<P> {
    pub(super) fn new(line: Line<P>) -> Self {
        Self { line: Some(line), renewing: false, rest: Vec::new(), unsent: Vec::new() }
    }

    /// Drops what belongs to a connection that is closed.
    pub(super) fn clear(&mut self) {
        self.rest.clear();
        self.unsent.clear();
    }

    /// Whether nothing is in the way of a request.
    pub(super) fn is_clear(&self) -> bool {
        self.line.is_some() && self.unsent.is_empty()
    }
}

/// Whether a connection with these routes can send: its server takes requests, or a node of its cluster is up. What a node
/// does not take at once waits for it, as the others go on.
pub(super) fn can_send<P>(routes: &[Route<P>]) -> bool {
    match routes {
        [only] => only.is_clear(),
        nodes => nodes.iter().any(|node| node.line.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    fn route(listener: &TcpListener) -> Route<()> {
        let socket = TcpStream::connect(listener.local_addr().expect("bound")).expect("up");
        Route::new(Line {
            socket: socket.into(),
            session: None,
            protocol: (),
            took: Duration::ZERO,
            log_in: Duration::ZERO,
            handshake: None,
        })
    }

    #[test]
    fn requests_go_round_nodes_that_are_away_and_wait_for_one_that_is_slow() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut routes = [route(&listener), route(&listener), route(&listener)];
        let mut connection = Connection::new(Stream::new(1, 0, 1), 1, None, false, 1);
        let mut nodes = |replicas: &[u16], routes: &[Route<()>]| -> Vec<Option<u16>> {
            (0..4).map(|_| connection.node(replicas, routes)).collect()
        };
        routes[2].unsent.push(b'x');
        assert_eq!(nodes(&[0, 2], &routes), [2, 0, 2, 0].map(Some));
        routes[2].line = None;
        assert_eq!(nodes(&[0, 2], &routes), [0; 4].map(Some));
        assert_eq!(nodes(&[2], &routes), [0, 1, 0, 0].map(Some), "any that is up");
        assert!(can_send(&routes));
        routes[0].line = None;
        routes[1].line = None;
        assert_eq!(nodes(&[0, 2], &routes), [None; 4]);
        assert!(!can_send(&routes));
        let mut only = [route(&listener)];
        assert!(can_send(&only));
        only[0].unsent.push(b'x');
        assert!(!can_send(&only), "its server does not read");
    }
}
