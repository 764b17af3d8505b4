//! What the options request, before it becomes a plan.

use std::sync::Arc;

use tare_load::protocol::{Access, Statement};
use tare_load::workload::Workload;
use tare_load::workload::ycsb::Client;

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
