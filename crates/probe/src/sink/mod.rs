//! Where rows go: a journal, the terminal, a scraper.

pub mod board;
pub mod journal;

use tare_record::RecordError;
use tare_record::header::{Event, Footer, Header, Target};
use tare_record::row::Row;

/// Takes what the sampling thread produced, on the pump's thread.
///
/// An error ends the recording: a trace is whole or it is an error, never quietly short.
pub trait Sink: Send {
    /// # Errors
    /// Where the sink cannot begin.
    fn begin(&mut self, header: &Header) -> Result<(), RecordError>;
    /// # Errors
    /// Where the sink cannot take it.
    fn target(&mut self, target: &Target) -> Result<(), RecordError>;
    /// # Errors
    /// Where the sink cannot take it.
    fn event(&mut self, event: &Event) -> Result<(), RecordError>;
    fn row(&mut self, row: Row<'_>);
    /// Called between two rows at most half a second of rows apart: `upto` is their end in the tail.
    ///
    /// # Errors
    /// Where the sink cannot go on.
    fn seal(&mut self, _upto: u64) -> Result<(), RecordError> {
        Ok(())
    }
    /// Called after each batch of rows, which ends at `upto` in the tail: they are kept there no longer.
    ///
    /// # Errors
    /// Where the sink cannot keep what it took.
    fn flush(&mut self, upto: u64) -> Result<(), RecordError>;
    /// Whether others look at what it takes while it goes on, so that it has to be up to date.
    fn is_watched(&self) -> bool {
        false
    }
    /// # Errors
    /// Where the sink cannot end well.
    fn finish(&mut self, footer: &Footer) -> Result<(), RecordError>;
}
