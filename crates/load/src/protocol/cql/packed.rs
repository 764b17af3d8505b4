//! Frames whose bodies are compressed, as in version 4: each is whole before anything in it counts.

use super::HEADER_BYTES;
use super::compress::Compression;
use super::decode::Decoder;
use super::encode::end;
use crate::protocol::Decoded;

/// Flag of a frame.
pub(super) const COMPRESSED: u8 = 0x01;

/// Compresses the body of the frame that begins at `start`.
pub(super) fn pack(compression: Compression, start: usize, spare: &mut Vec<u8>, out: &mut Vec<u8>) {
    spare.clear();
    spare.extend_from_slice(&out[start + HEADER_BYTES..]);
    out.truncate(start + HEADER_BYTES);
    compression.put_body(spare, out);
    out[start + 1] |= COMPRESSED;
    end(start, out);
}

#[derive(Debug)]
pub(super) struct Frames {
    compression: Compression,
    /// Of a compressed frame: what of it has come.
    packed: Vec<u8>,
    /// Bytes that it still lacks.
    left: usize,
    plain: Vec<u8>,
}

impl Frames {
    pub(super) fn new(compression: Compression) -> Self {
        Self { compression, packed: Vec::new(), left: 0, plain: Vec::new() }
    }

    pub(super) fn take(
        &mut self,
        frames: &mut Decoder,
        input: &[u8],
    ) -> Result<Decoded, &'static str> {
        let mut at = 0;
        if self.packed.is_empty() {
            let Some(header) = input.first_chunk::<HEADER_BYTES>() else {
                return Ok(Decoded { consumed: 0, reply: None });
            };
            let [_, _, _, _, _, length @ ..] = *header;
            self.left = u32::from_be_bytes(length) as usize;
            if self.left > 256 << 20 {
                return Err("a frame of more than 256 MiB");
            }
            self.packed.extend_from_slice(header);
            at = HEADER_BYTES;
        }
        let there = self.left.min(input.len() - at);
        self.packed.extend_from_slice(&input[at..at + there]);
        at += there;
        self.left -= there;
        if self.left > 0 {
            return Ok(Decoded { consumed: at, reply: None });
        }
        self.plain.clear();
        if self.packed[1] & COMPRESSED == 0 {
            std::mem::swap(&mut self.plain, &mut self.packed);
        } else {
            self.plain.extend_from_slice(&self.packed[..HEADER_BYTES]);
            self.compression.append_body(&self.packed[HEADER_BYTES..], &mut self.plain)?;
            self.plain[1] &= !COMPRESSED;
            end(0, &mut self.plain);
        }
        self.packed.clear();
        let decoded = frames.take(&self.plain)?;
        if decoded.reply.is_none() || decoded.consumed < self.plain.len() {
            return Err("a frame that ends early");
        }
        Ok(Decoded { consumed: at, ..decoded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Reply;
    use crate::protocol::cql::decode::tests::stream_of;

    /// The replies of the decoder's own tests, each frame compressed, or each second one.
    fn packed(compression: Compression, each: usize) -> Vec<u8> {
        let (stream, mut out) = (stream_of(4), Vec::new());
        let (mut rest, mut number) = (stream.as_slice(), 0);
        while let Some([_, _, _, _, _, length @ ..]) = rest.first_chunk::<HEADER_BYTES>() {
            let (frame, behind) =
                rest.split_at(HEADER_BYTES + u32::from_be_bytes(*length) as usize);
            let start = out.len();
            out.extend_from_slice(frame);
            if number % each == 0 {
                pack(compression, start, &mut Vec::new(), &mut out);
            }
            (rest, number) = (behind, number + 1);
        }
        out
    }

    fn replies(compression: Compression, pieces: &[&[u8]]) -> Vec<Reply> {
        let (mut frames, mut decoder) = (Frames::new(compression), Decoder::new(4, true));
        let (mut rest, mut replies) = (Vec::new(), Vec::new());
        for piece in pieces {
            rest.extend_from_slice(piece);
            loop {
                let found = frames.take(&mut decoder, &rest).expect("well-formed");
                rest.drain(..found.consumed);
                match found.reply {
                    Some(reply) => replies.push(reply),
                    None => break,
                }
            }
        }
        replies
    }

    #[test]
    fn replies_are_those_of_frames_that_are_not_compressed() {
        for compression in [Compression::Lz4, Compression::Snappy] {
            for each in [1, 2] {
                let bytes = packed(compression, each);
                let whole = replies(compression, &[&bytes]);
                assert_eq!(whole.len(), 5);
                let single: Vec<&[u8]> = bytes.chunks(1).collect();
                assert_eq!(replies(compression, &single), whole);
                assert_eq!(replies(compression, &[&stream_of(4)]), whole);
            }
        }
    }
}
