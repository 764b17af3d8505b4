//! Segments of version 5: frames travel in checked pieces (`native_protocol_v5.spec`, section 2.2), uncompressed.

use super::decode::Decoder;
use crate::protocol::{Decoded, REST_LIMIT};

const HEADER_BYTES: usize = 6;
const TRAILER_BYTES: usize = 4;
const MOST_PAYLOAD: usize = 0x1_ffff;
const SELF_CONTAINED: u32 = 1 << 17;

/// Of the three bytes of a header, the lowest first (polynomial 0x974f0b).
fn crc24(header: u32) -> u32 {
    let mut crc = 0x0087_5060;
    for byte in &header.to_le_bytes()[..3] {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= 0x0197_4f0b;
            }
        }
    }
    crc
}

/// CRC-32 as of zlib, after four bytes that the protocol sets before a payload.
fn crc32(payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[0xfa, 0x2d, 0x55, 0xca]);
    hasher.update(payload);
    hasher.finalize()
}

fn header(length: usize, flags: u32) -> [u8; HEADER_BYTES] {
    let header = length as u32 | flags;
    let both = u64::from(header) | u64::from(crc24(header)) << 24;
    let mut bytes = [0; HEADER_BYTES];
    bytes.copy_from_slice(&both.to_le_bytes()[..HEADER_BYTES]);
    bytes
}

/// Leaves room for a header; the payload is to be appended, up to [`end`].
pub(super) fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; HEADER_BYTES]);
}

/// Closes what was begun at `start`: one segment, or several where a frame is longer than one may be.
pub(super) fn end(start: usize, out: &mut Vec<u8>) {
    let length = out.len() - start - HEADER_BYTES;
    if length <= MOST_PAYLOAD {
        let crc = crc32(&out[start + HEADER_BYTES..]);
        out[start..start + HEADER_BYTES].copy_from_slice(&header(length, SELF_CONTAINED));
        out.extend_from_slice(&crc.to_le_bytes());
        return;
    }
    let whole = out.split_off(start);
    for piece in whole[HEADER_BYTES..].chunks(MOST_PAYLOAD) {
        out.extend_from_slice(&header(piece.len(), 0));
        out.extend_from_slice(piece);
        out.extend_from_slice(&crc32(piece).to_le_bytes());
    }
}

/// The payload's length of the segment at the front of `input`, where all of it is there and as it was sent.
fn checked(input: &[u8]) -> Result<Option<usize>, &'static str> {
    let Some(bytes) = input.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
    let head = number(&bytes[..3]);
    if crc24(head) != number(&bytes[3..]) {
        return Err("a segment whose header has another checksum");
    }
    let length = head as usize & MOST_PAYLOAD;
    let rest = &input[HEADER_BYTES..];
    let Some(trailer) = rest.get(length..).and_then(|rest| rest.first_chunk::<TRAILER_BYTES>())
    else {
        return Ok(None);
    };
    if crc32(&rest[..length]) != u32::from_le_bytes(*trailer) {
        return Err("a segment whose contents have another checksum");
    }
    Ok(Some(length))
}

/// The payload of the segment at the front of `input`, and how many bytes the segment takes; `None`: more has to come.
pub(super) fn first(input: &[u8]) -> Result<Option<(&[u8], usize)>, &'static str> {
    Ok(checked(input)?.map(|length| {
        let end = HEADER_BYTES + length;
        (&input[HEADER_BYTES..end], end + TRAILER_BYTES)
    }))
}

/// Takes frames out of segments, of which each is checked before anything in it counts.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// Bytes at the front of the input that a checked segment still has.
    payload: usize,
    /// Its trailer follows.
    open: bool,
    /// The end of a segment within a piece of a frame, and then the next segment behind it.
    carried: Vec<u8>,
    /// How much of that was consumed.
    taken: usize,
}

impl Segments {
    pub(super) fn take(
        &mut self,
        frames: &mut Decoder,
        input: &[u8],
    ) -> Result<Decoded, &'static str> {
        let mut at = 0;
        loop {
            if self.payload > 0 {
                let payload = &input[at..at + self.payload];
                if self.carried.is_empty() {
                    let decoded = frames.take(payload)?;
                    at += decoded.consumed;
                    self.payload -= decoded.consumed;
                    if decoded.reply.is_some() {
                        at += self.close();
                        return Ok(Decoded { consumed: at, ..decoded });
                    }
                }
                self.carried.extend_from_slice(&input[at..at + self.payload]);
                at += std::mem::take(&mut self.payload);
            }
            at += self.close();
            let decoded = frames.take(&self.carried[self.taken..])?;
            self.taken += decoded.consumed;
            if decoded.reply.is_some() {
                return Ok(Decoded { consumed: at, ..decoded });
            }
            self.carried.drain(..std::mem::take(&mut self.taken));
            if self.carried.len() > REST_LIMIT {
                return Err("a piece without an end");
            }
            let Some(length) = checked(&input[at..])? else {
                return Ok(Decoded { consumed: at, reply: None });
            };
            at += HEADER_BYTES;
            self.payload = length;
            self.open = true;
        }
    }

    /// Steps over the trailer, if the segment's payload is done.
    fn close(&mut self) -> usize {
        if self.payload == 0 && std::mem::take(&mut self.open) { TRAILER_BYTES } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::Reply;
    use crate::protocol::cql::decode::tests::{ROWS, stream_of};

    fn sealed(payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        begin(&mut out);
        out.extend_from_slice(payload);
        end(0, &mut out);
        out
    }

    fn replies(pieces: &[&[u8]]) -> Result<Vec<Reply>, &'static str> {
        let (mut segments, mut decoder) = (Segments::default(), Decoder::new(5, true));
        let (mut rest, mut replies) = (Vec::new(), Vec::new());
        for piece in pieces {
            rest.extend_from_slice(piece);
            loop {
                let Decoded { consumed, reply } = segments.take(&mut decoder, &rest)?;
                rest.drain(..consumed);
                match reply {
                    Some(reply) => replies.push(reply),
                    None => break,
                }
            }
            assert!(rest.len() <= REST_LIMIT);
        }
        Ok(replies)
    }

    /// The replies of the decoder's own tests, as segments with `size` bytes of them each.
    fn in_segments(size: usize) -> Vec<u8> {
        stream_of(5).chunks(size).flat_map(sealed).collect()
    }

    #[test]
    fn a_segment_has_its_length_and_both_checksums() {
        let out = sealed(&[5, 0, 0, 0, 5, 0, 0, 0, 0]);
        assert_eq!(out[..3], [9, 0, 2]);
        assert_eq!(out.len(), 6 + 9 + 4);
        assert_eq!(checked(&out), Ok(Some(9)));
        assert_eq!(checked(&out[..18]), Ok(None));
    }

    #[test]
    fn frames_may_lie_across_segments() {
        let whole = replies(&[&in_segments(usize::MAX >> 1)]).expect("well-formed");
        assert_eq!(whole.len(), 5);
        for size in [1, 2, 3, 7, 9, 10, 64] {
            let bytes = in_segments(size);
            assert_eq!(replies(&[&bytes]), Ok(whole.clone()), "{size}");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(replies(&single), Ok(whole.clone()), "{size}, byte by byte");
        }
    }

    #[test]
    fn the_last_reply_of_a_segment_consumes_all_of_it() {
        let bytes = in_segments(1 << 16);
        let (mut segments, mut decoder) = (Segments::default(), Decoder::new(5, true));
        let mut at = 0;
        while at < bytes.len() {
            let found = segments.take(&mut decoder, &bytes[at..]).expect("well-formed");
            assert!(found.reply.is_some());
            at += found.consumed;
        }
    }

    #[test]
    fn a_frame_longer_than_a_segment_is_cut() {
        let frame = vec![7; 300_000];
        let mut rest: &[u8] = &sealed(&frame);
        let mut joined = Vec::new();
        while let Some((payload, length)) = first(rest).expect("well-formed") {
            joined.extend_from_slice(payload);
            rest = &rest[length..];
        }
        assert_eq!((joined, rest.len()), (frame, 0));
    }

    #[test]
    fn every_changed_bit_is_found() {
        let bytes = sealed(ROWS);
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checked(&bytes), Ok(Some(ROWS.len())), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            contents in prop::collection::vec(any::<u8>(), 0..300),
            size in 1..80_usize,
            sound in any::<bool>(),
        ) {
            let bytes = if sound { contents.chunks(size).flat_map(sealed).collect() } else { contents };
            let _ = replies(&[&bytes]);
        }

        #[test]
        fn changed_frames_neither(at in any::<prop::sample::Index>(), byte in any::<u8>(), size in 1..80_usize) {
            let mut frames = stream_of(5);
            let at = at.index(frames.len());
            frames[at] = byte;
            let bytes: Vec<u8> = frames.chunks(size).flat_map(sealed).collect();
            let _ = replies(&[&bytes]);
        }
    }
}
