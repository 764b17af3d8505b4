//! Protocols of databases: encoding of requests and decoding of replies.
//!
//! Log-in and preparing block, on a thread other than the measuring ones. Functions that are called for each request
//! neither block nor allocate, once their buffers have grown. `resp` is a simple implementation.

pub mod cluster;
pub mod cql;
pub mod mongodb;
pub mod mysql;
pub mod postgresql;
pub mod resp;
pub mod rows;
mod scram;
pub mod statement;
mod wire;

use self::cluster::Cluster;
use crate::error::Fault;
use crate::tls::Tls;
pub use rows::Rows;
pub use statement::{Label, Statement, Type, Value, Values};
pub use wire::{Opened, UNIX, Wire};

/// One connection's side of a protocol.
pub trait Protocol: Send + Sized + 'static {
    const NAME: &'static str;
    /// Whether replies arrive in the order of their requests; otherwise each names its slot.
    const ORDERED: bool;
    /// Whether TLS starts before the protocol; otherwise [`Protocol::open`] asks for it.
    const TLS_FIRST: bool = true;

    /// Logs in and prepares the statements; blocks until requests may be sent.
    ///
    /// # Errors
    /// Error of the server or of the connection.
    fn open(wire: &mut Wire, access: &Access, statements: &[Statement]) -> Result<Self, Fault>;

    /// Asks which nodes have which rows, over one connection to each; `None`: the protocol or cluster does not tell.
    ///
    /// # Errors
    /// Index of the wire, and the error of its node or connection.
    fn discover(_wires: &mut [Wire], _access: &Access) -> Result<Option<Cluster>, (usize, Fault)> {
        Ok(None)
    }

    /// Nodes that have a request's row; empty if it is not about one row, or unknown.
    fn replicas<'c>(
        &mut self,
        _statement: usize,
        _values: &Values,
        _cluster: &'c Cluster,
    ) -> &'c [u16] {
        &[]
    }

    /// Appends the bytes of one request. Unless replies are ordered, its reply will name `slot`.
    fn encode(&mut self, statement: usize, values: &Values, slot: u16, out: &mut Vec<u8>);

    /// Consumes as much as possible of `input`, up to the end of one reply.
    ///
    /// Bytes that were not consumed are passed again, followed by more, at the next call. They must be fewer than
    /// [`REST_LIMIT`], so contents are consumed as they arrive.
    ///
    /// # Errors
    /// The bytes are not of this protocol; the connection cannot be used any more.
    fn decode(&mut self, input: &[u8]) -> Result<Decoded, &'static str>;

    /// Appends requests that unfinished replies need, such as for the next page.
    fn follow_up(&mut self, _out: &mut Vec<u8>) {}

    /// First rows of the last reply, if [`Access::keeps_rows`] and the protocol can.
    fn rows(&self) -> Option<&Rows> {
        None
    }

    /// The server's message of the last error.
    fn message(&self) -> &str;

    /// Appends what a client says before it closes a connection, if anything.
    fn goodbye(&self, _out: &mut Vec<u8>) {}

    /// The server's message before it closed the connection, if any.
    fn farewell(&self) -> Option<&str> {
        None
    }
}

/// Most bytes that a decoder may leave: the longest line, header or segment that is accepted.
pub const REST_LIMIT: usize = 132 * 1024;

/// User and database of a log-in, and how to connect.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: Option<String>,
    /// Whether to sum the contents of replies, for comparison with what was written.
    pub check_contents: bool,
    /// Whether to keep the first rows of a reply.
    pub keeps_rows: bool,
    /// How many replicas must answer a read, or a write, if the server has such levels.
    pub read_level: Option<String>,
    pub write_level: Option<String>,
    /// `lz4` or `snappy`, in CQL's protocol.
    pub compression: Option<String>,
    /// `None`: unencrypted.
    pub tls: Option<Tls>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    pub consumed: usize,
    /// `None`: the reply continues after `input`.
    pub reply: Option<Reply>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Slot of the request that it answers, if replies are not ordered.
    pub slot: u16,
    pub status: Status,
    /// Rows of a table, or elements of a list; 1 for a single value.
    pub rows: u32,
    /// Bytes of all values.
    pub bytes: u64,
    /// Sum of [`statement::digest`] of all values, if contents are checked.
    pub contents: u64,
    /// A single number in the reply, such as how many fields are new.
    pub number: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    #[default]
    Done,
    /// There is no such key: nil, or an empty list.
    Missing,
    Error(Label),
}
