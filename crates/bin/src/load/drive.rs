//! `tare-load run`: one run, with its logs and its document.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use tare_load::LoadError;
use tare_load::drive::{self, End, Mark, Progress};
use tare_load::plan::Plan;
use tare_load::protocol::Protocol;
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

pub(crate) fn run(plan: &Plan, options: &RunOptions) -> Result<Ended, LoadError> {
    match options.protocol {
        ProtocolName::Redis => run_with::<Resp>(plan, options),
        ProtocolName::Mysql => run_with::<Mysql>(plan, options),
        ProtocolName::Postgresql => run_with::<Postgresql>(plan, options),
        ProtocolName::Cql => run_with::<Cql>(plan, options),
        ProtocolName::Mongodb => run_with::<Mongodb>(plan, options),
    }
}

fn run_with<P: Protocol>(plan: &Plan, options: &RunOptions) -> Result<Ended, LoadError> {
    // Before and after the measurement, a signal ends the program at once: connecting and statements block.
    let ends_at_once = Arc::new(AtomicBool::new(true));
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&ends_at_once))
            .map_err(LoadError::Thread)?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).map_err(LoadError::Thread)?;
    }
    let mut logs =
        options.logs.as_deref().map(|at| Logs::create(at, &plan.operations())).transpose()?;
    let mut document = Document::default();
    let mut mark = Mark::default();
    let mut observe = |progress: Progress<'_>| {
        match progress {
            Progress::Connected => eprintln!("tare-load: connected, waiting for the turns"),
            Progress::SetUp(_, found) => {
                ends_at_once.store(false, Ordering::SeqCst);
                mark = found;
            }
            Progress::After => ends_at_once.store(true, Ordering::SeqCst),
            Progress::Lost(why) => eprintln!("tare-load: connection lost: {why}"),
            Progress::Window(window) => {
                let line = document.window(window, mark.monotonic_ns);
                if options.progress {
                    eprintln!("{}", json(serde_json::to_string(line))?);
                }
                if let Some(logs) = &mut logs {
                    logs.write(window, mark)?;
                }
            }
        }
        Ok(())
    };
    let outcome = drive::run::<P>(plan, &interrupted, &mut observe)?;
    let mut out = std::io::stdout().lock();
    if options.json || !out.is_terminal() {
        json(serde_json::to_writer_pretty(&mut out, &document.finish(plan, P::NAME, &outcome)))?;
        writeln!(out)
    } else {
        write!(out, "{}", table(plan, P::NAME, &outcome))
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
