//! Segments of version 5: frames travel in checked pieces (`native_protocol_v5.spec`, section 2.2).

use super::compress::{append_block, put_block};
use super::decode::Decoder;
use crate::protocol::{Decoded, REST_LIMIT};

const TRAILER_BYTES: usize = 4;
const MOST_PAYLOAD: usize = 0x1_ffff;
const SELF_CONTAINED: u64 = 1;
/// Bits of a length.
const LENGTH: u32 = 17;

/// Whether payloads may be compressed by LZ4: then a header has both lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Plain,
    Packed,
}

impl Kind {
    /// Without the checksum.
    const fn contents(self) -> usize {
        match self {
            Self::Plain => 3,
            Self::Packed => 5,
        }
    }

    const fn header(self) -> usize {
        self.contents() + 3
    }
}

/// Of a header's first bytes, the lowest first (polynomial 0x974f0b).
fn crc24(header: u64, bytes: usize) -> u64 {
    let mut crc = 0x0087_5060;
    for byte in &header.to_le_bytes()[..bytes] {
        crc ^= u64::from(*byte) << 16;
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

/// `plain`: its length before it was compressed; 0: it is not.
fn put_segment(kind: Kind, payload: &[u8], plain: usize, flags: u64, out: &mut Vec<u8>) {
    let header = match kind {
        Kind::Plain => payload.len() as u64 | flags << LENGTH,
        Kind::Packed => payload.len() as u64 | (plain as u64) << LENGTH | flags << (2 * LENGTH),
    };
    let crc = crc24(header, kind.contents());
    out.extend_from_slice(&header.to_le_bytes()[..kind.contents()]);
    out.extend_from_slice(&crc.to_le_bytes()[..3]);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32(payload).to_le_bytes());
}

/// Puts what begins at `start` into a segment, or several where a frame is longer than one may be.
pub(super) fn wrap(kind: Kind, start: usize, spare: &mut Vec<u8>, out: &mut Vec<u8>) {
    spare.clear();
    spare.extend_from_slice(&out[start..]);
    out.truncate(start);
    let flags = if spare.len() <= MOST_PAYLOAD { SELF_CONTAINED } else { 0 };
    let frame = spare.len();
    let mut at = 0;
    while at < frame {
        let end = frame.min(at + MOST_PAYLOAD);
        if kind == Kind::Packed {
            spare.truncate(frame);
            let (piece, block) = (at..end, spare.len());
            let piece = spare[piece].to_vec();
            put_block(&piece, spare);
            if spare.len() - block < piece.len() {
                put_segment(kind, &spare[block..], piece.len(), flags, out);
                at = end;
                continue;
            }
        }
        put_segment(kind, &spare[at..end], 0, flags, out);
        at = end;
    }
}

/// A segment at the front of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    payload: usize,
    /// Its length before it was compressed; 0: it is not.
    plain: usize,
}

/// The segment at the front of `input`, where all of it is there and as it was sent.
fn checked(kind: Kind, input: &[u8]) -> Result<Option<Segment>, &'static str> {
    let Some((bytes, rest)) = input.split_at_checked(kind.header()) else { return Ok(None) };
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let head = number(&bytes[..kind.contents()]);
    if crc24(head, kind.contents()) != number(&bytes[kind.contents()..]) {
        return Err("a segment whose header has another checksum");
    }
    let payload = head as usize & MOST_PAYLOAD;
    let plain = if kind == Kind::Packed { (head >> LENGTH) as usize & MOST_PAYLOAD } else { 0 };
    let Some(trailer) = rest.get(payload..).and_then(|rest| rest.first_chunk::<TRAILER_BYTES>())
    else {
        return Ok(None);
    };
    if crc32(&rest[..payload]) != u32::from_le_bytes(*trailer) {
        return Err("a segment whose contents have another checksum");
    }
    Ok(Some(Segment { payload, plain }))
}

/// Appends the payload of the segment at the front of `input`, and says how many bytes the segment takes; `None`: more
/// has to come.
pub(super) fn unwrap_first(
    kind: Kind,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<Option<usize>, &'static str> {
    let Some(Segment { payload, plain }) = checked(kind, input)? else { return Ok(None) };
    let contents = &input[kind.header()..kind.header() + payload];
    if plain > 0 {
        append_block(contents, plain, out)?;
    } else {
        out.extend_from_slice(contents);
    }
    Ok(Some(kind.header() + payload + TRAILER_BYTES))
}

/// Takes frames out of segments, of which each is checked before anything in it counts.
#[derive(Debug, Default)]
pub(super) struct Segments {
    kind: Kind,
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
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }

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
            let Some(segment) = checked(self.kind, &input[at..])? else {
                return Ok(Decoded { consumed: at, reply: None });
            };
            if segment.plain > 0 {
                at += unwrap_first(self.kind, &input[at..], &mut self.carried)?.unwrap_or(0);
                continue;
            }
            at += self.kind.header();
            self.payload = segment.payload;
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

    fn wrapped(kind: Kind, payload: &[u8]) -> Vec<u8> {
        let mut out = payload.to_vec();
        wrap(kind, 0, &mut Vec::new(), &mut out);
        out
    }

    fn sealed(payload: &[u8]) -> Vec<u8> {
        wrapped(Kind::Plain, payload)
    }

    fn replies(pieces: &[&[u8]]) -> Result<Vec<Reply>, &'static str> {
        replies_in(Kind::Plain, pieces)
    }

    fn replies_in(kind: Kind, pieces: &[&[u8]]) -> Result<Vec<Reply>, &'static str> {
        let (mut segments, mut decoder) = (Segments::new(kind), Decoder::new(5, true));
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
        assert_eq!(checked(Kind::Plain, &out), Ok(Some(Segment { payload: 9, plain: 0 })));
        assert_eq!(checked(Kind::Plain, &out[..18]), Ok(None));
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
        while let Some(length) = unwrap_first(Kind::Plain, rest, &mut joined).expect("well-formed")
        {
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
            let found = Segment { payload: ROWS.len(), plain: 0 };
            assert_ne!(checked(Kind::Plain, &bytes), Ok(Some(found)), "bit {bit}");
        }
    }

    #[test]
    fn compressed_segments_hold_the_same_replies() {
        let expected = replies(&[&in_segments(usize::MAX >> 1)]).expect("well-formed");
        for size in [1, 7, 64, usize::MAX >> 1] {
            let bytes: Vec<u8> =
                stream_of(5).chunks(size).flat_map(|piece| wrapped(Kind::Packed, piece)).collect();
            assert_eq!(replies_in(Kind::Packed, &[&bytes]), Ok(expected.clone()), "{size}");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(replies_in(Kind::Packed, &single), Ok(expected.clone()), "{size}");
        }
    }

    #[test]
    fn a_compressed_segment_has_both_lengths() {
        let out = wrapped(Kind::Packed, &[7; 1000]);
        let head = u64::from_le_bytes([out[0], out[1], out[2], out[3], out[4], 0, 0, 0]);
        assert_eq!(head as usize & MOST_PAYLOAD, out.len() - 8 - 4);
        assert_eq!(((head >> 17) as usize & MOST_PAYLOAD, head >> 34), (1000, 1));
        assert!(out.len() < 50);
        let short = wrapped(Kind::Packed, b"abc");
        assert_eq!((short.len(), &short[8..11]), (8 + 3 + 4, &b"abc"[..]), "it would be longer");
        let frame = vec![7; 300_000];
        let (whole, mut joined) = (wrapped(Kind::Packed, &frame), Vec::new());
        let mut rest = whole.as_slice();
        while let Some(length) = unwrap_first(Kind::Packed, rest, &mut joined).expect("well-formed")
        {
            rest = &rest[length..];
        }
        assert!(joined == frame && rest.is_empty());
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
            let _ = replies_in(Kind::Packed, &[&bytes]);
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
