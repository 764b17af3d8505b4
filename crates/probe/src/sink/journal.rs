//! Writing of everything to a journal on disk.

use std::path::{Path, PathBuf};

use tare_record::RecordError;
use tare_record::header::{Event, Footer, Header, Target};
use tare_record::journal::Writer;
use tare_record::row::Row;

use super::Sink;

pub struct JournalSink {
    path: PathBuf,
    /// Set by [`Sink::begin`].
    writer: Option<Writer>,
}

impl JournalSink {
    /// The file is created when the recording begins, and must not exist before.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), writer: None }
    }

    fn with(
        &mut self,
        act: impl FnOnce(&mut Writer) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        self.writer.as_mut().map_or(Ok(()), act)
    }
}

impl Sink for JournalSink {
    fn begin(&mut self, header: &Header) -> Result<(), RecordError> {
        self.writer = Some(Writer::create(&self.path, header)?);
        Ok(())
    }

    fn target(&mut self, target: &Target) -> Result<(), RecordError> {
        self.with(|writer| writer.target(target))
    }

    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        self.with(|writer| writer.event(event))
    }

    fn row(&mut self, row: Row<'_>) {
        if let Some(writer) = &mut self.writer {
            writer.push(row);
        }
    }

    fn seal(&mut self, upto: u64) -> Result<(), RecordError> {
        self.with(|writer| writer.seal(upto))
    }

    fn flush(&mut self, upto: u64) -> Result<(), RecordError> {
        self.with(|writer| writer.flush(upto))
    }

    fn finish(&mut self, footer: &Footer) -> Result<(), RecordError> {
        self.with(|writer| writer.finish(footer))
    }
}
