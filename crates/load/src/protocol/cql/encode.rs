//! Frames, all but stream, length and values prepared.

use super::{HEADER_BYTES, VERSION, opcode};
use crate::protocol::statement::signed_decimal;
use crate::protocol::{Value, Values};

/// How a column takes a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// So many bytes, the highest first.
    Whole(u8),
    /// As it is: text or bytes.
    Plain,
}

/// An `EXECUTE` with gaps for its values.
#[derive(Debug)]
pub(super) struct Template {
    head: Vec<u8>,
    columns: Vec<Column>,
}

const WITH_VALUES: u8 = 0x01;
const WITHOUT_METADATA: u8 = 0x02;

impl Template {
    pub(super) fn new(id: &[u8], consistency: u16, columns: Vec<Column>) -> Self {
        let mut head = Vec::new();
        begin(opcode::EXECUTE, &mut head);
        short_bytes(id, &mut head);
        head.extend_from_slice(&consistency.to_be_bytes());
        if columns.is_empty() {
            head.push(WITHOUT_METADATA);
        } else {
            head.push(WITH_VALUES | WITHOUT_METADATA);
            head.extend_from_slice(&(columns.len() as u16).to_be_bytes());
        }
        Self { head, columns }
    }

    pub(super) fn encode(&self, values: &Values, stream: u16, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.head);
        for (value, &column) in values.iter().zip(&self.columns) {
            let length = out.len();
            out.extend_from_slice(&[0; 4]);
            match (value, column) {
                (Value::Integer(number), Column::Whole(bytes)) => {
                    out.extend_from_slice(&number.to_be_bytes()[8 - usize::from(bytes)..]);
                }
                (Value::Integer(number), Column::Plain) => signed_decimal(out, number),
                (Value::Text(text), _) => out.extend_from_slice(text),
            }
            let count = (out.len() - length - 4) as u32;
            out[length..length + 4].copy_from_slice(&count.to_be_bytes());
        }
        out[start + 2..start + 4].copy_from_slice(&stream.to_be_bytes());
        end(start, out);
    }
}

/// A header whose length is still to be known.
pub(super) fn begin(opcode: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[VERSION, 0, 0, 0, opcode, 0, 0, 0, 0]);
}

pub(super) fn end(start: usize, out: &mut [u8]) {
    let length = (out.len() - start - HEADER_BYTES) as u32;
    out[start + 5..start + HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// One whole frame.
pub(super) fn frame(opcode: u8, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    begin(opcode, &mut out);
    body(&mut out);
    end(0, &mut out);
    out
}

pub(super) fn short_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

pub(super) fn long_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_behind_the_prepared_part() {
        let template = Template::new(b"id", 1, vec![Column::Plain, Column::Whole(4)]);
        let mut values = Values::default();
        values.text(|out| out.extend_from_slice(b"user7"));
        values.integer(-2);
        let mut out = b"before".to_vec();
        template.encode(&values, 513, &mut out);
        let expected = [
            &b"before"[..],
            &[4, 0, 2, 1, 0x0a, 0, 0, 0, 26],
            &[0, 2, b'i', b'd', 0, 1, 3, 0, 2],
            &[0, 0, 0, 5, b'u', b's', b'e', b'r', b'7'],
            &[0, 0, 0, 4, 255, 255, 255, 254],
        ]
        .concat();
        assert_eq!(out, expected);
    }

    #[test]
    fn a_number_in_a_text_column_is_written_out() {
        let template = Template::new(b"", 1, vec![Column::Plain]);
        let mut values = Values::default();
        values.integer(42);
        let mut out = Vec::new();
        template.encode(&values, 0, &mut out);
        assert!(out.ends_with(&[0, 0, 0, 2, b'4', b'2']));
    }
}
