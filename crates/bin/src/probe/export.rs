//! `tare-probe export`: a table of a trace as CSV or JSON lines, raw or as rates.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tare_record::parquet::read::{self, FileColumn};

use crate::failure::Failure;
use crate::options::{ExportOptions, Format};
use crate::rates::Rates;
use crate::recording::{JOURNAL, is_incomplete, tables};
use crate::shown::{Shown, csv, json};

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

/// Tables of a recording, with their numbers of rows.
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

fn no_tables(directory: &Path) -> Failure {
    let is_recorded = directory.join(JOURNAL).exists();
    let directory = directory.display();
    Failure::Usage(if is_recorded {
        format!(
            "{directory}: has no tables yet; `tare-probe convert {directory}` makes them from its journal"
        )
    } else {
        format!("{directory}: contains no tables; give a directory that `tare-probe record` wrote")
    })
}

fn print(options: &ExportOptions, table: &str) -> Result<(), Failure> {
    let path = options.directory.join(format!("{table}.parquet"));
    if !path.is_file() {
        if tables(&options.directory)?.is_empty() {
            return Err(no_tables(&options.directory));
        }
        let directory = options.directory.display();
        return Err(Failure::Usage(format!(
            "{}: no such table in this trace; `tare-probe export {directory}` lists the tables",
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
