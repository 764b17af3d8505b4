//! `tare-load run`: one run, with its logs and its document.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use tare_load::LoadError;
use tare_load::drive::{self, End, Mark, Outcome, Progress};
use tare_load::plan::Plan;
use tare_load::protocol::cql::Cql;
use tare_load::protocol::mongodb::Mongodb;
use tare_load::protocol::mysql::Mysql;
use tare_load::protocol::postgresql::Postgresql;
use tare_load::protocol::resp::Resp;
use tare_load::report::{Document, Logs, table};

use crate::options::{ProtocolName, RunOptions};

/// Result of a run beyond its document.
pub(crate) struct Ended {
    pub end: End,
    /// Operations with a correct reply.
    pub right: u64,
    /// Operations without one.
    pub failed: u64,
}

/// What Ctrl-C and SIGTERM do.
pub(crate) struct Signals {
    /// Before and after the measurement they end the program at once: connecting and statements block.
    ends_at_once: Arc<AtomicBool>,
    interrupted: Arc<AtomicBool>,
}

impl Signals {
    pub(crate) fn watch() -> Result<Self, LoadError> {
        let signals = Self {
            ends_at_once: Arc::new(AtomicBool::new(true)),
            interrupted: Arc::new(AtomicBool::new(false)),
        };
        for signal in [SIGINT, SIGTERM] {
            let at_once = Arc::clone(&signals.ends_at_once);
            signal_hook::flag::register_conditional_shutdown(signal, 130, at_once)
                .map_err(LoadError::Thread)?;
            signal_hook::flag::register(signal, Arc::clone(&signals.interrupted))
                .map_err(LoadError::Thread)?;
        }
        Ok(signals)
    }
}

/// Runs a plan, and hands its progress on.
pub(crate) fn outcome_of(
    protocol: ProtocolName,
    plan: &Plan,
    signals: &Signals,
    observe: &mut dyn FnMut(Progress<'_>) -> Result<(), LoadError>,
) -> Result<Outcome, LoadError> {
    signals.ends_at_once.store(true, Ordering::SeqCst);
    let mut observe = |progress: Progress<'_>| {
        match progress {
            Progress::SetUp(..) => signals.ends_at_once.store(false, Ordering::SeqCst),
            Progress::After => signals.ends_at_once.store(true, Ordering::SeqCst),
            _ => {}
        }
        observe(progress)
    };
    let run = match protocol {
        ProtocolName::Redis => drive::run::<Resp>,
        ProtocolName::Mysql => drive::run::<Mysql>,
        ProtocolName::Postgresql => drive::run::<Postgresql>,
        ProtocolName::Cql => drive::run::<Cql>,
        ProtocolName::Mongodb => drive::run::<Mongodb>,
    };
    run(plan, &signals.interrupted, &mut observe)
}

/// Erases the line of progress in a terminal.
const ERASE: &str = "\r\x1b[K";

pub(crate) fn run(plan: &Plan, options: &RunOptions) -> Result<Ended, LoadError> {
    let signals = Signals::watch()?;
    let mut logs =
        options.logs.as_deref().map(|at| Logs::create(at, &plan.operations())).transpose()?;
    let mut document = Document::default();
    let mut mark = Mark::default();
    let shows = !options.progress && std::io::stderr().is_terminal();
    let erase = if shows { ERASE } else { "" };
    let mut observe = |progress: Progress<'_>| {
        match progress {
            Progress::Connected => eprintln!("tare-load: connected, waiting for the turns"),
            Progress::SetUp(_, begun) => mark = begun,
            Progress::After => {}
            Progress::Lost(why) => eprintln!("{erase}tare-load: connection lost: {why}"),
            Progress::Window(window) => {
                let figures = document.window(window, mark.monotonic_ns);
                if options.progress {
                    eprintln!("{}", json(serde_json::to_string(figures))?);
                } else if shows {
                    eprint!("{ERASE}{}", figures.line());
                }
                if let Some(logs) = &mut logs {
                    logs.write(window, mark)?;
                }
            }
        }
        Ok(())
    };
    let outcome = outcome_of(options.protocol, plan, &signals, &mut observe);
    eprint!("{erase}");
    let outcome = outcome?;
    let protocol = options.protocol.name();
    let mut out = std::io::stdout().lock();
    if options.json || !out.is_terminal() {
        json(serde_json::to_writer_pretty(&mut out, &document.finish(plan, protocol, &outcome)))?;
        writeln!(out)
    } else {
        write!(out, "{}", table(plan, protocol, &outcome))
    }
    .and_then(|()| out.flush())
    .map_err(LoadError::Output)?;
    Ok(Ended {
        right: outcome.measure.right(),
        failed: outcome.measure.failed() + outcome.measure.counts.missed,
        end: outcome.end,
    })
}

fn json<T>(written: serde_json::Result<T>) -> Result<T, LoadError> {
    written.map_err(|error| LoadError::Output(error.into()))
}
