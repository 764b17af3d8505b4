//! Output of a run: interval logs during it, and one document at its end.

mod document;
mod log;

pub use document::{Document, FORMAT};
pub use log::Logs;
