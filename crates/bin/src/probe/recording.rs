//! Files in a recording's directory, and what they say about the recording.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Journal of the rows as they were written; removed once all rows are in tables.
pub(crate) const JOURNAL: &str = "journal.tare";
/// Header and footer of the recording, written with the tables.
pub(crate) const TRACE: &str = "trace.json";

/// Files of tables in a directory, by name.
pub(crate) fn tables(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(directory).map_err(|error| {
        Failure::Usage(format!("{}: {error}; give a directory of a recording", directory.display()))
    })?;
    let paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    let is_table =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "parquet");
    let mut tables: Vec<PathBuf> = paths.into_iter().filter(is_table).collect();
    tables.sort();
    Ok(tables)
}

/// Whether the recording reports that its end or some of its rows are missing.
pub(crate) fn is_incomplete(directory: &Path) -> bool {
    let text = fs::read_to_string(directory.join(TRACE)).unwrap_or_default();
    let trace: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    trace.is_some_and(|trace| trace["complete"] == false)
}
