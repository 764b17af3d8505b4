//! What a database speaks: how requests become bytes, and bytes replies.
//!
//! Log-in and preparing block, on a thread beside the measuring ones; what happens for each request does not, and
//! allocates nothing once its buffers have grown. An implementation is `resp` to look at.

pub mod cluster;
pub mod cql;
pub mod mongodb;
pub mod mysql;
pub mod postgresql;
pub mod resp;
pub mod statement;
mod wire;

use self::cluster::Cluster;
use crate::error::Fault;
use crate::tls::Tls;
pub use statement::{Label, Statement, Type, Value, Values};
pub use wire::{Opened, Wire};

/// One connection's side of a protocol.
pub trait Protocol: Send + Sized + 'static {
    const NAME: &'static str;
    /// Replies come in the order of their requests; otherwise each names its slot.
    const ORDERED: bool;
    /// Where there is TLS it comes first; otherwise [`Protocol::open`] asks for it.
    const TLS_FIRST: bool = true;

    /// Logs in and prepares the statements, blocking until requests may be sent.
    ///
    /// # Errors
    /// What the server, or the way to it, answered instead.
    fn open(wire: &mut Wire, access: &Access, statements: &[Statement]) -> Result<Self, Fault>;

    /// What nodes have which rows, asked of one connection to each; `None`: the protocol, or this cluster, does not say.
    ///
    /// # Errors
    /// Which node, by its place among the wires, and what it, or the way to it, answered instead.
    fn discover(_wires: &mut [Wire], _access: &Access) -> Result<Option<Cluster>, (usize, Fault)> {
        Ok(None)
    }

    /// The nodes that have what a request is about; none where it is not about one row, or nobody knows.
    fn replicas<'c>(
        &mut self,
        _statement: usize,
        _values: &Values,
        _cluster: &'c Cluster,
    ) -> &'c [u16] {
        &[]
    }

    /// Appends the bytes of one request. Without order, its reply will name `slot`.
    fn encode(&mut self, statement: usize, values: &Values, slot: u16, out: &mut Vec<u8>);

    /// Takes what it can from the front of `input`, up to the end of one reply.
    ///
    /// What was not consumed is there again, with more behind it, at the next call; this rest stays
    /// below [`REST_LIMIT`], as contents are consumed while they come in.
    ///
    /// # Errors
    /// Where the bytes are not of this protocol; the connection is then of no more use.
    fn decode(&mut self, input: &[u8]) -> Result<Decoded, &'static str>;

    /// Appends what the replies so far call for before theirs is whole, such as the next page.
    fn follow_up(&mut self, _out: &mut Vec<u8>) {}

    /// What the server said of the last error.
    fn message(&self) -> &str;

    /// What the server said, unasked, before it closed the connection.
    fn farewell(&self) -> Option<&str> {
        None
    }
}

/// How many bytes of an unfinished piece a decoder may leave: the longest line, header or segment that is taken.
pub const REST_LIMIT: usize = 132 * 1024;

/// Who logs in, and where to.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: Option<String>,
    /// Sum the contents of replies, to be compared with what was written.
    pub check_contents: bool,
    /// How many replicas must answer a read, or a write, where the server has levels of that.
    pub read_level: Option<String>,
    pub write_level: Option<String>,
    /// `None`: in clear text.
    pub tls: Option<Tls>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    pub consumed: usize,
    /// `None`: the reply goes on beyond `input`.
    pub reply: Option<Reply>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Which request it answers, where replies come in no order.
    pub slot: u16,
    pub status: Status,
    /// Rows of a table, or elements of a list; 1 for a single value.
    pub rows: u32,
    /// Bytes of all values together.
    pub bytes: u64,
    /// Sum of [`statement::digest`] of all values, where contents are checked.
    pub contents: u64,
    /// What a lone number says, such as how many fields are new.
    pub number: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    #[default]
    Done,
    /// There is no such key: nil, or a list without elements.
    Missing,
    Error(Label),
}
