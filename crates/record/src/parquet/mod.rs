//! Conversion of a journal to a directory of Parquet files and a `trace.json`.

mod columns;
mod profile;
pub mod read;
mod sheet;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ::parquet::basic::{Compression, Encoding};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use serde::{Deserialize, Serialize};

use crate::code;
use crate::error::RecordError;
use crate::header::{Event, Footer, Header, Recovered, Target, What};
use crate::inspect::Inspector;
use crate::journal::{Entry, Reader};
use crate::rate;
use crate::tables;
pub use profile::{begin_profile, write_profile};
use sheet::Sheet;

/// Key in a file's footer of the facts about its columns, as JSON by column.
const COLUMNS_KEY: &str = "tare.columns";

/// Facts about one column, as a table's file has them.
#[derive(Debug, Deserialize, Serialize)]
struct ColumnFacts {
    kind: String,
    /// Step in the column's own unit.
    quantum: u64,
    source: String,
    meaning: String,
}

/// Result of a conversion: the content of `trace.json`.
#[derive(Debug, Serialize)]
pub struct Trace {
    pub header: Header,
    /// `None`: the recording was cut short.
    pub footer: Option<Footer>,
    /// Whether there is a footer, and neither rows were dropped nor bytes torn off.
    pub complete: bool,
    pub torn_bytes: u64,
    /// What was recovered, if the recording was cut short and had a tail.
    pub recovered: Option<Recovered>,
    /// Where reading stopped, if the journal was damaged and salvaged.
    pub damaged: Option<String>,
    /// Number of rows of each table that is not empty.
    pub rows: BTreeMap<String, u64>,
    /// Step of each column that is not exact, in the column's own unit.
    pub quanta: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Whether to stop at a damaged frame or to keep everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDamage {
    Stop,
    Salvage,
}

/// Reads `journal` and writes the tables into `directory`, which must exist.
///
/// # Errors
/// The journal is damaged (and not salvaged), or a file cannot be written.
pub fn convert(
    journal: &Path,
    directory: &Path,
    on_damage: OnDamage,
) -> Result<Trace, RecordError> {
    let mut conversion = Conversion::begin(Reader::open(journal)?, directory)?;
    let damaged = match conversion.read_all() {
        Ok(()) => None,
        Err(error @ RecordError::Damaged { .. }) if on_damage == OnDamage::Salvage => {
            Some(error.to_string())
        }
        Err(error) => return Err(error),
    };
    conversion.finish(damaged)
}

struct Conversion {
    reader: Reader,
    directory: PathBuf,
    header: Header,
    targets: Vec<Target>,
    names: BTreeMap<u32, String>,
    events: Vec<Event>,
    footer: Option<Footer>,
    recovered: Option<Recovered>,
    /// `None`: a journal of version 1, which contains the events itself.
    inspector: Option<Inspector>,
    sheets: Vec<Option<Sheet>>,
}

impl Conversion {
    fn begin(mut reader: Reader, directory: &Path) -> Result<Self, RecordError> {
        let header = match reader.entry()? {
            Some(Entry::Header(header)) => header,
            Some(_) => return Err(reader.damaged("a journal begins with its header")),
            None => return Err(RecordError::NoHeader { path: reader.path().to_path_buf() }),
        };
        Ok(Self {
            inspector: (reader.version() > 1).then(Inspector::default),
            recovered: None,
            reader,
            directory: directory.to_path_buf(),
            header: *header,
            targets: Vec::new(),
            names: BTreeMap::new(),
            events: Vec::new(),
            footer: None,
            sheets: tables::ALL.iter().map(|_| None).collect(),
        })
    }

    fn read_all(&mut self) -> Result<(), RecordError> {
        while let Some(entry) = self.reader.entry()? {
            match entry {
                Entry::Header(_) => return Err(self.reader.damaged("a second header")),
                Entry::Target(target) => {
                    self.names.insert(target.id, target.name.clone());
                    self.targets.push(target);
                }
                Entry::Event(event) => {
                    if let (Some(inspector), What::Vanished) = (&mut self.inspector, event.what) {
                        inspector.forget(event.target);
                    }
                    self.events.push(event);
                }
                Entry::Footer(footer) => self.footer = Some(footer),
                Entry::Recovered(recovered) => self.recovered = Some(recovered),
                Entry::Rows { packed, .. } => {
                    let (sheets, names) = (&mut self.sheets, &self.names);
                    let (directory, header) = (&self.directory, &self.header);
                    let (inspector, events) = (&mut self.inspector, &mut self.events);
                    let mut failed = None;
                    let whole = code::unpack(packed, |row| {
                        if failed.is_some() {
                            return;
                        }
                        if let Some(inspector) = inspector {
                            inspector.look(row, |event| events.push(event));
                        }
                        let at = row.key.table as usize;
                        let name = names.get(&row.key.target).map(String::as_str);
                        let pushed = match &mut sheets[at] {
                            Some(sheet) => sheet.push(row, name),
                            empty => Sheet::create(directory, tables::ALL[at], header)
                                .and_then(|sheet| empty.insert(sheet).push(row, name)),
                        };
                        failed = pushed.err();
                    });
                    if let Some(error) = failed {
                        return Err(error);
                    }
                    if whole.is_none() {
                        return Err(self.reader.damaged("its rows do not unpack"));
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, damaged: Option<String>) -> Result<Trace, RecordError> {
        let mut rows = BTreeMap::new();
        for sheet in self.sheets.into_iter().flatten() {
            let (name, count) = sheet.close()?;
            rows.insert(name.to_owned(), count);
        }
        words::write_targets(&self.directory, &self.targets)?;
        self.events.sort_by_key(|event| event.at_ns);
        words::write_events(&self.directory, &self.events, &self.names)?;
        let saved_from = self.recovered.as_ref().map_or(0, |recovered| recovered.torn_bytes);
        let torn_bytes = self.reader.torn_bytes() + saved_from;
        let whole = self.footer.as_ref().is_some_and(|footer| footer.dropped_rows == 0);
        let trace = Trace {
            complete: whole && torn_bytes == 0 && damaged.is_none(),
            quanta: quanta(&self.header),
            header: self.header,
            footer: self.footer,
            torn_bytes,
            recovered: self.recovered,
            damaged,
            rows,
        };
        write_json(&self.directory.join("trace.json"), &trace)?;
        Ok(trace)
    }
}

/// Steps of all columns that are not exact, by table and column.
fn quanta(header: &Header) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    for table in tables::ALL {
        let steps: BTreeMap<String, u64> = table
            .columns
            .iter()
            .map(|column| {
                let step =
                    rate::quantum_in_units(column.name, column.quantum, column.kind, header.ticks);
                (column.name.to_owned(), step)
            })
            .filter(|(_, step)| *step > 0)
            .collect();
        if !steps.is_empty() {
            all.insert(table.name.to_owned(), steps);
        }
    }
    all
}

fn write_json(path: &Path, trace: &Trace) -> Result<(), RecordError> {
    let mut text = serde_json::to_string_pretty(trace)
        .map_err(|source| RecordError::Json { path: path.to_path_buf(), source })?;
    text.push('\n');
    must_be_replaceable(path)?;
    let part = path.with_extension("json.part");
    fs::write(&part, text).map_err(|error| RecordError::io(&part, error))?;
    fs::rename(&part, path).map_err(|error| RecordError::io(path, error))
}

/// Deltas for numbers, which need few bits per row for counters; a dictionary for strings.
fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by(format!("tare-probe {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_column_encoding("name".into(), Encoding::PLAIN)
        .set_column_dictionary_enabled("name".into(), true)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build()
}

/// Refuses to replace anything but a file: renaming would remove a device node, link or pipe.
fn must_be_replaceable(path: &Path) -> Result<(), RecordError> {
    match fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => Err(RecordError::io(
            path,
            io::Error::new(io::ErrorKind::AlreadyExists, "it exists and is no regular file"),
        )),
        _ => Ok(()),
    }
}

/// Temporary name of a file until it is complete.
fn part_of(path: &Path) -> PathBuf {
    path.with_extension("parquet.part")
}

fn parquet_error(path: &Path) -> impl FnOnce(::parquet::errors::ParquetError) -> RecordError + '_ {
    move |source| RecordError::Parquet { path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_or_nothing_is_replaced() {
        let folder = tempfile::tempdir().expect("a directory");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        assert!(must_be_replaceable(&file).is_ok());
        assert!(must_be_replaceable(&folder.path().join("new")).is_ok());
        assert!(must_be_replaceable(&link).is_err());
        assert!(must_be_replaceable(Path::new("/dev/null")).is_err());
    }
}
