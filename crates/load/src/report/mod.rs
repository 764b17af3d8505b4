//! What a run leaves: interval logs while it goes on, one document at its end.

mod document;
mod log;

pub use document::{Document, FORMAT};
pub use log::Logs;
