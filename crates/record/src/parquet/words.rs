//! The two tables that hold words: what the targets are, and what happened to them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::file::properties::WriterProperties;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};

use super::{parquet_error, part_of};
use crate::error::RecordError;
use crate::header::{Event, Target};

pub(super) fn write_targets(directory: &Path, targets: &[Target]) -> Result<(), RecordError> {
    let of = |word: fn(&Target) -> String| -> ArrayRef {
        Arc::new(targets.iter().map(|target| Some(word(target))).collect::<StringArray>())
    };
    let columns = [
        ("target", ids(targets.iter().map(|target| target.id))),
        ("kind", of(|target| target.kind.word().to_owned())),
        ("name", of(|target| target.name.clone())),
        ("detail", of(|target| target.detail.clone())),
        ("opened_ns", numbers(targets.iter().map(|target| target.opened_ns))),
        ("sources", of(|target| serde_json::json!(target.sources).to_string())),
    ];
    write(&directory.join("target.parquet"), columns)
}

pub(super) fn write_events(
    directory: &Path,
    events: &[Event],
    names: &BTreeMap<u32, String>,
) -> Result<(), RecordError> {
    let who = events.iter().map(|event| names.get(&event.target).map(String::as_str));
    let columns = [
        ("tick", numbers(events.iter().map(|event| event.tick))),
        ("target", ids(events.iter().map(|event| event.target))),
        ("name", Arc::new(who.collect::<StringArray>()) as ArrayRef),
        ("at_ns", numbers(events.iter().map(|event| event.at_ns))),
        ("what", texts(events.iter().map(|event| event.what.word()))),
        ("detail", texts(events.iter().map(|event| event.detail.as_str()))),
    ];
    write(&directory.join("event.parquet"), columns)
}

fn ids(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<UInt32Array>())
}

fn numbers(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(values.map(|value| i64::try_from(value).ok()).collect::<Int64Array>())
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<StringArray>())
}

fn write<const N: usize>(path: &Path, columns: [(&str, ArrayRef); N]) -> Result<(), RecordError> {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, values)| (name, values, true)),
    )
    .map_err(|error| parquet_error(path)(error.into()))?;
    let part = part_of(path);
    let file = File::create(&part).map_err(|error| RecordError::io(&part, error))?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties))
        .map_err(parquet_error(path))?;
    writer.write(&batch).map_err(parquet_error(path))?;
    writer.close().map_err(parquet_error(path))?;
    fs::rename(&part, path).map_err(|error| RecordError::io(path, error))
}
