//! A row in binary, which may be longer than a packet.

use super::packet::{HEADER, LONGEST};
use crate::protocol::statement::Digest;
use crate::protocol::{Reply, Rows};

/// A row taken apart up to some point.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Their types.
    pub(super) columns: Vec<u8>,
    pub(super) rows: Option<Rows>,
    /// A bit for each column, from the third on: it is NULL.
    nulls: Vec<u8>,
    /// Of the packet.
    left: u32,
    /// Another packet follows.
    goes_on: bool,
    column: usize,
    part: Part,
    digest: Digest,
}

#[derive(Clone, Copy, Debug, Default)]
enum Part {
    #[default]
    Nulls,
    /// A value is about to start.
    Column,
    /// How long the value is: so many bytes of the length were read, and stand in `sum`.
    Length {
        read: u8,
        of: u8,
        sum: u64,
    },
    Value {
        left: u64,
    },
    Over,
}

/// How the length of a value is known.
enum Size {
    Fixed(u64),
    /// One byte (dates and times).
    Byte,
    Encoded,
}

impl Size {
    fn of(column: u8) -> Self {
        match column {
            6 => Self::Fixed(0),
            1 => Self::Fixed(1),
            2 | 13 => Self::Fixed(2),
            3 | 4 | 9 => Self::Fixed(4),
            5 | 8 => Self::Fixed(8),
            7 | 10 | 11 | 12 => Self::Byte,
            _ => Self::Encoded,
        }
    }
}

impl Row {
    /// After the first byte of a packet of `length`.
    pub(super) fn begin(&mut self, first: u8, length: u32) -> Result<(), &'static str> {
        if first != 0 {
            return Err("a row in text, as of a statement that cannot be prepared");
        }
        self.left = length.checked_sub(1).ok_or("an empty row")?;
        self.goes_on = length == LONGEST;
        self.column = 0;
        self.part = Part::Nulls;
        Ok(())
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.part, Part::Over) && !self.goes_on
    }

    /// Takes the next part; `None` where that is not there yet.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        check_contents: bool,
        reply: &mut Reply,
    ) -> Result<Option<usize>, &'static str> {
        if self.left == 0 && self.goes_on {
            return self.next_packet(input);
        }
        let input = &input[..input.len().min(self.left as usize)];
        let taken = match self.part {
            Part::Nulls => self.nulls(input)?,
            Part::Column => {
                self.start_value(reply, check_contents);
                Some(0)
            }
            Part::Length { read, of, sum } => {
                if self.left == 0 {
                    return Err("a row that is shorter than its columns");
                }
                input.first().map(|&byte| {
                    self.length(read, of, sum, byte, check_contents, reply);
                    1
                })
            }
            Part::Value { left } => {
                if self.left == 0 {
                    return Err("a row that is shorter than its columns");
                }
                self.value(left, input, check_contents, reply)
            }
            Part::Over if self.left > 0 => return Err("a row that is longer than its columns"),
            Part::Over => Some(0),
        };
        self.left -= taken.unwrap_or(0) as u32;
        let over = matches!(self.part, Part::Over) && self.left > 0;
        if over { Err("a row that is longer than its columns") } else { Ok(taken) }
    }

    fn next_packet(&mut self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        let Some(header) = input.first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        self.left = length;
        self.goes_on = length == LONGEST;
        if matches!(self.part, Part::Over) && length > 0 {
            return Err("a row that is longer than its columns");
        }
        Ok(Some(HEADER))
    }

    fn nulls(&mut self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        let length = (self.columns.len() + 9) / 8;
        if (self.left as usize) < length {
            return Err("a row that is shorter than its columns");
        }
        Ok(input.get(..length).map(|bits| {
            self.nulls.clear();
            self.nulls.extend_from_slice(bits);
            self.part = Part::Column;
            length
        }))
    }

    /// Of the next column that is not NULL, or the end of the row.
    fn start_value(&mut self, reply: &mut Reply, check_contents: bool) {
        let is_null = |column: usize| self.nulls[(column + 2) / 8] & (1 << ((column + 2) % 8)) != 0;
        while self.column < self.columns.len() && is_null(self.column) {
            self.column += 1;
            if let Some(rows) = &mut self.rows {
                rows.null();
            }
        }
        let Some(&column) = self.columns.get(self.column) else {
            reply.rows = reply.rows.saturating_add(1);
            if let Some(rows) = &mut self.rows {
                rows.end_row();
            }
            self.part = Part::Over;
            return;
        };
        match Size::of(column) {
            Size::Fixed(length) => self.begin_value(length, reply, check_contents),
            Size::Byte => self.part = Part::Length { read: 0, of: 1, sum: 0 },
            Size::Encoded => self.part = Part::Length { read: 0, of: 0, sum: 0 },
        }
    }

    /// The next byte of a length: `of` is 0 while it is not known how many it has.
    fn length(
        &mut self,
        read: u8,
        of: u8,
        sum: u64,
        byte: u8,
        check_contents: bool,
        reply: &mut Reply,
    ) {
        if of == 0 {
            let of = match byte {
                0xfc => 2,
                0xfd => 3,
                0xfe => 8,
                _ => return self.begin_value(byte.into(), reply, check_contents),
            };
            self.part = Part::Length { read: 0, of, sum: 0 };
            return;
        }
        let sum = sum | u64::from(byte) << (8 * read);
        if read + 1 == of {
            self.begin_value(sum, reply, check_contents);
        } else {
            self.part = Part::Length { read: read + 1, of, sum };
        }
    }

    fn begin_value(&mut self, length: u64, reply: &mut Reply, check_contents: bool) {
        reply.bytes = reply.bytes.saturating_add(length);
        if length == 0 {
            self.end_value(check_contents, reply);
        } else {
            self.part = Part::Value { left: length };
        }
    }

    fn value(
        &mut self,
        left: u64,
        input: &[u8],
        check_contents: bool,
        reply: &mut Reply,
    ) -> Option<usize> {
        let there = left.min(input.len() as u64);
        if there == 0 {
            return None;
        }
        if check_contents {
            self.digest.add(&input[..there as usize]);
        }
        if let Some(rows) = &mut self.rows {
            rows.add(&input[..there as usize]);
        }
        if there == left {
            self.end_value(check_contents, reply);
        } else {
            self.part = Part::Value { left: left - there };
        }
        Some(there as usize)
    }

    fn end_value(&mut self, check_contents: bool, reply: &mut Reply) {
        let digest = std::mem::take(&mut self.digest);
        if check_contents {
            reply.contents = reply.contents.wrapping_add(digest.finish());
        }
        match &mut self.rows {
            // TINY, SHORT, LONG, LONGLONG, INT24, YEAR
            Some(rows) if matches!(self.columns[self.column], 1 | 2 | 3 | 8 | 9 | 13) => {
                rows.end_number();
            }
            Some(rows) => rows.end_value(),
            None => {}
        }
        self.column += 1;
        self.part = Part::Column;
    }
}
