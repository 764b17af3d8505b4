//! `tare-probe export`: a table of a trace as CSV or JSON lines, raw or as rates.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tare_record::parquet::read::{self, FileColumn, Value};

use crate::failure::Failure;
use crate::options::{ExportOptions, Format};
use crate::rates::Rates;
use crate::record::JOURNAL;

pub(crate) fn run(options: &ExportOptions) -> Result<(), Failure> {
    if is_incomplete(&options.directory) {
        eprintln!(
            "tare-probe: {0}: the trace is not complete; {0}/trace.json says what is missing",
            options.directory.display()
        );
    }
    match &options.table {
        Some(table) => print(options, table),
        None => list(&options.directory),
    }
}

/// The tables of a recording, with their rows.
fn list(directory: &Path) -> Result<(), Failure> {
    let tables = tables(directory)?;
    if tables.is_empty() {
        return Err(no_tables(directory));
    }
    let mut text = "table,rows\n".to_owned();
    for path in &tables {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let _ = writeln!(text, "{name},{}", read::rows_of(path)?);
    }
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

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

fn no_tables(directory: &Path) -> Failure {
    let is_recorded = directory.join(JOURNAL).exists();
    let directory = directory.display();
    Failure::Usage(if is_recorded {
        format!(
            "{directory}: has no tables yet; `tare-probe convert {directory}` makes them of its journal"
        )
    } else {
        format!("{directory}: holds no tables; give a directory that `tare-probe record` wrote")
    })
}

/// Whether the recording says of itself that its end is missing, or rows of it.
fn is_incomplete(directory: &Path) -> bool {
    let text = fs::read_to_string(directory.join("trace.json")).unwrap_or_default();
    let told: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    told.is_some_and(|told| told["complete"] == false)
}

fn print(options: &ExportOptions, table: &str) -> Result<(), Failure> {
    let path = options.directory.join(format!("{table}.parquet"));
    if !path.is_file() {
        if tables(&options.directory)?.is_empty() {
            return Err(no_tables(&options.directory));
        }
        let directory = options.directory.display();
        return Err(Failure::Usage(format!(
            "{}: no such table in this trace; `tare-probe export {directory}` lists which there are",
            path.display(),
        )));
    }
    let mut page = Page::new(options.format);
    let shared = std::cell::RefCell::new((&mut page, None::<Rates>));
    let outcome = read::read_table::<Failure>(
        &path,
        |columns| {
            let (page, rates) = &mut *shared.borrow_mut();
            *rates = options.rates.then(|| Rates::new(columns));
            let names = rates.as_ref().map_or_else(|| names_of(columns), Rates::names);
            page.begin(names).map_err(Failure::from)
        },
        |row| {
            let (page, rates) = &mut *shared.borrow_mut();
            match rates {
                Some(rates) => rates.next(row).map_or(Ok(()), |row| page.row(&row)),
                None => page.row(&row.iter().map(Shown::from).collect::<Vec<_>>()),
            }
            .map_err(Failure::from)
        },
    );
    match outcome.and_then(|()| page.end().map_err(Failure::from)) {
        // A reader that had enough (`| head`) is no failure.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

fn names_of(columns: &[FileColumn]) -> Vec<String> {
    columns.iter().map(|column| column.name.clone()).collect()
}

/// A value on its way out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shown {
    Missing,
    Integer(i64),
    Real(f64),
    Text(String),
}

impl From<&Value> for Shown {
    fn from(value: &Value) -> Self {
        match value {
            Value::Missing => Self::Missing,
            Value::Number(number) => Self::Integer(*number),
            Value::Text(text) => Self::Text(text.clone()),
        }
    }
}

struct Page {
    format: Format,
    names: Vec<String>,
    out: BufWriter<io::Stdout>,
}

impl Page {
    fn new(format: Format) -> Self {
        Self { format, names: Vec::new(), out: BufWriter::new(io::stdout()) }
    }

    fn begin(&mut self, names: Vec<String>) -> io::Result<()> {
        self.names = names;
        match self.format {
            Format::Csv => writeln!(self.out, "{}", self.names.join(",")),
            Format::Jsonl => Ok(()),
        }
    }

    fn row(&mut self, row: &[Shown]) -> io::Result<()> {
        match self.format {
            Format::Csv => {
                let cells: Vec<String> = row.iter().map(csv).collect();
                writeln!(self.out, "{}", cells.join(","))
            }
            Format::Jsonl => {
                let pairs = self.names.iter().zip(row);
                let pairs: Vec<String> =
                    pairs.map(|(name, value)| format!("\"{name}\":{}", json(value))).collect();
                writeln!(self.out, "{{{}}}", pairs.join(","))
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A missing value is an empty cell; text is quoted where it must be (RFC 4180).
fn csv(value: &Shown) -> String {
    match value {
        Shown::Missing => String::new(),
        Shown::Integer(number) => number.to_string(),
        Shown::Real(number) => number.to_string(),
        Shown::Text(text) if text.contains(['"', ',', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Shown::Text(text) => text.clone(),
    }
}

fn json(value: &Shown) -> String {
    match value {
        Shown::Missing => "null".to_owned(),
        Shown::Integer(number) => number.to_string(),
        Shown::Real(number) => number.to_string(),
        Shown::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_is_empty_in_csv_and_null_in_json() {
        assert_eq!(csv(&Shown::Missing), "");
        assert_eq!(json(&Shown::Missing), "null");
        assert_eq!(csv(&Shown::Integer(0)), "0");
    }

    #[test]
    fn words_cannot_break_a_line() {
        assert_eq!(csv(&Shown::Text("a,\"b\"".to_owned())), "\"a,\"\"b\"\"\"");
        assert_eq!(json(&Shown::Text("a\"\n".to_owned())), "\"a\\\"\\n\"");
    }
}
