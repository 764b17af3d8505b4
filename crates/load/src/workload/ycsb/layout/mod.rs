//! How each database holds records: the statements that YCSB's binding for it makes of an operation.
//!
//! Tables and statements are those of the bindings, so that either reads what the other has loaded.

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
    /// Which of its requests.
    pub(super) step: u8,
    pub(super) key: &'a [u8],
    /// The one field that is read or written; `None`: all.
    pub(super) field: Option<usize>,
    /// All fields are read, each by its name.
    pub(super) by_name: bool,
    /// Most records of a scan.
    pub(super) length: u32,
    pub(super) fields: &'a Fields,
    /// What values are drawn from.
    pub(super) random: Random,
}

impl Ask<'_> {
    /// Appends the value that the call writes to a field.
    fn value(&self, field: usize, out: &mut Vec<u8>) {
        self.fields.write(self.key, field, self.random, out);
    }

    /// Which fields it reads or writes.
    fn range(&self) -> std::ops::Range<usize> {
        self.field.map_or(0..self.fields.names.len(), |field| field..field + 1)
    }

    /// The least that the values of these fields come to.
    fn bytes(&self) -> u32 {
        self.fields.lengths.least().saturating_mul(self.range().len() as u32)
    }

    fn contents(&self) -> Option<u64> {
        self.fields.contents(self.key, self.range())
    }
}

/// What is sent for it, and what a right reply has.
pub(super) struct Sent {
    pub(super) statement: usize,
    pub(super) expect: Expect,
}

pub(super) trait Layout: Send + Sync {
    fn statements(&self) -> &[Statement];
    /// Requests of one call.
    fn steps(&self, verb: Verb) -> u8;
    /// Nothing else may be under way on the connection meanwhile.
    fn is_alone(&self, verb: Verb) -> bool;
    /// One request; its values go to `values`.
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

/// What makes the table, where the load phase is asked to.
pub(super) fn preparations(store: Store, settings: &Settings) -> Vec<String> {
    match store {
        Store::Redis | Store::Mongodb => Vec::new(),
        Store::Sql => tables::preparations(Language::Sql, settings),
        Store::Cassandra => tables::preparations(Language::Cql, settings),
    }
}
