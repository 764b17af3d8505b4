//! What a run will do, complete before anything is sent.

use std::sync::Arc;
use std::time::Duration;

use crate::arrivals::Arrivals;
use crate::protocol::{Access, Statement};
use crate::workload::Workload;

pub struct Plan {
    /// `HOST:PORT`.
    pub address: String,
    /// Further nodes of the same cluster. Each connection then has one to each node, and a request goes to one that has
    /// its row.
    pub others: Vec<String>,
    pub access: Access,
    /// Executed once each, in this order, before all else; the first that fails ends the run.
    pub before: Vec<Statement>,
    pub workload: Arc<dyn Workload>,
    /// Likewise after a run that was complete.
    pub after: Vec<Statement>,
    pub seed: u64,
    pub connections: usize,
    /// Requests in flight on one connection.
    pub depth: u16,
    pub threads: usize,
    /// `None`: a closed loop, where each reply calls for the next request.
    pub arrivals: Option<Arrivals>,
    /// Arrivals that may wait, all connections together; those beyond are missed.
    pub most_waiting: usize,
    pub warm_up: Duration,
    pub length: Length,
    pub window: Duration,
    pub limits: Limits,
    /// The kernel is asked when it received one of so many reads; 0: never.
    pub receive_share: u32,
    /// Before an arrival, to be in time for it; an idle CPU takes so long to wake up.
    pub most_polled: Duration,
}

impl Plan {
    /// Each thread has one connection and sends when its last reply has come: nothing else can happen meanwhile.
    #[must_use]
    pub fn waits_for_one(&self) -> bool {
        self.arrivals.is_none() && self.connections == self.threads && self.others.is_empty()
    }

    #[must_use]
    pub fn nodes(&self) -> usize {
        1 + self.others.len()
    }

    /// Where a node listens.
    #[must_use]
    pub fn address_of(&self, node: usize) -> &str {
        node.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.address)
    }
}

/// How long the measurement takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Time(Duration),
    /// So many operations, shared out evenly.
    Operations(u64),
    /// Whichever ends first.
    First {
        operations: u64,
        time: Duration,
    },
}

impl Length {
    #[must_use]
    pub const fn time(&self) -> Option<Duration> {
        match *self {
            Self::Time(time) | Self::First { time, .. } => Some(time),
            Self::Operations(_) => None,
        }
    }

    #[must_use]
    pub const fn operations(&self) -> Option<u64> {
        match *self {
            Self::Operations(operations) | Self::First { operations, .. } => Some(operations),
            Self::Time(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// To connect, log in and prepare.
    pub connect: Duration,
    /// Until a reply must have come.
    pub reply: Duration,
    /// After the last arrival, for replies that are still to come.
    pub drain: Duration,
    /// How long a lost connection is tried again before the server counts as gone.
    pub reconnect: Duration,
}
