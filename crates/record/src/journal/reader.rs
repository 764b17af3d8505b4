//! Reading of frames.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::{FRAME_HEAD, FrameKind, MAGIC, checksum};
use crate::error::RecordError;
use crate::header::{Event, Footer, Header, Recovered, Target};

/// One frame of a journal.
#[derive(Debug)]
pub enum Entry<'a> {
    Header(Box<Header>),
    Target(Target),
    /// Packed rows: see [`crate::code::unpack`].
    Rows {
        packed: &'a [u8],
        /// Position in the tail after these rows; 0 in version 1.
        upto: u64,
    },
    Event(Event),
    Footer(Footer),
    Recovered(Recovered),
}

/// Reads a journal one frame at a time.
pub struct Reader {
    source: BufReader<File>,
    path: PathBuf,
    version: u32,
    offset: u64,
    length: u64,
    payload: Vec<u8>,
    torn_bytes: u64,
}

impl Reader {
    /// # Errors
    /// The file cannot be read, is not a journal, or has an unknown version.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let file = File::open(path).map_err(|error| RecordError::io(path, error))?;
        let length = file.metadata().map_err(|error| RecordError::io(path, error))?.len();
        let mut source = BufReader::with_capacity(1 << 16, file);
        let mut preamble = [0_u8; MAGIC.len() + 4];
        source
            .read_exact(&mut preamble)
            .map_err(|_| RecordError::NotAJournal { path: path.to_path_buf() })?;
        let (magic, version) = preamble.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(RecordError::NotAJournal { path: path.to_path_buf() });
        }
        let found = u32::from_le_bytes(version.try_into().unwrap_or_default());
        if !(1..=crate::JOURNAL_VERSION).contains(&found) {
            return Err(RecordError::Version { path: path.to_path_buf(), found });
        }
        Ok(Self {
            source,
            path: path.to_path_buf(),
            version: found,
            offset: preamble.len() as u64,
            length,
            payload: Vec::new(),
            torn_bytes: 0,
        })
    }

    /// Next frame; `None` at the end. A last frame that was cut short also counts as the end:
    /// [`Reader::torn_bytes`] counts its bytes.
    ///
    /// # Errors
    /// A whole frame has a wrong checksum or an unknown kind.
    pub fn entry(&mut self) -> Result<Option<Entry<'_>>, RecordError> {
        let left = self.length - self.offset;
        if left < FRAME_HEAD as u64 {
            self.torn_bytes = left;
            return Ok(None);
        }
        let mut head = [0_u8; FRAME_HEAD];
        self.fill(|source| source.read_exact(&mut head))?;
        let payload_bytes = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if left < (FRAME_HEAD + payload_bytes) as u64 {
            self.torn_bytes = left;
            return Ok(None);
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(payload_bytes, 0);
        self.fill(|source| source.read_exact(&mut payload))?;
        self.payload = payload;
        let expected = u32::from_le_bytes([head[5], head[6], head[7], head[8]]);
        if checksum(head[4], &[&self.payload]) != expected {
            return Err(self.damaged("its checksum does not fit"));
        }
        let entry_offset = self.offset;
        self.offset += (FRAME_HEAD + payload_bytes) as u64;
        let Some(kind) = FrameKind::from_byte(head[4]) else {
            self.offset = entry_offset;
            return Err(self.damaged("its kind is unknown"));
        };
        self.decode(kind).map(Some)
    }

    /// Bytes of a last frame that was cut short, as by `kill -9`.
    #[must_use]
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// Where the next frame begins; at the end, the length of the journal's intact part.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Error for a payload that cannot be unpacked.
    #[must_use]
    pub fn damaged(&self, why: &'static str) -> RecordError {
        RecordError::Damaged { path: self.path.clone(), offset: self.offset, why }
    }

    fn decode(&self, kind: FrameKind) -> Result<Entry<'_>, RecordError> {
        Ok(match kind {
            FrameKind::Rows => self.rows()?,
            FrameKind::Header => Entry::Header(Box::new(self.json()?)),
            FrameKind::Target => Entry::Target(self.json()?),
            FrameKind::Event => Entry::Event(self.json()?),
            FrameKind::Footer => Entry::Footer(self.json()?),
            FrameKind::Recovered => Entry::Recovered(self.json()?),
        })
    }

    fn rows(&self) -> Result<Entry<'_>, RecordError> {
        if self.version == 1 {
            return Ok(Entry::Rows { packed: &self.payload, upto: 0 });
        }
        let (upto, packed) = self
            .payload
            .split_first_chunk()
            .ok_or_else(|| self.damaged("its rows have no position"))?;
        Ok(Entry::Rows { packed, upto: u64::from_le_bytes(*upto) })
    }

    fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, RecordError> {
        serde_json::from_slice(&self.payload)
            .map_err(|source| RecordError::Json { path: self.path.clone(), source })
    }

    fn fill(
        &mut self,
        read: impl FnOnce(&mut BufReader<File>) -> std::io::Result<()>,
    ) -> Result<(), RecordError> {
        read(&mut self.source).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.damaged("the file shrank while it was read"),
            _ => RecordError::io(&self.path, error),
        })
    }
}
