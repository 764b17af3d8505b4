//! Frames, all but stream, length and values prepared.

use super::types::Column;
use super::{HEADER_BYTES, opcode};
use crate::protocol::Values;

/// An `EXECUTE` with gaps for its values.
#[derive(Debug)]
pub(super) struct Template {
    head: Vec<u8>,
    columns: Vec<Column>,
    keyspace: String,
    key: Vec<u16>,
}

/// What a server answers to `PREPARE`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prepared {
    pub(super) id: Vec<u8>,
    /// Of the description of its result; before version 5 there is none.
    pub(super) result_id: Option<Vec<u8>>,
    /// Of each `?` how it takes a value.
    pub(super) columns: Vec<Column>,
    pub(super) keyspace: String,
    /// Which of them are the partition key, in its order.
    pub(super) key: Vec<u16>,
}

const WITH_VALUES: u8 = 0x01;
const WITHOUT_METADATA: u8 = 0x02;

impl Template {
    pub(super) fn new(version: u8, prepared: Prepared, consistency: u16) -> Self {
        let Prepared { id, result_id, columns, keyspace, key } = prepared;
        let mut head = Vec::new();
        begin(version, opcode::EXECUTE, &mut head);
        short_bytes(&id, &mut head);
        if let Some(id) = result_id {
            short_bytes(&id, &mut head);
        }
        head.extend_from_slice(&consistency.to_be_bytes());
        if columns.is_empty() {
            flags(version, WITHOUT_METADATA, &mut head);
        } else {
            flags(version, WITH_VALUES | WITHOUT_METADATA, &mut head);
            head.extend_from_slice(&(columns.len() as u16).to_be_bytes());
        }
        Self { head, columns, keyspace, key }
    }

    pub(super) fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// Appends the partition key that `values` have; whether there is one.
    pub(super) fn key(&self, values: &Values, out: &mut Vec<u8>) -> bool {
        for &place in &self.key {
            let place = usize::from(place);
            let Some(value) = values.iter().nth(place) else { return false };
            if self.key.len() == 1 {
                self.columns[place].put(value, out);
            } else {
                // Of several columns each has its length before it, and a zero behind it.
                let start = out.len();
                out.extend_from_slice(&[0; 2]);
                self.columns[place].put(value, out);
                let length = (out.len() - start - 2) as u16;
                out[start..start + 2].copy_from_slice(&length.to_be_bytes());
                out.push(0);
            }
        }
        !self.key.is_empty()
    }

    /// Appends a frame.
    pub(super) fn encode(&self, values: &Values, stream: u16, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.head);
        for (value, column) in values.iter().zip(&self.columns) {
            let length = out.len();
            out.extend_from_slice(&[0; 4]);
            column.put(value, out);
            let count = (out.len() - length - 4) as u32;
            out[length..length + 4].copy_from_slice(&count.to_be_bytes());
        }
        out[start + 2..start + 4].copy_from_slice(&stream.to_be_bytes());
        end(start, out);
    }
}

/// A header whose length is still to be known.
pub(super) fn begin(version: u8, opcode: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[version, 0, 0, 0, opcode, 0, 0, 0, 0]);
}

pub(super) fn end(start: usize, out: &mut [u8]) {
    let length = (out.len() - start - HEADER_BYTES) as u32;
    out[start + 5..start + HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// One whole frame.
pub(super) fn frame(version: u8, opcode: u8, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    begin(version, opcode, &mut out);
    body(&mut out);
    end(0, &mut out);
    out
}

/// Flags of a statement's parameters: they have grown in version 5.
pub(super) fn flags(version: u8, flags: u8, out: &mut Vec<u8>) {
    if version >= 5 {
        out.extend_from_slice(&[0; 3]);
    }
    out.push(flags);
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

    fn prepared(columns: Vec<Column>) -> Prepared {
        Prepared { id: b"id".to_vec(), columns, ..Prepared::default() }
    }

    #[test]
    fn a_key_is_its_bytes_or_each_column_with_its_length() {
        let of = |key: &[u16]| {
            let columns = vec![Column::Plain, Column::Whole(4)];
            Template::new(4, Prepared { key: key.to_vec(), ..prepared(columns) }, 1)
        };
        let mut values = Values::default();
        values.text(|out| out.extend_from_slice(b"user7"));
        values.integer(2);
        let key = |places: &[u16]| {
            let mut out = Vec::new();
            of(places).key(&values, &mut out).then_some(out)
        };
        assert_eq!(key(&[]), None, "a scan");
        assert_eq!(key(&[0]).as_deref(), Some(&b"user7"[..]));
        assert_eq!(key(&[1, 0]).as_deref(), Some(&b"\0\x04\0\0\0\x02\0\0\x05user7\0"[..]));
    }

    #[test]
    fn version_5_has_the_results_id_and_longer_flags() {
        let of_5 = Prepared { result_id: Some(b"res".to_vec()), ..prepared(vec![Column::Plain]) };
        let mut values = Values::default();
        values.text(|out| out.push(b'v'));
        let mut out = b"before".to_vec();
        Template::new(5, of_5, 1).encode(&values, 513, &mut out);
        let expected = [
            &[5, 0, 2, 1, 0x0a, 0, 0, 0, 22][..],
            &[0, 2, b'i', b'd', 0, 3, b'r', b'e', b's', 0, 1, 0, 0, 0, 3, 0, 1],
            &[0, 0, 0, 1, b'v'],
        ]
        .concat();
        assert_eq!(out[6..], expected);
    }

    #[test]
    fn values_go_behind_the_prepared_part() {
        let template = Template::new(4, prepared(vec![Column::Plain, Column::Whole(4)]), 1);
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
        let template = Template::new(4, prepared(vec![Column::Plain]), 1);
        let mut values = Values::default();
        values.integer(42);
        let mut out = Vec::new();
        template.encode(&values, 0, &mut out);
        assert!(out.ends_with(&[0, 0, 0, 2, b'4', b'2']));
    }
}
