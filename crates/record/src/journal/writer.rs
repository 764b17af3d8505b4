//! Appends frames.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{FRAME_HEAD, FrameKind, MAGIC, checksum};
use crate::code::Packer;
use crate::error::RecordError;
use crate::header::{Event, Footer, Header, Target};
use crate::row::Row;

/// Appends frames to a journal; nothing is kept back between calls of [`Writer::flush`].
pub struct Writer<W: Write = File> {
    sink: W,
    path: PathBuf,
    packer: Packer,
    frame: Vec<u8>,
    bytes: u64,
}

impl Writer<File> {
    /// Starts a journal in a file that must not exist yet.
    ///
    /// # Errors
    /// Where the file exists, cannot be made, or the header cannot be written.
    pub fn create(path: &Path, header: &Header) -> Result<Self, RecordError> {
        let sink = File::create_new(path).map_err(|error| RecordError::io(path, error))?;
        Self::new(sink, path, header)
    }
}

impl<W: Write> Writer<W> {
    /// Starts a journal on any sink; `path` is for messages.
    ///
    /// # Errors
    /// Where the header cannot be written.
    pub fn new(sink: W, path: &Path, header: &Header) -> Result<Self, RecordError> {
        let mut writer = Self {
            sink,
            path: path.to_path_buf(),
            packer: Packer::default(),
            frame: Vec::with_capacity(1 << 16),
            bytes: 0,
        };
        let mut preamble = MAGIC.to_vec();
        preamble.extend_from_slice(&crate::TRACE_VERSION.to_le_bytes());
        writer.put(&preamble)?;
        writer.json(FrameKind::Header, header)?;
        Ok(writer)
    }

    /// Takes a row into the frame that the next flush writes.
    pub fn push(&mut self, row: Row<'_>) {
        self.packer.push(row);
    }

    /// Writes the rows taken since the last flush as one frame.
    ///
    /// # Errors
    /// Where the disk refuses them.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        if self.packer.is_empty() {
            return Ok(());
        }
        let packer = std::mem::take(&mut self.packer);
        let written = self.append(FrameKind::Rows, packer.payload());
        self.packer = packer;
        self.packer.clear();
        written
    }

    /// # Errors
    /// Where the disk refuses it.
    pub fn target(&mut self, target: &Target) -> Result<(), RecordError> {
        self.json(FrameKind::Target, target)
    }

    /// # Errors
    /// Where the disk refuses it.
    pub fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        if event.what == crate::header::What::Vanished {
            self.flush()?;
            self.packer.forget(event.target);
        }
        self.json(FrameKind::Event, event)
    }

    /// Writes what is left and the footer: the journal is whole.
    ///
    /// # Errors
    /// Where the disk refuses it.
    pub fn finish(&mut self, footer: &Footer) -> Result<(), RecordError> {
        self.flush()?;
        self.json(FrameKind::Footer, footer)
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn json<T: serde::Serialize>(&mut self, kind: FrameKind, value: &T) -> Result<(), RecordError> {
        let payload = serde_json::to_vec(value)
            .map_err(|source| RecordError::Json { path: self.path.clone(), source })?;
        self.append(kind, &payload)
    }

    fn append(&mut self, kind: FrameKind, payload: &[u8]) -> Result<(), RecordError> {
        let length = u32::try_from(payload.len()).map_err(|_| {
            RecordError::io(&self.path, io::Error::from(io::ErrorKind::FileTooLarge))
        })?;
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        frame.reserve(FRAME_HEAD + payload.len());
        frame.extend_from_slice(&length.to_le_bytes());
        frame.push(kind as u8);
        frame.extend_from_slice(&checksum(kind as u8, payload).to_le_bytes());
        frame.extend_from_slice(payload);
        let written = self.put(&frame);
        self.frame = frame;
        written
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        self.sink.write_all(bytes).map_err(|error| RecordError::io(&self.path, error))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}
