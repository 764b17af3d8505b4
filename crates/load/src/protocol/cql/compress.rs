//! Compression of bodies (version 4) and of segments' payloads (version 5).

use crate::error::Fault;

/// What a client may ask for in `STARTUP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Lz4,
    /// Not in version 5.
    Snappy,
}

/// Longer frames a server does not send (`native_transport_max_frame_size_in_mb`).
const MOST_BYTES: usize = 256 << 20;
const DAMAGED: &str = "contents that are not compressed as agreed";

impl Compression {
    pub(super) fn of(name: &str) -> Result<Self, Fault> {
        match name {
            "lz4" => Ok(Self::Lz4),
            "snappy" => Ok(Self::Snappy),
            _ => Err(Fault::Unsupported(format!("{name} is no compression of CQL's protocol"))),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
        }
    }

    /// Appends a body; of LZ4 its length comes first, which Snappy has in itself.
    pub(super) fn put_body(self, plain: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Lz4 => {
                out.extend_from_slice(&(plain.len() as u32).to_be_bytes());
                put_block(plain, out);
            }
            Self::Snappy => {
                let start = out.len();
                out.resize(start + snap::raw::max_compress_len(plain.len()), 0);
                let length = snap::raw::Encoder::new().compress(plain, &mut out[start..]);
                out.truncate(start + length.unwrap_or(0)); // there is room
            }
        }
    }

    pub(super) fn append_body(self, body: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        match self {
            Self::Lz4 => {
                let (length, block) = body.split_first_chunk::<4>().ok_or(DAMAGED)?;
                append_block(block, u32::from_be_bytes(*length) as usize, out)
            }
            Self::Snappy => {
                let length = snap::raw::decompress_len(body).map_err(|_| DAMAGED)?;
                append(length, out, |room| snap::raw::Decoder::new().decompress(body, room).ok())
            }
        }
    }
}

/// Appends a block of LZ4.
pub(super) fn put_block(plain: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(plain.len()), 0);
    let length = lz4_flex::block::compress_into(plain, &mut out[start..]);
    out.truncate(start + length.unwrap_or(0)); // there is room
}

pub(super) fn append_block(
    block: &[u8],
    length: usize,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    append(length, out, |room| {
        if room.is_empty() { Some(0) } else { lz4_flex::block::decompress_into(block, room).ok() }
    })
}

/// Of exactly so many bytes.
fn append(
    length: usize,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut [u8]) -> Option<usize>,
) -> Result<(), &'static str> {
    if length > MOST_BYTES {
        return Err("a frame of more than 256 MiB");
    }
    let start = out.len();
    out.resize(start + length, 0);
    if write(&mut out[start..]) == Some(length) { Ok(()) } else { Err(DAMAGED) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOTH: [Compression; 2] = [Compression::Lz4, Compression::Snappy];

    #[test]
    fn a_body_is_what_it_was() {
        for compression in BOTH {
            let named = Compression::of(compression.name()).expect("a known name");
            assert_eq!(named, compression);
            for plain in [vec![], b"a".to_vec(), vec![7; 100_000]] {
                let (mut packed, mut found) = (Vec::new(), b"before".to_vec());
                compression.put_body(&plain, &mut packed);
                compression.append_body(&packed, &mut found).expect("whole");
                assert_eq!(found[6..], plain);
                assert!(plain.len() < 100 || packed.len() < plain.len() / 10);
            }
        }
        assert!(Compression::of("deflate").is_err());
    }

    #[test]
    fn a_length_that_no_frame_has_takes_no_memory() {
        let mut out = Vec::new();
        assert!(Compression::Lz4.append_body(&[255, 255, 255, 255, 0], &mut out).is_err());
        assert!(Compression::Snappy.append_body(&[255, 255, 255, 255, 15], &mut out).is_err());
        assert!(out.is_empty());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for compression in BOTH {
                let _ = compression.append_body(&bytes, &mut Vec::new());
            }
        }
    }
}
