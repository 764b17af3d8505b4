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
    /// Called after each batch of rows.
    ///
    /// # Errors
    /// Where the sink cannot keep what it took.
    fn flush(&mut self) -> Result<(), RecordError>;
    /// # Errors
    /// Where the sink cannot end well.
    fn finish(&mut self, footer: &Footer) -> Result<(), RecordError>;
}
