//! Values of a reply, kept for the requests that follow in the same operation.

use super::statement::signed_decimal;

/// More of a reply is not kept: thousands of connections may each keep one.
const MOST_BYTES: usize = 64 << 10;
const MOST_VALUES: usize = 4096;

/// The first rows of the last reply, as text; dates and floating-point numbers of `MySQL` as they came.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    bytes: Vec<u8>,
    /// Start of the value that comes in.
    start: usize,
    /// Of each value its end, or `None` for NULL.
    values: Vec<(usize, Option<usize>)>,
    /// Number of values up to the end of each row.
    ends: Vec<usize>,
    is_over: bool,
}

impl Rows {
    /// Number of complete rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A value, counted from 0. `None`: it is NULL, or was not kept.
    #[must_use]
    pub fn text(&self, row: usize, column: usize) -> Option<&[u8]> {
        let first = row.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        let place = first + column;
        if place >= *self.ends.get(row)? {
            return None;
        }
        let (start, end) = self.values[place];
        Some(&self.bytes[start..end?])
    }

    /// A whole number, or a decimal one without its point: 12.34 is 1234.
    #[must_use]
    pub fn digits(&self, row: usize, column: usize) -> Option<i64> {
        let text = std::str::from_utf8(self.text(row, column)?).ok()?;
        text.replace('.', "").parse().ok()
    }

    pub(super) fn add(&mut self, piece: &[u8]) {
        self.renew();
        let room = MOST_BYTES.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    pub(super) fn end_value(&mut self) {
        self.renew();
        self.put(Some(self.bytes.len()));
    }

    /// The value that came in is a signed number, lowest byte first.
    pub(super) fn end_number(&mut self) {
        self.renew();
        let mut number = 0_i64;
        let bytes = self.bytes.get(self.start..).unwrap_or_default();
        for (place, &byte) in bytes.iter().enumerate().take(8) {
            number |= i64::from(byte) << (8 * place);
        }
        let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
        self.bytes.truncate(self.start);
        signed_decimal(&mut self.bytes, number << unused >> unused);
        self.end_value();
    }

    pub(super) fn null(&mut self) {
        self.renew();
        self.put(None);
    }

    pub(super) fn end_row(&mut self) {
        self.renew();
        if self.values.len() < MOST_VALUES {
            self.ends.push(self.values.len());
        }
    }

    /// The reply is over: what comes next belongs to another.
    pub(super) fn finish(&mut self) {
        self.renew();
        self.is_over = true;
    }

    /// Adds a row of texts.
    #[cfg(test)]
    pub(crate) fn put_row(&mut self, texts: &[&str]) {
        for text in texts {
            self.add(text.as_bytes());
            self.end_value();
        }
        self.end_row();
    }

    fn put(&mut self, end: Option<usize>) {
        if self.values.len() < MOST_VALUES {
            self.values.push((self.start, end));
        }
        self.start = self.bytes.len();
    }

    fn renew(&mut self) {
        if self.is_over {
            self.bytes.clear();
            self.values.clear();
            self.ends.clear();
            (self.start, self.is_over) = (0, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_last_reply() {
        let mut rows = Rows::default();
        for (piece, more) in [(b"1", b"2"), (b"3", b"4")] {
            rows.add(piece);
            rows.add(more);
            rows.end_value();
            rows.null();
            rows.end_row();
            rows.finish();
        }
        assert_eq!((rows.len(), rows.text(0, 0)), (1, Some(&b"34"[..])));
        assert_eq!((rows.text(0, 1), rows.text(0, 2), rows.text(1, 0)), (None, None, None));
        rows.finish();
        assert!(rows.is_empty(), "of a reply without rows");
    }

    #[test]
    fn numbers_in_binary_are_written_out() {
        let mut rows = Rows::default();
        for bytes in
            [&[0xff][..], &[0x00, 0x80], &[1, 0, 0, 0], &[0xfe, 255, 255, 255, 255, 255, 255, 255]]
        {
            rows.add(bytes);
            rows.end_number();
        }
        rows.end_row();
        let found: Vec<_> = (0..4).map(|column| rows.digits(0, column)).collect();
        assert_eq!(found, [-1, -32_768, 1, -2].map(Some));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut rows = Rows::default();
        for _ in 0..10_000 {
            rows.add(&[b'x'; 1000]);
            rows.end_value();
            rows.end_row();
        }
        assert!(rows.bytes.len() <= MOST_BYTES && rows.values.len() <= MOST_VALUES);
        assert!(rows.len() <= MOST_VALUES);
    }
}
