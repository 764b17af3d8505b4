//! The plan of a run, which is complete before anything is sent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::arrivals::Arrivals;
use crate::protocol::{Access, Statement};
use crate::workload::Workload;

/// Name of connecting as an operation.
pub const CONNECT: &str = "connect";

#[derive(Clone)]
pub struct Plan {
    /// `HOST:PORT`, or `unix:PATH`.
    pub address: String,
    /// Further nodes of the same cluster. Each connection then has one socket to each node, and requests go to a node
    /// that has their row.
    pub others: Vec<String>,
    pub access: Access,
    /// Executed once each, in this order, before everything else; the first failure ends the run.
    pub before: Vec<Statement>,
    pub workload: Arc<dyn Workload>,
    /// Executed likewise after a complete run.
    pub after: Vec<Statement>,
    pub seed: u64,
    pub connections: usize,
    /// Requests in flight on one connection.
    pub depth: u16,
    /// After so many requests a connection is closed and opened anew; connecting is then an operation of its own.
    pub requests_per_connection: Option<u32>,
    pub threads: usize,
    /// `None`: a closed loop, where each reply triggers the next request.
    pub arrivals: Option<Arrivals>,
    /// Most arrivals that may wait, in all connections together; further ones are missed.
    pub most_waiting: usize,
    pub warm_up: Duration,
    pub length: Length,
    /// File with the turns in which to send, which is waited for once all connections are open. It replaces warm-up
    /// and length.
    pub turns: Option<PathBuf>,
    pub window: Duration,
    pub limits: Limits,
    /// For one of so many reads, the kernel is asked when it received the data; 0: never.
    pub receive_share: u32,
    /// Longest polling before an arrival, which makes up for the time in which an idle CPU wakes up.
    pub most_polled: Duration,
}

impl Plan {
    /// Whether each thread has one connection, and sends only after the last reply, so nothing else can happen.
    #[must_use]
    pub fn waits_for_one(&self) -> bool {
        self.arrivals.is_none() && self.connections == self.threads && self.others.is_empty()
    }

    /// Names of all operations: those of the workload, and [`CONNECT`] if connecting is one.
    #[must_use]
    pub fn operations(&self) -> Vec<String> {
        let connect = self.requests_per_connection.map(|_| CONNECT.to_owned());
        self.workload.kinds().iter().cloned().chain(connect).collect()
    }

    /// How often a thread checks time limits, the ends of windows and a stop, whatever else it does.
    #[must_use]
    pub fn heartbeat(&self) -> Duration {
        self.window.min(Duration::from_millis(50))
    }

    #[must_use]
    pub fn nodes(&self) -> usize {
        1 + self.others.len()
    }

    /// Address of a node.
    #[must_use]
    pub fn address_of(&self, node: usize) -> &str {
        node.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.address)
    }
}

/// Length of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Time(Duration),
    /// So many operations, distributed evenly.
    Operations(u64),
    /// Until either limit is reached.
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
    /// To connect, log in and prepare statements.
    pub connect: Duration,
    /// For a reply.
    pub reply: Duration,
    /// For outstanding replies after the last arrival.
    pub drain: Duration,
    /// For reopening a lost connection, before the server counts as lost.
    pub reconnect: Duration,
}
