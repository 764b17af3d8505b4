//! Appending of frames.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{FRAME_HEAD, FrameKind, MAGIC, checksum};
use crate::code::Packer;
use crate::error::RecordError;
use crate::header::{Event, Footer, Header, Recovered, Target};
use crate::lock;
use crate::row::Row;

/// Appends frames to a journal; [`Writer::flush`] writes all of them.
pub struct Writer<W: Write = File> {
    sink: W,
    path: PathBuf,
    packer: Packer,
    /// Position in the tail after the last frame of rows.
    upto: u64,
    /// Frames that are closed and not written yet.
    frames: Vec<u8>,
    bytes: u64,
}

impl Writer<File> {
    /// Creates a journal in a new file, and locks it.
    ///
    /// # Errors
    /// The file exists, cannot be created or locked, or the header cannot be written.
    pub fn create(path: &Path, header: &Header) -> Result<Self, RecordError> {
        let sink = File::create_new(path).map_err(|error| RecordError::io(path, error))?;
        lock::exclusive(&sink, path)?;
        Self::new(sink, path, header)
    }
}

impl<W: Write> Writer<W> {
    /// Starts a journal on any sink; `path` is for error messages.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn new(sink: W, path: &Path, header: &Header) -> Result<Self, RecordError> {
        let mut writer = Self::resume(sink, path, 0);
        writer.frames.extend_from_slice(MAGIC);
        writer.frames.extend_from_slice(&crate::JOURNAL_VERSION.to_le_bytes());
        writer.json(FrameKind::Header, header)?;
        Ok(writer)
    }

    /// Continues a journal of the newest version that has the rows up to a position of its tail.
    pub fn resume(sink: W, path: &Path, upto: u64) -> Self {
        Self {
            sink,
            path: path.to_path_buf(),
            packer: Packer::default(),
            upto,
            frames: Vec::with_capacity(1 << 16),
            bytes: 0,
        }
    }

    /// Adds a row to the current frame.
    pub fn push(&mut self, row: Row<'_>) {
        self.packer.push(row);
    }

    /// Closes the current frame, with which the journal has all rows up to a position of the tail.
    ///
    /// # Errors
    /// It is larger than a frame can be.
    pub fn seal(&mut self, upto: u64) -> Result<(), RecordError> {
        self.upto = upto;
        if self.packer.is_empty() {
            return Ok(());
        }
        let packer = std::mem::take(&mut self.packer);
        let closed = self.frame(FrameKind::Rows, &[&upto.to_le_bytes(), packer.payload()]);
        self.packer = packer;
        self.packer.clear();
        closed
    }

    /// Writes all rows added so far, up to this position of the tail.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn flush(&mut self, upto: u64) -> Result<(), RecordError> {
        self.seal(upto)?;
        self.write()
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
            self.packer.forget(event.target);
        }
        self.json(FrameKind::Event, event)
    }

    /// Writes the remaining rows and the footer, which complete the journal.
    ///
    /// # Errors
    /// Where the disk refuses it.
    pub fn finish(&mut self, footer: &Footer) -> Result<(), RecordError> {
        self.seal(self.upto)?;
        self.json(FrameKind::Footer, footer)
    }

    /// Writes the remaining rows and the result of the recovery.
    ///
    /// # Errors
    /// Where the disk refuses it.
    pub fn recovered(&mut self, recovered: &Recovered) -> Result<(), RecordError> {
        self.seal(self.upto)?;
        self.json(FrameKind::Recovered, recovered)
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn json<T: serde::Serialize>(&mut self, kind: FrameKind, value: &T) -> Result<(), RecordError> {
        let payload = serde_json::to_vec(value)
            .map_err(|source| RecordError::Json { path: self.path.clone(), source })?;
        self.frame(kind, &[&payload])?;
        self.write()
    }

    fn frame(&mut self, kind: FrameKind, payload: &[&[u8]]) -> Result<(), RecordError> {
        let bytes: usize = payload.iter().map(|part| part.len()).sum();
        let length = u32::try_from(bytes).map_err(|_| {
            RecordError::io(&self.path, io::Error::from(io::ErrorKind::FileTooLarge))
        })?;
        self.frames.reserve(FRAME_HEAD + bytes);
        self.frames.extend_from_slice(&length.to_le_bytes());
        self.frames.push(kind as u8);
        self.frames.extend_from_slice(&checksum(kind as u8, payload).to_le_bytes());
        for part in payload {
            self.frames.extend_from_slice(part);
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), RecordError> {
        if self.frames.is_empty() {
            return Ok(());
        }
        let written = self.sink.write_all(&self.frames);
        self.bytes += self.frames.len() as u64;
        self.frames.clear();
        written.map_err(|error| RecordError::io(&self.path, error))
    }
}
