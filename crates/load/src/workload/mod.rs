//! Operations, each of one or more requests, which are drawn from a seed.

pub mod job;
pub mod numbers;
pub mod pgbench;
pub mod sysbench;
pub mod tpcc;
pub mod ycsb;

use std::time::Duration;

use crate::protocol::{Label, Rows, Statement, Status, Values};
use crate::random::Random;

/// One unit of work, whose latency is measured as a whole. It has its own random numbers, so that
/// its requests do not depend on other operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub kind: u8,
    /// Number of its next request.
    pub step: u8,
    pub key: u64,
    pub random: Random,
}

/// State of drawing the operations of one connection, in order.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub seed: u64,
    pub connection: u64,
    pub connections: u64,
    /// How many operations have been drawn.
    pub number: u64,
    /// How many of them insert. Connection `c` of `n` inserts keys `c`, `c + n`, `c + 2n`, …
    pub inserts: u64,
}

impl Stream {
    #[must_use]
    pub fn new(seed: u64, connection: u64, connections: u64) -> Self {
        Self { seed, connection, connections, number: 0, inserts: 0 }
    }

    /// Random numbers for the next operation.
    pub fn next_random(&mut self) -> Random {
        self.number += 1;
        Random::of(self.seed, self.connection, self.number)
    }

    /// Number of the next operation, counted over all connections.
    #[must_use]
    pub fn next_turn(&self) -> u64 {
        self.connection + self.number * self.connections
    }

    /// Number of the next key to insert, counted over all connections.
    pub fn next_insert(&mut self) -> u64 {
        self.inserts += 1;
        self.connection + (self.inserts - 1) * self.connections
    }
}

/// What a correct reply has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// Fewest rows.
    pub rows: u32,
    /// Fewest bytes.
    pub bytes: u32,
    /// Sum of the digests of its values.
    pub contents: Option<u64>,
    /// Its single number; another one means that the row to change did not exist.
    pub number: Option<u64>,
    /// Whether finding nothing is correct, too.
    pub may_miss: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub statement: usize,
    pub expect: Expect,
    /// Whether the operation ends with its reply.
    pub last: bool,
}

/// What an operation of several steps remembers until it ends; each connection has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Where in its steps it is.
    pub at: usize,
    /// How often it was begun again.
    pub retries: u32,
    pub data: Vec<Datum>,
}

/// Codes of errors after which another try may succeed. `PostgreSQL`: serialization failure, deadlock; `MySQL`: deadlock,
/// a lock that others held for too long.
const RETRIED: [&[u8]; 4] = [b"40001", b"40P01", b"1213", b"1205"];

impl Memory {
    /// Whether an operation that met this error may be begun again.
    #[must_use]
    pub fn may_retry(&self, code: Label, most_retries: u32) -> bool {
        self.retries < most_retries && RETRIED.map(Label::new).contains(&code)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Datum {
    #[default]
    Null,
    Integer(i64),
    Double(f64),
    Text(Vec<u8>),
}

/// A reply to a request of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    pub status: Status,
    /// Its first rows, if the protocol keeps them.
    pub rows: Option<&'a Rows>,
}

/// How an operation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Request,
    /// After this time [`Workload::next`] is asked again.
    Pause(Duration),
    /// From its first step, with the same values; its errors up to now do not count against it.
    Again,
    End,
    /// It cannot go on, and why.
    Fail(&'static str),
}

pub trait Workload: Send + Sync {
    /// Names of the kinds of operations.
    fn kinds(&self) -> &[String];
    fn statements(&self) -> &[Statement];
    /// Whether an operation has several requests, and nothing else may be sent on its connection until the last reply.
    fn has_steps(&self) -> bool;
    /// Draws the next operation of a connection.
    fn draw(&self, stream: &mut Stream) -> Operation;
    /// Draws the next operation with a given kind; everything else is as in [`Self::draw`].
    fn draw_of(&self, _kind: u8, stream: &mut Stream) -> Operation {
        self.draw(stream) // there is one kind only
    }
    /// Next request of `operation`, whose step it advances. Its values are added to `values`, which is empty.
    fn request(&self, operation: &mut Operation, values: &mut Values) -> Request;
    /// Whether [`Self::next`] decides after each reply how the operation goes on. Such operations have a connection each,
    /// as those of several steps.
    fn has_flow(&self) -> bool {
        false
    }
    /// How an operation goes on: before its first request and after a pause (without an answer), and after each reply.
    fn next(&self, _of: &mut Operation, _memory: &mut Memory, _answer: Option<Answer<'_>>) -> Next {
        Next::Request
    }
    /// Whether [`Answer::rows`] are needed.
    fn keeps_rows(&self) -> bool {
        false
    }
    /// As [`Self::request`], for a workload that [`Self::has_flow`].
    fn request_of(&self, of: &mut Operation, _: &mut Memory, values: &mut Values) -> Request {
        self.request(of, values)
    }
    /// In a closed loop, how long a connection waits after an operation before the next one.
    fn think(&self, _operation: &Operation) -> Duration {
        Duration::ZERO
    }
    /// Called after the last reply, or if it will not come.
    fn ended(&self, _operation: &Operation) {}
    /// Called if the server answers a request with an error and others follow, which may be changed.
    fn failed(&self, _operation: &mut Operation) {}
}
