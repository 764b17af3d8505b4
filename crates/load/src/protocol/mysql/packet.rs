//! Packets and the numbers in them.

/// Three bytes of length, one that counts packets.
pub(super) const HEADER: usize = 4;
/// A packet of this length goes on in the next one.
pub(super) const LONGEST: u32 = 0xff_ff_ff;

/// Reads from the front of a packet; `None` where it is too short.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.bytes(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.bytes(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A number in as many bytes as it needs ("length-encoded").
    pub(super) fn number(&mut self) -> Option<u64> {
        let length = match self.u8()? {
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            small => return Some(small.into()),
        };
        let bytes = self.bytes(length)?.iter().rev();
        Some(bytes.fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    /// Up to a zero, which is taken too, or the end.
    pub(super) fn text(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|&byte| byte == 0);
        let text = &self.rest[..end.unwrap_or(self.rest.len())];
        self.rest = &self.rest[(text.len() + 1).min(self.rest.len())..];
        text
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }
}

/// Appends a number in as many bytes as it needs.
pub(super) fn number(value: u64, out: &mut Vec<u8>) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Puts headers into what was appended from `start` on: room for the first one, then the payload.
pub(super) fn seal(start: usize, first: u8, out: &mut Vec<u8>) {
    let mut at = start;
    let mut count = first;
    loop {
        let left = out.len() - at - HEADER;
        let length = (left as u32).min(LONGEST);
        let [low, middle, high, _] = length.to_le_bytes();
        out[at..at + HEADER].copy_from_slice(&[low, middle, high, count]);
        if length < LONGEST {
            return;
        }
        at += HEADER + LONGEST as usize;
        out.splice(at..at, [0; HEADER]);
        count = count.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 250, 251, 252, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut out = Vec::new();
            number(value, &mut out);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.number(), Some(value));
            assert!(reader.rest().is_empty());
            assert_eq!(Reader::new(&out[..out.len() - 1]).number(), None);
        }
    }

    #[test]
    fn a_long_payload_goes_on_in_the_next_packet() {
        let mut out = vec![7, 7];
        out.resize(2 + HEADER + LONGEST as usize, b'x');
        seal(2, 0, &mut out);
        assert_eq!(out[..6], [7, 7, 0xff, 0xff, 0xff, 0]);
        assert_eq!(out[6 + LONGEST as usize..], [0, 0, 0, 1]);
    }
}
