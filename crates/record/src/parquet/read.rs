//! Reads a table of a trace back, row by row, for exports.

use std::fs::File;
use std::path::Path;

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field};

use super::parquet_error;
use crate::error::RecordError;
use crate::schema::Kind;

/// One value of an exported row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Missing,
    Number(i64),
    Text(String),
}

/// A column as the file describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileColumn {
    pub name: String,
    /// `None` for columns of words, and for keys.
    pub kind: Option<Kind>,
    /// Step in the column's own unit.
    pub quantum: u64,
}

/// Hands the columns of a table to `begin`, then each row to `each`.
///
/// # Errors
/// Where the file cannot be read, or `each` fails.
pub fn read_table<E: From<RecordError>>(
    path: &Path,
    begin: impl FnOnce(&[FileColumn]) -> Result<(), E>,
    mut each: impl FnMut(&[Value]) -> Result<(), E>,
) -> Result<(), E> {
    let file = File::open(path).map_err(|error| RecordError::io(path, error))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(parquet_error(path))?;
    let columns: Vec<FileColumn> =
        builder.schema().fields().iter().map(|field| describe(field)).collect();
    begin(&columns)?;
    let reader = builder.build().map_err(parquet_error(path))?;
    let mut row = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| parquet_error(path)(error.into()))?;
        for at in 0..batch.num_rows() {
            fill(&batch, at, &mut row);
            each(&row)?;
        }
    }
    Ok(())
}

fn describe(field: &Field) -> FileColumn {
    let facts = field.metadata();
    let is_key = ["tick", "target", "name"].contains(&field.name().as_str());
    let kind = facts.get("kind").filter(|_| !is_key).and_then(|word| {
        [Kind::Counter, Kind::Gauge, Kind::Instant, Kind::Code]
            .into_iter()
            .find(|kind| kind.word() == word)
    });
    let quantum = facts.get("quantum").and_then(|text| text.parse().ok()).unwrap_or(0);
    FileColumn { name: field.name().clone(), kind, quantum }
}

fn fill(batch: &RecordBatch, at: usize, row: &mut Vec<Value>) {
    row.clear();
    row.extend(batch.columns().iter().map(|column| value(column, at)));
}

fn value(column: &ArrayRef, at: usize) -> Value {
    if column.is_null(at) {
        return Value::Missing;
    }
    match column.data_type() {
        DataType::Int64 => Value::Number(column.as_primitive::<Int64Type>().value(at)),
        DataType::UInt32 => Value::Number(i64::from(column.as_primitive::<UInt32Type>().value(at))),
        DataType::Utf8 => Value::Text(column.as_string::<i32>().value(at).to_owned()),
        DataType::Dictionary(..) => {
            let words = column.as_dictionary::<Int32Type>();
            let texts = words.values().as_string::<i32>();
            words.key(at).map_or(Value::Missing, |key| Value::Text(texts.value(key).to_owned()))
        }
        _ => Value::Missing,
    }
}
