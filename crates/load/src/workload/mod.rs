//! What is asked of the server: operations, each of one or more requests, drawn from a seed.

pub mod job;
pub mod numbers;
pub mod sysbench;
pub mod ycsb;

use crate::protocol::{Statement, Values};
use crate::random::Random;

/// One unit of work, whose latency counts as a whole. It carries its own random numbers, so that
/// it asks the same whatever else goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub kind: u8,
    /// Which of its requests is next.
    pub step: u8,
    pub key: u64,
    pub random: Random,
}

/// The operations of one connection, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub seed: u64,
    pub connection: u64,
    pub connections: u64,
    /// How many operations have been drawn.
    pub number: u64,
    /// How many of them insert. Connection `c` of `n` inserts the keys `c`, `c + n`, `c + 2n`, …
    pub inserts: u64,
}

impl Stream {
    #[must_use]
    pub fn new(seed: u64, connection: u64, connections: u64) -> Self {
        Self { seed, connection, connections, number: 0, inserts: 0 }
    }

    /// The random numbers of the next operation.
    pub fn next_random(&mut self) -> Random {
        self.number += 1;
        Random::of(self.seed, self.connection, self.number)
    }

    /// The number of the next key to insert, counted over all connections.
    pub fn next_insert(&mut self) -> u64 {
        self.inserts += 1;
        self.connection + (self.inserts - 1) * self.connections
    }
}

/// What a right reply has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// At least so many rows.
    pub rows: u32,
    /// At least so many bytes.
    pub bytes: u32,
    /// Sum of the digests of its values.
    pub contents: Option<u64>,
    /// Its lone number; another one says that what was to be changed was not there.
    pub number: Option<u64>,
    /// Nothing found is right, too.
    pub may_miss: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub statement: usize,
    pub expect: Expect,
    /// The operation is done with its reply.
    pub last: bool,
}

pub trait Workload: Send + Sync {
    /// The names that operations are counted under.
    fn kinds(&self) -> &[String];
    fn statements(&self) -> &[Statement];
    /// Some operation takes several requests, and its connection bears nothing else until the last reply.
    fn has_steps(&self) -> bool;
    /// The next operation of a connection.
    fn draw(&self, stream: &mut Stream) -> Operation;
    /// Likewise, where its kind is known; all else is as it would have been.
    fn draw_of(&self, _kind: u8, stream: &mut Stream) -> Operation {
        self.draw(stream) // there is one kind only
    }
    /// The next request of `operation`, whose step it advances; its values go to `values`, which is empty.
    fn request(&self, operation: &mut Operation, values: &mut Values) -> Request;
    /// The last reply has come, or none will.
    fn ended(&self, _operation: &Operation) {}
    /// The server answered the last request with an error, and others would follow: they may be others now.
    fn failed(&self, _operation: &mut Operation) {}
}
