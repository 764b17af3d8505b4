//! Output of a run: interval logs during it, and at its end one document, or a table for a person.

pub mod compare;
mod document;
mod figures;
mod log;
#[cfg(test)]
mod schema;
mod table;

pub use document::{FORMAT, Finished, WindowFigures};
pub use figures::Document;
pub use log::Logs;
pub use table::table;
