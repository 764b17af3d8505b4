//! `tare-load run`: one run, with its logs and its document.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
use tare_load::report::{Document, Logs};

use crate::options::{ProtocolName, RunOptions};

/// Result of a run beyond its document.
pub(crate) struct Ended {
    pub end: End,
    /// Operations without a correct reply.
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
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).map_err(LoadError::Thread)?;
    }
    let mut logs =
        options.logs.as_deref().map(|at| Logs::create(at, plan.workload.kinds())).transpose()?;
    let mut document = Document::default();
    let mut mark = Mark::default();
    let mut observe = |progress: Progress<'_>| {
        match progress {
            Progress::SetUp(_, found) => mark = found,
            Progress::Lost(why) => eprintln!("tare-load: connection lost: {why}"),
            Progress::Window(window) => {
                let line = document.window(window, mark.monotonic_ns);
                if options.progress {
                    eprintln!("{line}");
                }
                if let Some(logs) = &mut logs {
                    logs.write(window, mark)?;
                }
            }
        }
        Ok(())
    };
    let outcome = drive::run::<P>(plan, &interrupted, &mut observe)?;
    let document = document.finish(plan, P::NAME, &outcome);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{document:#}").and_then(|()| out.flush()).map_err(LoadError::Output)?;
    Ok(Ended { failed: outcome.measure.failed() + outcome.measure.counts.missed, end: outcome.end })
}
