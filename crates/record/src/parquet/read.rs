//! Reading of a trace's table, row by row, for exports.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;

use super::{COLUMNS_KEY, ColumnFacts};
use crate::error::RecordError;
use crate::schema::Kind;

/// One value of an exported row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Missing,
    Number(i64),
    Text(String),
}

/// A column as the file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileColumn {
    pub name: String,
    /// `None` for columns of strings, and for keys.
    pub kind: Option<Kind>,
    /// Step in the column's own unit.
    pub quantum: u64,
}

/// Calls `begin` with the columns of a table, then `each` with each row.
///
/// # Errors
/// The file cannot be read, or `each` fails.
pub fn read_table<E: From<RecordError>>(
    path: &Path,
    begin: impl FnOnce(&[FileColumn]) -> Result<(), E>,
    mut each: impl FnMut(&[Value]) -> Result<(), E>,
) -> Result<(), E> {
    let file = File::open(path).map_err(|error| RecordError::io(path, error))?;
    let reader = SerializedFileReader::new(file).map_err(unreadable(path))?;
    begin(&columns_of(&reader, path)?)?;
    let mut row = Vec::new();
    for read in reader.get_row_iter(None).map_err(unreadable(path))? {
        let read = read.map_err(unreadable(path))?;
        row.clear();
        row.extend(read.get_column_iter().map(|(_, field)| value(field)));
        each(&row)?;
    }
    Ok(())
}

/// Number of rows of a table.
///
/// # Errors
/// The file cannot be read.
pub fn rows_of(path: &Path) -> Result<i64, RecordError> {
    let file = File::open(path).map_err(|error| RecordError::io(path, error))?;
    let reader = SerializedFileReader::new(file).map_err(unreadable(path))?;
    Ok(reader.metadata().file_metadata().num_rows())
}

fn columns_of(
    reader: &SerializedFileReader<File>,
    path: &Path,
) -> Result<Vec<FileColumn>, RecordError> {
    let about = reader.metadata().file_metadata();
    let facts = about.key_value_metadata().into_iter().flatten();
    let facts = facts.filter(|fact| fact.key == COLUMNS_KEY).find_map(|fact| fact.value.as_deref());
    let facts: BTreeMap<String, ColumnFacts> = match facts {
        Some(text) => serde_json::from_str(text)
            .map_err(|source| RecordError::Json { path: path.to_path_buf(), source })?,
        // Tables of strings have no facts about their columns.
        None => BTreeMap::new(),
    };
    let fields = about.schema_descr().columns().iter();
    Ok(fields.map(|field| describe(field.name(), facts.get(field.name()))).collect())
}

fn describe(name: &str, facts: Option<&ColumnFacts>) -> FileColumn {
    let is_key = ["tick", "target", "name"].contains(&name);
    let kind = facts.filter(|_| !is_key).and_then(|facts| {
        [Kind::Counter, Kind::Gauge, Kind::Instant, Kind::Code]
            .into_iter()
            .find(|kind| kind.word() == facts.kind)
    });
    FileColumn { name: name.to_owned(), kind, quantum: facts.map_or(0, |facts| facts.quantum) }
}

fn value(field: &Field) -> Value {
    match field {
        Field::Long(number) => Value::Number(*number),
        Field::UInt(number) => Value::Number(i64::from(*number)),
        Field::Str(text) => Value::Text(text.clone()),
        _ => Value::Missing,
    }
}

fn unreadable(path: &Path) -> impl FnOnce(ParquetError) -> RecordError + '_ {
    move |source| RecordError::Table { path: path.to_path_buf(), source }
}
