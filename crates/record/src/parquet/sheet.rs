//! One table on its way into one Parquet file.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use arrow_array::builder::{Int64Builder, StringDictionaryBuilder, UInt32Builder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use super::{BATCH_ROWS, parquet_error, part_of, properties};
use crate::cell::to_option;
use crate::error::RecordError;
use crate::header::Header;
use crate::rate;
use crate::row::Row;
use crate::schema::{Column, KEYS, Table};

pub(super) struct Sheet {
    table: &'static Table,
    path: PathBuf,
    schema: Arc<Schema>,
    writer: ArrowWriter<File>,
    tick: Int64Builder,
    target: UInt32Builder,
    name: StringDictionaryBuilder<Int32Type>,
    cells: Vec<Int64Builder>,
    waiting: usize,
    rows: u64,
}

impl Sheet {
    pub(super) fn create(
        directory: &Path,
        table: &'static Table,
        header: &Header,
    ) -> Result<Self, RecordError> {
        let path = directory.join(format!("{}.parquet", table.name));
        let schema = Arc::new(schema_of(table, header));
        let part = part_of(&path);
        let file = File::create(&part).map_err(|error| RecordError::io(&part, error))?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties()))
            .map_err(parquet_error(&path))?;
        Ok(Self {
            table,
            schema,
            writer,
            tick: Int64Builder::new(),
            target: UInt32Builder::new(),
            name: StringDictionaryBuilder::new(),
            cells: table.columns.iter().map(|_| Int64Builder::new()).collect(),
            waiting: 0,
            rows: 0,
            path,
        })
    }

    pub(super) fn push(&mut self, row: Row<'_>, name: Option<&str>) -> Result<(), RecordError> {
        self.tick.append_option(i64::try_from(row.key.tick).ok());
        self.target.append_value(row.key.target);
        self.name.append_option(name);
        for (builder, cell) in self.cells.iter_mut().zip(row.cells) {
            builder.append_option(to_option(*cell).and_then(|value| i64::try_from(value).ok()));
        }
        self.waiting += 1;
        self.rows += 1;
        if self.waiting >= BATCH_ROWS { self.write_batch() } else { Ok(()) }
    }

    pub(super) fn close(mut self) -> Result<(&'static str, u64), RecordError> {
        self.write_batch()?;
        self.writer.close().map_err(parquet_error(&self.path))?;
        fs::rename(part_of(&self.path), &self.path)
            .map_err(|error| RecordError::io(&self.path, error))?;
        Ok((self.table.name, self.rows))
    }

    fn write_batch(&mut self) -> Result<(), RecordError> {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.tick.finish()),
            Arc::new(self.target.finish()),
            Arc::new(self.name.finish()),
        ];
        columns.extend(self.cells.iter_mut().map(|cells| Arc::new(cells.finish()) as ArrayRef));
        self.waiting = 0;
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(::parquet::errors::ParquetError::from)
            .and_then(|batch| self.writer.write(&batch))
            .map_err(parquet_error(&self.path))
    }
}

/// Signed, so that a difference of two readings may be negative in any reader.
fn schema_of(table: &Table, header: &Header) -> Schema {
    let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let mut fields = vec![
        described(Field::new("tick", DataType::Int64, true), &KEYS[0], header),
        described(Field::new("target", DataType::UInt32, true), &KEYS[1], header),
        described(Field::new("name", words, true), &KEYS[2], header),
    ];
    fields.extend(
        table.columns.iter().map(|column| {
            described(Field::new(column.name, DataType::Int64, true), column, header)
        }),
    );
    let facts = HashMap::from([
        ("tare.table".to_owned(), table.name.to_owned()),
        ("tare.meaning".to_owned(), table.meaning.trim().to_owned()),
        ("tare.trace_version".to_owned(), header.trace_version.to_string()),
    ]);
    Schema::new_with_metadata(fields, facts)
}

fn described(field: Field, column: &Column, header: &Header) -> Field {
    let quantum = rate::quantum_in_units(column.name, column.quantum, column.kind, header.ticks);
    field.with_metadata(HashMap::from([
        ("kind".to_owned(), column.kind.word().to_owned()),
        ("quantum".to_owned(), quantum.to_string()),
        ("source".to_owned(), column.source.to_owned()),
        ("meaning".to_owned(), column.meaning.to_owned()),
    ]))
}
