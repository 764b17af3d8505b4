//! Output of a run: interval logs during it, and at its end one document, or a table for a person.

mod document;
mod log;
mod table;

pub use document::{Document, FORMAT};
pub use log::Logs;
pub use table::table;
