//! The formats that tare's Rust programs write: the content of a trace, the journal that keeps it
//! safe from crashes while it is recorded, and the Parquet files that it is converted to.
//!
//! [`tables`] declares every column once; the journal, the Parquet files, the reference page and
//! the OpenMetrics names are derived from that declaration.

pub mod cell;
pub mod code;
pub mod error;
pub mod header;
pub mod inspect;
pub mod journal;
pub mod lock;
pub mod metric;
pub mod parquet;
pub mod profile;
pub mod rate;
pub mod reference;
pub mod row;
pub mod schema;
pub mod tables;
pub mod tail;

pub use cell::{ABSENT, Cell};
pub use error::RecordError;
pub use schema::{Column, Kind, Quantum, Table};

/// Version of the trace's tables: raised when a column changes its meaning or is removed.
pub const TRACE_VERSION: u32 = 1;

/// Version of written journals. Version 1, whose frames of rows have no position, can be read too.
pub const JOURNAL_VERSION: u32 = 2;
