//! Kinds of databases by the layout of their records, and calls of a binding.

/// Layout of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    Redis,
    /// Any database with a JDBC driver.
    Sql,
    Cassandra,
    Mongodb,
}

/// Call of a binding by YCSB's workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Read,
    Update,
    Insert,
    Scan,
}
