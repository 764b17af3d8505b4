//! Layouts of records in each database: the statements of YCSB's binding for each operation.
//!
//! Tables and statements are those of the bindings, so that each program can read what the other has loaded.

mod documents;
mod redis;
mod tables;

use self::tables::{Language, Tables};
use super::settings::Settings;
use super::store::{Store, Verb};
use super::values::Fields;
use crate::protocol::{Statement, Values};
use crate::random::Random;
use crate::workload::Expect;

/// One call of a binding.
pub(super) struct Ask<'a> {
    pub(super) verb: Verb,
    /// Number of the request.
    pub(super) step: u8,
    pub(super) key: &'a [u8],
    /// The field that is read or written; `None`: all.
    pub(super) field: Option<usize>,
    /// Whether all fields are read by their names.
    pub(super) by_name: bool,
    /// Most records of a scan.
    pub(super) length: u32,
    pub(super) fields: &'a Fields,
    /// What values are drawn from.
    pub(super) random: Random,
}

impl Ask<'_> {
    /// Appends the value that is written to a field.
    fn value(&self, field: usize, out: &mut Vec<u8>) {
        self.fields.write(self.key, field, self.random, out);
    }

    /// Fields that are read or written.
    fn range(&self) -> std::ops::Range<usize> {
        self.field.map_or(0..self.fields.names.len(), |field| field..field + 1)
    }

    /// Fewest bytes of these fields' values.
    fn bytes(&self) -> u32 {
        self.fields.lengths.least().saturating_mul(self.range().len() as u32)
    }

    fn contents(&self) -> Option<u64> {
        self.fields.contents(self.key, self.range())
    }
}

/// Statement of a request, and what a correct reply has.
pub(super) struct Sent {
    pub(super) statement: usize,
    pub(super) expect: Expect,
}

pub(super) trait Layout: Send + Sync {
    fn statements(&self) -> &[Statement];
    /// Number of requests of one call.
    fn steps(&self, verb: Verb) -> u8;
    /// Whether nothing else may be in flight on the connection meanwhile.
    fn is_alone(&self, verb: Verb) -> bool;
    /// Makes one request; its values are added to `values`.
    fn request(&self, ask: &Ask<'_>, values: &mut Values) -> Sent;
}

pub(super) fn layout(store: Store, settings: &Settings) -> Box<dyn Layout> {
    match store {
        Store::Redis => Box::new(redis::Redis::new(&settings.fields)),
        Store::Sql => Box::new(Tables::new(Language::Sql, settings)),
        Store::Cassandra => Box::new(Tables::new(Language::Cql, settings)),
        Store::Mongodb => Box::new(documents::Documents::new(settings)),
    }
}

/// Statements that make the table, if the load phase is asked to.
pub(super) fn preparations(store: Store, settings: &Settings) -> Vec<String> {
    match store {
        Store::Redis | Store::Mongodb => Vec::new(),
        Store::Sql => tables::preparations(Language::Sql, settings),
        Store::Cassandra => tables::preparations(Language::Cql, settings),
    }
}
