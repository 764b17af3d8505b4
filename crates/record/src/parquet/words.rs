//! Writing of the two tables with strings: targets and events.

use std::collections::BTreeMap;
use std::path::Path;

use ::parquet::basic::Compression;
use ::parquet::file::properties::WriterProperties;

use super::columns::{Columns, Given, Holds};
use crate::error::RecordError;
use crate::header::{Event, Target};

pub(super) fn write_targets(directory: &Path, targets: &[Target]) -> Result<(), RecordError> {
    let columns = [
        ("target", Holds::Ids),
        ("kind", Holds::Words),
        ("name", Holds::Words),
        ("detail", Holds::Words),
        ("opened_ns", Holds::Numbers),
        ("sources", Holds::Words),
    ];
    let mut file = create(&directory.join("target.parquet"), &columns)?;
    for target in targets {
        let sources = serde_json::json!(target.sources).to_string();
        let row = [
            Given::Id(target.id),
            Given::Word(Some(target.kind.word())),
            Given::Word(Some(&target.name)),
            Given::Word(Some(&target.detail)),
            Given::Number(Some(target.opened_ns)),
            Given::Word(Some(&sources)),
        ];
        file.push(row.into_iter())?;
    }
    file.close().map(|_| ())
}

pub(super) fn write_events(
    directory: &Path,
    events: &[Event],
    names: &BTreeMap<u32, String>,
) -> Result<(), RecordError> {
    let columns = [
        ("tick", Holds::Numbers),
        ("target", Holds::Ids),
        ("name", Holds::Words),
        ("at_ns", Holds::Numbers),
        ("what", Holds::Words),
        ("detail", Holds::Words),
    ];
    let mut file = create(&directory.join("event.parquet"), &columns)?;
    for event in events {
        let row = [
            Given::Number(Some(event.tick)),
            Given::Id(event.target),
            Given::Word(names.get(&event.target).map(String::as_str)),
            Given::Number(Some(event.at_ns)),
            Given::Word(Some(event.what.word())),
            Given::Word(Some(&event.detail)),
        ];
        file.push(row.into_iter())?;
    }
    file.close().map(|_| ())
}

fn create(path: &Path, columns: &[(&str, Holds)]) -> Result<Columns, RecordError> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    Columns::create(path, columns.iter().copied(), properties)
}
