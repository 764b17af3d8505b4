//! `tare-probe record`.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use signal_hook::iterator::Signals;
use tare_probe::discover::Mailbox;
use tare_probe::session::{self, Config, TailPlace};
use tare_probe::sink::Sink;
use tare_probe::sink::board::SharedBoard;
use tare_probe::sink::journal::JournalSink;
use tare_probe::sys;
use tare_record::header::Footer;
use tare_record::parquet::OnDamage;
use tare_record::tail;

use crate::convert;
use crate::failure::Failure;
use crate::options::RecordOptions;
use crate::recording::{JOURNAL, TRACE, tables};
use crate::serve;
use crate::signals::stop_on_signals;
use crate::specs;

pub(crate) fn run(options: &RecordOptions) -> Result<(), Failure> {
    let config = options.sampling.config(options.duration)?;
    let journal = prepare(&options.out)?;
    let footer = record(options, config, journal).inspect_err(|_| {
        // Only a directory in which nothing was recorded is taken back: others are not empty.
        let _ = fs::remove_dir(&options.out);
    })?;
    tell(&footer);
    if options.no_convert {
        return Ok(());
    }
    convert::convert(&options.out, OnDamage::Stop, options.keep_journal)
}

fn record(
    options: &RecordOptions,
    mut config: Config,
    journal: PathBuf,
) -> Result<Footer, Failure> {
    let mut sinks: Vec<Box<dyn Sink>> = vec![Box::new(JournalSink::new(&journal))];
    if let Some(address) = options.prometheus {
        let board = SharedBoard::default();
        serve::start(address, board.clone())?;
        sinks.push(Box::new(board));
    }
    config.tail = Some(TailPlace { directory: PathBuf::from(tail::DIRECTORY), journal });
    if let Some(file) = &options.targets {
        config.mailbox = Some(read_on_hangup(file)?);
    }
    Ok(session::record(&config, sinks, &stop_on_signals()?)?)
}

/// Makes the directory and refuses one that holds a recording.
fn prepare(directory: &Path) -> Result<PathBuf, Failure> {
    fs::create_dir_all(directory).map_err(|error| {
        Failure::Usage(format!("{}: {error}; choose another --out", directory.display()))
    })?;
    let journal = directory.join(JOURNAL);
    let held = if journal.exists() || directory.join(TRACE).exists() {
        "a recording"
    } else if !tables(directory)?.is_empty() {
        "Parquet files"
    } else {
        return Ok(journal);
    };
    let directory = directory.display();
    Err(Failure::Usage(format!("{directory}: already contains {held}; choose another --out")))
}

/// A mailbox into which a file's targets are put on each SIGHUP.
pub(crate) fn read_on_hangup(file: &Path) -> Result<Mailbox, Failure> {
    let mailbox = Mailbox::default();
    let (handed_to, file) = (mailbox.clone(), file.to_owned());
    let mut signals = Signals::new([signal_hook::consts::SIGHUP])?;
    sys::take_stop_signals(false);
    thread::Builder::new().name("targets".to_owned()).spawn(move || {
        for _ in signals.forever() {
            let read = fs::read_to_string(&file).map_err(|error| error.to_string());
            match read.and_then(|text| specs::targets(&text)) {
                Ok(specs) => handed_to.put(specs),
                Err(error) => eprintln!("tare-probe: --targets {}: {error}", file.display()),
            }
        }
    })?;
    Ok(mailbox)
}

#[allow(clippy::cast_precision_loss)] // for people
fn tell(footer: &Footer) {
    eprintln!(
        "tare-probe: {} {}, {} missed, lateness p99 {:.0} µs, max {:.0} µs, CPU {:.1} ms, {:.1} MB resident",
        footer.ticks,
        if footer.ticks == 1 { "tick" } else { "ticks" },
        footer.missed_ticks,
        footer.lateness_p99_ns as f64 / 1e3,
        footer.lateness_max_ns as f64 / 1e3,
        footer.probe_cpu_ns as f64 / 1e6,
        footer.peak_resident_bytes as f64 / 1e6,
    );
}
