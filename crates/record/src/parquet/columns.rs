//! Writing of rows into a Parquet file, collected by column and written by row group.
//!
//! Uses Parquet's own column writers: Arrow's crates would take longer to compile than the rest of
//! tare-probe.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::{Type, TypePtr};

use super::{must_be_replaceable, parquet_error, part_of};
use crate::error::RecordError;

/// Rows that are collected before they are written; limits the memory of a conversion.
const ROW_GROUP_ROWS: usize = 1 << 14;

/// One value of a row, of its column's type. Every column may be null.
pub(super) enum Given<'a> {
    /// Written as signed, so that any reader can compute negative differences.
    Number(Option<u64>),
    Id(u32),
    Word(Option<&'a str>),
}

/// Type of a column.
#[derive(Clone, Copy)]
pub(super) enum Holds {
    Numbers,
    Ids,
    Words,
}

enum Cells {
    Numbers(Vec<i64>),
    Ids(Vec<i32>),
    Words(Vec<ByteArray>),
}

struct Column {
    cells: Cells,
    /// Parquet's definition levels: 1 for a value, 0 for null.
    present: Vec<i16>,
}

/// A file that has a temporary name until it is complete.
pub(super) struct Columns {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    columns: Vec<Column>,
    waiting: usize,
    rows: u64,
}

impl Columns {
    pub(super) fn create<'a>(
        path: &Path,
        columns: impl Iterator<Item = (&'a str, Holds)> + Clone,
        properties: WriterProperties,
    ) -> Result<Self, RecordError> {
        let schema = schema(columns.clone()).map_err(parquet_error(path))?;
        must_be_replaceable(path)?;
        let part = part_of(path);
        let file = File::create(&part).map_err(|error| RecordError::io(&part, error))?;
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties))
            .map_err(parquet_error(path))?;
        Ok(Self {
            path: path.to_path_buf(),
            writer,
            columns: columns.map(|(_, holds)| Column::new(holds)).collect(),
            waiting: 0,
            rows: 0,
        })
    }

    /// Adds metadata to the file's footer.
    pub(super) fn tell(&mut self, key: &str, value: String) {
        self.writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }

    /// Adds a row with one value for each column, in their order.
    pub(super) fn push<'a>(
        &mut self,
        row: impl Iterator<Item = Given<'a>>,
    ) -> Result<(), RecordError> {
        for (column, given) in self.columns.iter_mut().zip(row) {
            column.push(given);
        }
        self.waiting += 1;
        self.rows += 1;
        if self.waiting >= ROW_GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Completes the file and gives it its final name. Returns the number of its rows.
    pub(super) fn close(mut self) -> Result<u64, RecordError> {
        self.write_group()?;
        self.writer.close().map_err(parquet_error(&self.path))?;
        fs::rename(part_of(&self.path), &self.path)
            .map_err(|error| RecordError::io(&self.path, error))?;
        Ok(self.rows)
    }

    fn write_group(&mut self) -> Result<(), RecordError> {
        if self.waiting == 0 {
            return Ok(());
        }
        self.waiting = 0;
        write_columns(&mut self.writer, &mut self.columns).map_err(parquet_error(&self.path))
    }
}

fn write_columns(
    writer: &mut SerializedFileWriter<File>,
    columns: &mut [Column],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        let Some(mut chunk) = group.next_column()? else { break };
        column.write(&mut chunk)?;
        chunk.close()?;
    }
    group.close()?;
    Ok(())
}

fn schema<'a>(columns: impl Iterator<Item = (&'a str, Holds)>) -> Result<TypePtr, ParquetError> {
    let fields = columns.map(|(name, holds)| {
        let (physical, logical) = match holds {
            Holds::Numbers => (Physical::INT64, None),
            Holds::Ids => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Holds::Words => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL)
            .build()
            .map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("trace").with_fields(fields).build().map(Arc::new)
}

impl Column {
    fn new(holds: Holds) -> Self {
        let cells = match holds {
            Holds::Numbers => Cells::Numbers(Vec::new()),
            Holds::Ids => Cells::Ids(Vec::new()),
            Holds::Words => Cells::Words(Vec::new()),
        };
        Self { cells, present: Vec::new() }
    }

    fn push(&mut self, given: Given<'_>) {
        let held = match (&mut self.cells, given) {
            (Cells::Numbers(cells), Given::Number(number)) => {
                hold(cells, number.and_then(|number| i64::try_from(number).ok()))
            }
            // The bits of an unsigned number, as the logical type declares.
            (Cells::Ids(cells), Given::Id(id)) => hold(cells, Some(id.cast_signed())),
            (Cells::Words(cells), Given::Word(word)) => hold(cells, word.map(ByteArray::from)),
            _ => false,
        };
        self.present.push(i16::from(held));
    }

    fn write(&mut self, chunk: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let present = Some(self.present.as_slice());
        match &mut self.cells {
            Cells::Numbers(cells) => {
                chunk.typed::<Int64Type>().write_batch(cells, present, None)?;
                cells.clear();
            }
            Cells::Ids(cells) => {
                chunk.typed::<Int32Type>().write_batch(cells, present, None)?;
                cells.clear();
            }
            Cells::Words(cells) => {
                chunk.typed::<ByteArrayType>().write_batch(cells, present, None)?;
                cells.clear();
            }
        }
        self.present.clear();
        Ok(())
    }
}

/// Appends a value if there is one.
fn hold<T>(cells: &mut Vec<T>, value: Option<T>) -> bool {
    let held = value.is_some();
    cells.extend(value);
    held
}
