//! The journal: append-only frames, each with its length and checksum.
//!
//! Each frame is one write to the kernel, so `kill -9` loses only what was not written yet. The
//! layout is in `docs/reference/trace-journal.md`.

mod reader;
mod recover;
mod writer;

pub use reader::{Entry, Reader};
pub use recover::{Held, recover};
pub use writer::Writer;

/// First bytes of every journal; the version follows as four bytes, little-endian.
pub const MAGIC: &[u8; 8] = b"TAREPRB\n";

/// Length (4), kind (1), checksum (4).
pub(crate) const FRAME_HEAD: usize = 9;

/// Kind of a frame's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    Header = 1,
    Target = 2,
    Rows = 3,
    Event = 4,
    Footer = 5,
    Recovered = 6,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Header, Self::Target, Self::Rows, Self::Event, Self::Footer, Self::Recovered]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// CRC-32 over the kind and the payload.
fn checksum(kind: u8, payload: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    for part in payload {
        hasher.update(part);
    }
    hasher.finalize()
}
