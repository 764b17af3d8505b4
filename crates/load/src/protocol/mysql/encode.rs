//! Requests as `COM_STMT_EXECUTE`, all but the values prepared.

use super::packet::{HEADER, number, seal};
use crate::protocol::{Type, Value, Values};

/// A statement's request with gaps for its values.
#[derive(Clone, Debug)]
pub(super) enum Template {
    Prepared {
        /// Up to the types of the parameters.
        start: Vec<u8>,
        types: Vec<Type>,
        /// The server knows the types from the request before.
        sent: bool,
    },
    /// A whole `COM_QUERY`, of a statement that cannot be prepared (`BEGIN` in `MySQL`).
    Text(Vec<u8>),
}

const QUERY: u8 = 0x03;
const EXECUTE: u8 = 0x17;
/// Eight bytes, and a string (enum `enum_field_types`).
const LONG_LONG: [u8; 2] = [8, 0];
const STRING: [u8; 2] = [254, 0];

impl Template {
    pub(super) fn prepared(statement: u32, types: &[Type]) -> Self {
        let mut start = vec![0; HEADER];
        start.push(EXECUTE);
        start.extend_from_slice(&statement.to_le_bytes());
        start.extend_from_slice(&[0, 1, 0, 0, 0]); // no cursor; once
        start.extend(std::iter::repeat_n(0, types.len().div_ceil(8))); // none is NULL
        Self::Prepared { start, types: types.to_vec(), sent: false }
    }

    pub(super) fn text(text: &str) -> Self {
        let mut out = vec![0; HEADER];
        out.push(QUERY);
        out.extend_from_slice(text.as_bytes());
        seal(0, 0, &mut out);
        Self::Text(out)
    }

    pub(super) fn encode(&mut self, values: &Values, out: &mut Vec<u8>) {
        let (start, types, sent) = match self {
            Self::Text(request) => return out.extend_from_slice(request),
            Self::Prepared { start, types, sent } => (start, types, sent),
        };
        let at = out.len();
        out.extend_from_slice(start);
        if !types.is_empty() {
            // A workload may give other types than it declared; the server then hears of it.
            let declared =
                values.iter().zip(types.iter()).all(|(value, one)| type_of(value) == *one);
            let with_types = !(*sent && declared);
            out.push(u8::from(with_types));
            if with_types {
                out.extend(values.iter().flat_map(|value| match type_of(value) {
                    Type::Integer => LONG_LONG,
                    Type::Text => STRING,
                }));
            }
            *sent = declared;
            for value in values.iter() {
                match value {
                    Value::Integer(integer) => out.extend_from_slice(&integer.to_le_bytes()),
                    Value::Text(text) => {
                        number(text.len() as u64, out);
                        out.extend_from_slice(text);
                    }
                }
            }
        }
        seal(at, 0, out);
    }
}

fn type_of(value: Value<'_>) -> Type {
    match value {
        Value::Integer(_) => Type::Integer,
        Value::Text(_) => Type::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_sent_once() {
        let mut template = Template::prepared(9, &[Type::Integer, Type::Text]);
        let mut values = Values::default();
        values.integer(-2);
        values.text(|out| out.extend_from_slice(b"ab"));
        let (mut first, mut second) = (Vec::new(), Vec::new());
        template.encode(&values, &mut first);
        template.encode(&values, &mut second);
        assert_eq!(
            first,
            b"\x1b\0\0\0\x17\x09\0\0\0\0\x01\0\0\0\0\x01\x08\0\xfe\0\xfe\xff\xff\xff\xff\xff\xff\xff\x02ab"
        );
        assert_eq!(second, first_without_types());
        values.clear();
        values.text(|out| out.push(b'7'));
        values.text(|out| out.push(b'8'));
        let mut third = Vec::new();
        template.encode(&values, &mut third);
        assert_eq!(third[16..], *b"\xfe\0\xfe\0\x017\x018", "these are other types");
    }

    fn first_without_types() -> Vec<u8> {
        b"\x17\0\0\0\x17\x09\0\0\0\0\x01\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\x02ab".to_vec()
    }

    #[test]
    fn without_parameters_there_are_no_types() {
        let mut out = Vec::new();
        Template::prepared(1, &[]).encode(&Values::default(), &mut out);
        assert_eq!(out, b"\x0a\0\0\0\x17\x01\0\0\0\0\x01\0\0\0");
        out.clear();
        Template::text("BEGIN").encode(&Values::default(), &mut out);
        assert_eq!(out, b"\x06\0\0\0\x03BEGIN");
    }
}
