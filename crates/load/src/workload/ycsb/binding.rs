//! Properties of YCSB's binding for a database.

use super::store::Store;
use super::unparsed::Unparsed;
use crate::error::LoadError;

/// Settings of YCSB's binding for the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// `jdbc.createtable` or `cassandra.createtable`: the load phase makes the table if it is missing.
    pub(super) creates_table: bool,
    /// `cassandra.keyspace`.
    pub keyspace: String,
    /// `cassandra.replicationfactor`.
    pub(super) copies: u64,
    /// `cassandra.tableoptions`.
    pub(super) table_options: Option<String>,
    /// `cassandra.readconsistencylevel`.
    pub read_level: Option<String>,
    /// `cassandra.writeconsistencylevel`.
    pub write_level: Option<String>,
    /// `mongodb.writeConcern`, as a document.
    pub(super) write_concern: &'static str,
}

impl Unparsed<'_> {
    pub(super) fn binding(&mut self, store: Store) -> Result<Binding, LoadError> {
        let none = Binding::default();
        match store {
            Store::Redis => Ok(none),
            Store::Sql => {
                self.only("jdbc.autocommit", "true", "each statement is a transaction of its own")?;
                Ok(Binding { creates_table: self.flag("jdbc.createtable", false)?, ..none })
            }
            Store::Cassandra => {
                self.only("cassandra.tracing", "false", "requests are not traced")?;
                let mut text = |name| self.0.take(name).map(|property| property.value);
                Ok(Binding {
                    table_options: text("cassandra.tableoptions"),
                    read_level: text("cassandra.readconsistencylevel"),
                    write_level: text("cassandra.writeconsistencylevel"),
                    keyspace: self.name("cassandra.keyspace")?.unwrap_or_else(|| "ycsb".to_owned()),
                    copies: self.whole("cassandra.replicationfactor", 1..=1_000)?.unwrap_or(1),
                    creates_table: self.flag("cassandra.createtable", false)?,
                    ..none
                })
            }
            Store::Mongodb => {
                self.only("mongodb.upsert", "false", "a write finds its document or fails")?;
                self.only("mongodb.readPreference", "primary", "one server is spoken with")?;
                self.only("batchsize", "1", "inserts are single commands")?;
                Ok(Binding { write_concern: self.write_concern()?, ..none })
            }
        }
    }

    /// Accepts only acknowledged writes: otherwise it is unknown whether they were carried out.
    fn write_concern(&mut self) -> Result<&'static str, LoadError> {
        const NAMES: [&str; 4] = ["acknowledged", "journaled", "replica_acknowledged", "majority"];
        Ok(match self.word("mongodb.writeConcern", &NAMES)? {
            "journaled" => r#"{"w": 1, "j": true}"#,
            "replica_acknowledged" => r#"{"w": 2}"#,
            "majority" => r#"{"w": "majority"}"#,
            _ => r#"{"w": 1}"#,
        })
    }
}
