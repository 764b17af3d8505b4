//! Writing of one table into one Parquet file.

use std::collections::BTreeMap;
use std::path::Path;

use super::columns::{Columns, Given, Holds};
use super::{COLUMNS_KEY, ColumnFacts, properties};
use crate::cell::to_option;
use crate::error::RecordError;
use crate::header::Header;
use crate::rate;
use crate::row::Row;
use crate::schema::{Column, KEYS, Table};

pub(super) struct Sheet {
    table: &'static Table,
    columns: Columns,
}

impl Sheet {
    pub(super) fn create(
        directory: &Path,
        table: &'static Table,
        header: &Header,
    ) -> Result<Self, RecordError> {
        let path = directory.join(format!("{}.parquet", table.name));
        let keys = KEYS.iter().zip([Holds::Numbers, Holds::Ids, Holds::Words]);
        let all = keys
            .map(|(column, holds)| (column.name, holds))
            .chain(table.columns.iter().map(|column| (column.name, Holds::Numbers)));
        let mut columns = Columns::create(&path, all, properties())?;
        columns.tell("tare.table", table.name.to_owned());
        columns.tell("tare.meaning", table.meaning.trim().to_owned());
        columns.tell("tare.trace_version", header.trace_version.to_string());
        let facts = facts(table, header);
        let facts = serde_json::to_string(&facts)
            .map_err(|source| RecordError::Json { path: path.clone(), source })?;
        columns.tell(COLUMNS_KEY, facts);
        Ok(Self { table, columns })
    }

    pub(super) fn push(&mut self, row: Row<'_>, name: Option<&str>) -> Result<(), RecordError> {
        let keys =
            [Given::Number(Some(row.key.tick)), Given::Id(row.key.target), Given::Word(name)];
        let cells = row.cells.iter().map(|cell| Given::Number(to_option(*cell)));
        self.columns.push(keys.into_iter().chain(cells))
    }

    pub(super) fn close(self) -> Result<(&'static str, u64), RecordError> {
        Ok((self.table.name, self.columns.close()?))
    }
}

/// Facts about each column, by its name.
fn facts(table: &Table, header: &Header) -> BTreeMap<&'static str, ColumnFacts> {
    let of = |column: &Column| ColumnFacts {
        kind: column.kind.word().to_owned(),
        quantum: rate::quantum_in_units(column.name, column.quantum, column.kind, header.ticks),
        source: column.source.to_owned(),
        meaning: column.meaning.to_owned(),
    };
    KEYS.iter().chain(table.columns).map(|column| (column.name, of(column))).collect()
}
