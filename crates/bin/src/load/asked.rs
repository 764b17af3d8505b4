//! What the options ask for, before it is a plan.

use std::sync::Arc;

use tare_load::protocol::{Access, Statement};
use tare_load::workload::Workload;
use tare_load::workload::ycsb::Client;

/// Which of the two subcommands that send is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Run,
    Load,
}

/// What is to be done, and what that says of how.
pub(crate) struct Asked {
    pub access: Access,
    pub before: Vec<Statement>,
    pub workload: Arc<dyn Workload>,
    pub after: Vec<Statement>,
    /// What holds where the command line says nothing.
    pub client: Client,
}
