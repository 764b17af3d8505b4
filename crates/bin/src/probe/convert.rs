//! `tare-probe convert`.

use std::fs;
use std::path::Path;

use tare_record::header::Recovered;
use tare_record::journal;
use tare_record::parquet::{self, OnDamage, Trace};

use crate::failure::Failure;
use crate::options::ConvertOptions;
use crate::recording::{JOURNAL, TRACE};

pub(crate) fn run(options: &ConvertOptions) -> Result<(), Failure> {
    let on_damage = if options.salvage { OnDamage::Salvage } else { OnDamage::Stop };
    convert(&options.directory, on_damage, options.keep_journal)
}

/// Converts the journal in a directory to Parquet, and removes the journal once every table is written.
pub(crate) fn convert(directory: &Path, on_damage: OnDamage, keep: bool) -> Result<(), Failure> {
    let journal = directory.join(JOURNAL);
    if !journal.exists() {
        let converted = directory.join(TRACE).exists();
        let directory = directory.display();
        return Err(Failure::Usage(if converted {
            format!("{directory}: is already converted; `tare-probe export {directory}` shows it")
        } else {
            format!("{directory}: contains no recording; `tare-probe record --out DIR` makes one")
        }));
    }
    let _held = journal::recover(&journal)?;
    let trace = parquet::convert(&journal, directory, on_damage)?;
    if !trace.complete {
        eprintln!("tare-probe: {}: {}", directory.display(), incomplete(&trace));
    }
    if !keep && trace.damaged.is_none() {
        fs::remove_file(&journal)?;
    }
    Ok(())
}

fn incomplete(trace: &Trace) -> String {
    if let Some(damage) = &trace.damaged {
        return format!("the trace is not complete: {damage}");
    }
    if let Some(footer) = &trace.footer {
        return format!("the trace is not complete: {} rows were dropped", footer.dropped_rows);
    }
    match &trace.recovered {
        Some(Recovered { missing: None, rows, .. }) => format!(
            "the recording was cut short: {rows} rows that waited in its tail are saved, up to the last whole one"
        ),
        Some(Recovered { missing: Some(why), .. }) => {
            format!(
                "the recording was cut short, and up to its last ten seconds are missing: {why}"
            )
        }
        None => format!(
            "the recording was cut short: up to its last second is missing ({} bytes of a torn frame left out)",
            trace.torn_bytes
        ),
    }
}
