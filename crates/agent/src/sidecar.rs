//! For an agent that is not root: a container of the engine's does what only root or the data's owners may.
//!
//! tare has told how its own sidecar is made (python/tare/sites/sidecar/); one like it runs a single program.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::Failure;
use crate::engine::Engine;
use crate::ledger::Ledger;

static MADE: AtomicU32 = AtomicU32::new(0);

/// `wanted`: what the engine is asked for, but for the program.
pub(crate) struct Sidecar<'a> {
    pub(crate) engine: Engine<'a>,
    pub(crate) wanted: &'a Value,
    pub(crate) ledger: &'a Ledger,
}

impl Sidecar<'_> {
    /// Run a program to its end. The container stands in the ledger while it is there.
    pub(crate) fn run(&self, argv: &[&str]) -> Result<(), Failure> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("tare-sidecar-{}-{number}", std::process::id());
        let mut wanted = self.wanted.clone();
        *wanted.get_mut("Cmd").ok_or("nobody has told how a sidecar is made")? = argv.into();
        self.ledger.note("container".into(), name.clone(), false)?;
        let done = self.engine.run_once(&name, &wanted);
        self.engine.remove("container", &name)?;
        self.ledger.forget("container".into(), name)?;
        done
    }
}
