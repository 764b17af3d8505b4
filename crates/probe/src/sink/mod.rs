//! Receivers of rows: a journal, the terminal, a scraper.

pub mod board;
pub mod journal;

use tare_record::RecordError;
use tare_record::header::{Event, Footer, Header, Target};
use tare_record::row::Row;

/// Receives the sampling thread's rows, on the pump's thread.
///
/// An error ends the recording, so that a trace is never incomplete without an error.
pub trait Sink: Send {
    /// # Errors
    /// The sink cannot begin.
    fn begin(&mut self, header: &Header) -> Result<(), RecordError>;
    /// # Errors
    /// Where the sink cannot take it.
    fn target(&mut self, target: &Target) -> Result<(), RecordError>;
    /// # Errors
    /// Where the sink cannot take it.
    fn event(&mut self, event: &Event) -> Result<(), RecordError>;
    fn row(&mut self, row: Row<'_>);
    /// Called after at most half a second of rows; `upto` is their end in the tail.
    ///
    /// # Errors
    /// The sink cannot continue.
    fn seal(&mut self, _upto: u64) -> Result<(), RecordError> {
        Ok(())
    }
    /// Called after each batch of rows, which ends at `upto` in the tail; afterwards, the tail drops them.
    ///
    /// # Errors
    /// The sink cannot store the rows.
    fn flush(&mut self, upto: u64) -> Result<(), RecordError>;
    /// Whether others read its content during the recording, so that it must be up to date.
    fn is_watched(&self) -> bool {
        false
    }
    /// # Errors
    /// The sink cannot be completed.
    fn finish(&mut self, footer: &Footer) -> Result<(), RecordError>;
}
