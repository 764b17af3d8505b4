//! Databases, by how their bindings hold records, and what a binding is asked for.

/// Which of the layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    Redis,
    /// Any database with a JDBC driver.
    Sql,
    Cassandra,
    Mongodb,
}

/// What YCSB's workload asks a binding for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Read,
    Update,
    Insert,
    Scan,
}
