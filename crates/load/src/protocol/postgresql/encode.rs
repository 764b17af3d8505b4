//! Requests as `Bind`, `Execute` and `Sync`, all but the values prepared.

use crate::protocol::statement::signed_decimal;
use crate::protocol::{Type, Value, Values};

/// A prepared statement's request with gaps for its values.
#[derive(Clone, Debug)]
pub(super) struct Template {
    /// `Bind` up to the first value.
    start: Vec<u8>,
    /// Where in it the formats of the values lie, two bytes each.
    formats: usize,
    forms: Vec<Form>,
}

/// How the server takes a parameter of some type in binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Int2,
    Int4,
    Int8,
    /// Text, and bytes: as they are.
    Bytes,
    /// A type whose text is sent.
    Text,
}

/// No result is asked for in binary: texts are what was written, in every protocol.
const RESULTS: &[u8] = &[0, 0];
/// `Execute` without a limit of rows, and `Sync`.
const END: &[u8] = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
const IN_TEXT: [u8; 2] = [0, 0];
const IN_BINARY: [u8; 2] = [0, 1];

impl Form {
    /// By the type's number in `pg_type.dat`.
    fn of(oid: u32) -> Self {
        match oid {
            21 => Self::Int2,
            23 => Self::Int4,
            20 => Self::Int8,
            // bytea, name, text, bpchar, varchar
            17 | 19 | 25 | 1042 | 1043 => Self::Bytes,
            _ => Self::Text,
        }
    }

    fn format(self) -> [u8; 2] {
        if self == Self::Text { IN_TEXT } else { IN_BINARY }
    }
}

impl Template {
    /// Of the statement that was prepared as `name`, whose parameters have these types.
    pub(super) fn new(name: &str, oids: &[u32]) -> Self {
        let forms: Vec<Form> = oids.iter().map(|&oid| Form::of(oid)).collect();
        let count = (forms.len() as u16).to_be_bytes();
        let mut start = b"B\0\0\0\0\0".to_vec();
        start.extend_from_slice(name.as_bytes());
        start.push(0);
        start.extend_from_slice(&count);
        let formats = start.len();
        start.extend(forms.iter().flat_map(|form| form.format()));
        start.extend_from_slice(&count);
        Self { start, formats, forms }
    }

    pub(super) fn encode(&self, values: &Values, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.start);
        for (number, (value, form)) in values.iter().zip(&self.forms).enumerate() {
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            let format = write(value, *form, out);
            if format != form.format() {
                let place = start + self.formats + 2 * number;
                out[place..place + 2].copy_from_slice(&format);
            }
            let length = (out.len() - at - 4) as u32;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        out.extend_from_slice(RESULTS);
        let length = (out.len() - start - 1) as u32;
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        out.extend_from_slice(END);
    }
}

/// Returns the format. A number too great for its type goes as text, which the server refuses by name.
fn write(value: Value<'_>, form: Form, out: &mut Vec<u8>) -> [u8; 2] {
    match (value, form) {
        (Value::Text(text), _) => {
            out.extend_from_slice(text);
            return if form == Form::Bytes { IN_BINARY } else { IN_TEXT };
        }
        (Value::Integer(number), Form::Int8) => out.extend_from_slice(&number.to_be_bytes()),
        (Value::Integer(number), Form::Int4) if i32::try_from(number).is_ok() => {
            out.extend_from_slice(&(number as i32).to_be_bytes());
        }
        (Value::Integer(number), Form::Int2) if i16::try_from(number).is_ok() => {
            out.extend_from_slice(&(number as i16).to_be_bytes());
        }
        (Value::Integer(number), _) => {
            signed_decimal(out, number);
            return IN_TEXT;
        }
    }
    IN_BINARY
}

/// `$1`, `$2`, … in place of each `?` that stands in no quotes; `None` where their number is another.
pub(super) fn numbered(text: &str, parameters: &[Type]) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 2 * parameters.len());
    let mut quote = None;
    let mut number = 0;
    for letter in text.chars() {
        match (quote, letter) {
            (None, '?') => {
                number += 1;
                out.push('$');
                out.push_str(&usize::to_string(&number));
                continue;
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
        out.push(letter);
    }
    (number == parameters.len()).then_some(out)
}

/// A message: its kind, its length, and its parts.
pub(super) fn message(kind: u8, parts: &[&[u8]], out: &mut Vec<u8>) {
    out.push(kind);
    let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    out.extend_from_slice(&(length as u32).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_bind_execute_sync() {
        let mut values = Values::default();
        values.integer(7);
        values.text(|out| out.extend_from_slice(b"ab"));
        let mut out = b"before".to_vec();
        Template::new("3", &[23, 1042]).encode(&values, &mut out);
        assert_eq!(
            out,
            b"beforeB\0\0\0\x1f\x003\0\0\x02\0\x01\0\x01\0\x02\0\0\0\x04\0\0\0\x07\0\0\0\x02ab\0\0\
              E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
        );
    }

    #[test]
    fn numbers_take_the_size_of_their_type() {
        let bytes = |number: i64, oid: u32| {
            let (mut values, mut out) = (Values::default(), Vec::new());
            values.integer(number);
            Template::new("", &[oid]).encode(&values, &mut out);
            let (format, length) = (out[10], out[16]);
            (format, out[17..17 + usize::from(length)].to_vec())
        };
        assert_eq!(bytes(-2, 21), (1, vec![0xff, 0xfe]));
        assert_eq!(bytes(-2, 20), (1, vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]));
        assert_eq!(bytes(40_000, 21), (0, b"40000".to_vec()), "for the server to refuse");
        assert_eq!(bytes(1 << 31, 23), (0, b"2147483648".to_vec()));
        assert_eq!(bytes(12, 1700), (0, b"12".to_vec()), "numeric has no simple binary form");
        assert_eq!(bytes(12, 25), (0, b"12".to_vec()));
    }

    #[test]
    fn marks_are_numbered_outside_quotes() {
        let both = [Type::Integer, Type::Text];
        assert_eq!(
            numbered("SELECT '?', \"a?\" FROM t WHERE a=? AND b=?", &both).as_deref(),
            Some("SELECT '?', \"a?\" FROM t WHERE a=$1 AND b=$2")
        );
        assert_eq!(numbered("SELECT j ? 'a' FROM t WHERE a=?", &both[..1]), None);
    }
}
