//! What the options request, before it becomes a plan.

use std::sync::Arc;

use tare_load::LoadError;
use tare_load::protocol::{Access, Statement};
use tare_load::workload::Workload;
use tare_load::workload::sysbench::Engine;
use tare_load::workload::ycsb::Client;

use crate::options::{ProtocolName, RunOptions};

/// Which of the two sending subcommands runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Run,
    Load,
}

/// The operations to send, and the settings that their source implies.
pub(crate) struct LoadRequest {
    pub access: Access,
    pub before: Vec<Statement>,
    pub workload: Arc<dyn Workload>,
    pub after: Vec<Statement>,
    /// Defaults for options that the command line does not set.
    pub client: Client,
}

pub(crate) fn refuse_what_loading_decides(options: &RunOptions) -> Result<(), LoadError> {
    let meaningless = [
        ("--duration", options.duration.is_some()),
        ("--operations", options.operations.is_some()),
        ("--warm-up", options.warm_up > 0.0),
    ];
    match meaningless.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(LoadError::Usage(format!(
            "{option} has no effect here: `load` ends when everything is inserted"
        ))),
    }
}

/// Rows come as fast as the server takes them.
pub(crate) fn refuse_a_rate(options: &RunOptions) -> Result<(), LoadError> {
    if options.rate.is_some() || options.stages.is_some() || options.trace.is_some() {
        return Err(LoadError::Usage("`load` has no rate: leave it out".to_owned()));
    }
    refuse_what_loading_decides(options)
}

/// The SQL of the server.
pub(crate) fn engine(protocol: ProtocolName, option: &str) -> Result<Engine, LoadError> {
    match protocol {
        ProtocolName::Mysql => Ok(Engine::Mysql),
        ProtocolName::Postgresql => Ok(Engine::Postgresql),
        ProtocolName::Redis | ProtocolName::Cql | ProtocolName::Mongodb => {
            let what = format!("{option} needs SQL: --protocol mysql or postgresql");
            Err(LoadError::Usage(what))
        }
    }
}
