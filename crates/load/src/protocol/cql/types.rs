//! Values as columns take them (section 6 of the specification of version 4).

use std::net::IpAddr;

use serde_json::Value as Json;

use crate::protocol::Value;
use crate::protocol::statement::{days, signed_decimal};

/// A parameter's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// A whole number of so many bytes, the highest first.
    Whole(u8),
    /// As it is: text or bytes.
    Plain,
    Boolean,
    Float,
    Double,
    Decimal,
    Varint,
    Uuid,
    Inet,
    Date,
    Duration,
    /// Or a set.
    List(Box<Column>),
    Map(Box<Column>, Box<Column>),
    Tuple(Vec<Column>),
    /// A type of the user's own, with its fields.
    Record(Vec<(String, Column)>),
}

const NULL: [u8; 4] = [255; 4];

impl Column {
    /// Appends a value. What is none of this type goes as it is, for the server to refuse.
    pub(super) fn put(&self, value: Value<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        let done = match value {
            Value::Integer(number) => self.number(number, out),
            Value::Text(text) => match self {
                Self::Plain => None,
                _ => std::str::from_utf8(text).ok().and_then(|text| self.text(text, out)),
            },
        };
        if done.is_none() {
            out.truncate(start);
            match value {
                Value::Integer(number) => signed_decimal(out, number),
                Value::Text(text) => out.extend_from_slice(text),
            }
        }
    }

    fn number(&self, number: i64, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Whole(bytes) => {
                let beyond = 64 - 8 * u32::from(*bytes);
                // What does not fit is sent whole, for the server to refuse: cut short it would be another number.
                let fits = number << beyond >> beyond == number;
                let from = if fits { 8 - usize::from(*bytes) } else { 0 };
                out.extend_from_slice(&number.to_be_bytes()[from..]);
            }
            Self::Boolean => out.push(u8::from(number != 0)),
            #[allow(clippy::cast_precision_loss)] // as every client does
            Self::Float => out.extend_from_slice(&(number as f32).to_be_bytes()),
            #[allow(clippy::cast_precision_loss)] // as every client does
            Self::Double => out.extend_from_slice(&(number as f64).to_be_bytes()),
            Self::Decimal => {
                out.extend_from_slice(&[0; 4]);
                varint(number.into(), out);
            }
            Self::Varint => varint(number.into(), out),
            Self::Uuid => out.extend_from_slice(&u128::from(number as u64).to_be_bytes()),
            Self::Inet => out.extend_from_slice(&u32::try_from(number).ok()?.to_be_bytes()),
            Self::Date => {
                let day = number.checked_add(1 << 31).and_then(|day| u32::try_from(day).ok())?;
                out.extend_from_slice(&day.to_be_bytes());
            }
            Self::Duration => {
                out.extend_from_slice(&[0; 2]); // months and days
                vint(number, out);
            }
            Self::Plain | Self::List(_) | Self::Map(..) | Self::Tuple(_) | Self::Record(_) => {
                return None;
            }
        }
        Some(())
    }

    fn text(&self, text: &str, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Plain => out.extend_from_slice(text.as_bytes()),
            Self::Whole(_) | Self::Duration => return self.number(text.parse().ok()?, out),
            Self::Boolean => out.push(u8::from(text.parse::<bool>().ok()?)),
            Self::Float => out.extend_from_slice(&text.parse::<f32>().ok()?.to_be_bytes()),
            Self::Double => out.extend_from_slice(&text.parse::<f64>().ok()?.to_be_bytes()),
            Self::Decimal => {
                let (whole, part) = text.split_once('.').unwrap_or((text, ""));
                let digits = part.bytes().all(|byte| byte.is_ascii_digit());
                let number = [whole, part].concat().parse().ok().filter(|_| digits)?;
                out.extend_from_slice(&u32::try_from(part.len()).ok()?.to_be_bytes());
                varint(number, out);
            }
            Self::Varint => varint(text.parse().ok()?, out),
            Self::Uuid => {
                let digits = text.replace('-', "");
                let number = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32);
                out.extend_from_slice(&number?.to_be_bytes());
            }
            Self::Inet => match text.parse().ok()? {
                IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
                IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
            },
            Self::Date => return self.number(days(text)?, out),
            Self::List(_) | Self::Map(..) | Self::Tuple(_) | Self::Record(_) => {
                return self.json(&serde_json::from_str(text).ok()?, out);
            }
        }
        Some(())
    }

    fn json(&self, json: &Json, out: &mut Vec<u8>) -> Option<()> {
        match (self, json) {
            (Self::List(each), Json::Array(elements)) => {
                out.extend_from_slice(&(elements.len() as u32).to_be_bytes());
                elements.iter().try_for_each(|element| each.sized(element, out))
            }
            (Self::Map(key, value), Json::Object(entries)) => {
                out.extend_from_slice(&(entries.len() as u32).to_be_bytes());
                entries.iter().try_for_each(|(name, entry)| {
                    key.sized(&Json::from(name.as_str()), out)?;
                    value.sized(entry, out)
                })
            }
            (Self::Tuple(columns), Json::Array(elements)) if columns.len() == elements.len() => {
                columns.iter().zip(elements).try_for_each(|(one, element)| one.sized(element, out))
            }
            (Self::Record(fields), Json::Object(entries)) => {
                if entries.keys().any(|name| fields.iter().all(|(field, _)| field != name)) {
                    return None;
                }
                fields.iter().try_for_each(|(name, column)| {
                    column.sized(entries.get(name).unwrap_or(&Json::Null), out)
                })
            }
            (_, Json::Number(number)) => match number.as_i64() {
                Some(number) if *self != Self::Plain => self.number(number, out),
                _ => self.text(&number.to_string(), out),
            },
            (_, Json::Bool(flag)) => self.text(&flag.to_string(), out),
            (_, Json::String(text)) => self.text(text, out),
            _ => None,
        }
    }

    /// With its length before it.
    fn sized(&self, json: &Json, out: &mut Vec<u8>) -> Option<()> {
        if json.is_null() {
            out.extend_from_slice(&NULL);
            return Some(());
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        self.json(json, out)?;
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        Some(())
    }
}

/// Two's complement in as few bytes as hold it, the highest first.
fn varint(number: i128, out: &mut Vec<u8>) {
    let bytes = number.to_be_bytes();
    let sign = if number < 0 { 0xff } else { 0 };
    let from = (0..15).find(|&at| bytes[at] != sign || (bytes[at + 1] ^ sign) & 0x80 != 0);
    out.extend_from_slice(&bytes[from.unwrap_or(15)..]);
}

/// A zig-zag number whose first byte says by its leading ones how many follow.
fn vint(number: i64, out: &mut Vec<u8>) {
    let zigzag = ((number >> 63) ^ (number << 1)) as u64;
    let bits = 64 - (zigzag | 1).leading_zeros();
    let more = ((bits - 1) / 7).min(8) as usize;
    let mut bytes = [0; 9];
    bytes[1..].copy_from_slice(&zigzag.to_be_bytes());
    let first = 8 - more;
    if more < 8 {
        bytes[first] |= !(0xff_u8 >> more);
    } else {
        bytes[0] = 0xff;
    }
    out.extend_from_slice(&bytes[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(column: &Column, number: i64) -> Vec<u8> {
        let mut out = Vec::new();
        column.put(Value::Integer(number), &mut out);
        out
    }

    fn text(column: &Column, text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        column.put(Value::Text(text.as_bytes()), &mut out);
        out
    }

    #[test]
    fn a_number_that_a_column_cannot_hold_is_not_cut() {
        let written = |bytes, value| number(&Column::Whole(bytes), value);
        assert_eq!(written(4, i64::from(i32::MAX)), i32::MAX.to_be_bytes());
        assert_eq!(written(4, i64::from(i32::MIN)), i32::MIN.to_be_bytes());
        assert_eq!(written(4, 1 << 31), (1_i64 << 31).to_be_bytes());
        assert_eq!(written(2, -40_000), (-40_000_i64).to_be_bytes());
        assert_eq!(written(1, -1), [255]);
        assert_eq!(written(8, i64::MIN), i64::MIN.to_be_bytes());
    }

    /// The table of section 6.23 (`varint`) of the specification, and the example of its `[unsigned vint]`.
    #[test]
    fn the_specifications_examples() {
        for (value, bytes) in [
            (0, &[0x00][..]),
            (1, &[0x01]),
            (127, &[0x7f]),
            (128, &[0x00, 0x80]),
            (129, &[0x00, 0x81]),
            (-1, &[0xff]),
            (-128, &[0x80]),
            (-129, &[0xff, 0x7f]),
        ] {
            assert_eq!(number(&Column::Varint, value), bytes, "{value}");
        }
        assert_eq!(number(&Column::Duration, 128_000), [0, 0, 0b1100_0011, 0b1110_1000, 0]);
        assert_eq!(number(&Column::Duration, -1), [0, 0, 1]);
        assert_eq!(number(&Column::Duration, i64::MIN)[2..], [255; 9]);
        assert_eq!(number(&Column::Date, 0), [0x80, 0, 0, 0]);
        assert_eq!(text(&Column::Date, "1969-12-31"), [0x7f, 255, 255, 255]);
    }

    #[test]
    fn texts_are_read_by_type() {
        assert_eq!(text(&Column::Whole(4), "-2"), (-2_i32).to_be_bytes());
        assert_eq!(text(&Column::Boolean, "true"), [1]);
        assert_eq!(text(&Column::Double, "1.5"), 1.5_f64.to_be_bytes());
        assert_eq!(text(&Column::Float, "1.5"), 1.5_f32.to_be_bytes());
        assert_eq!(text(&Column::Decimal, "-1.28"), [0, 0, 0, 2, 0x80]);
        assert_eq!(text(&Column::Inet, "127.0.0.1"), [127, 0, 0, 1]);
        assert_eq!(text(&Column::Inet, "::1")[15], 1);
        assert_eq!(text(&Column::Uuid, "73ffd264-44b3-4c69-90e8-e7d1dfc035d4")[..2], [0x73, 0xff]);
        assert_eq!(number(&Column::Uuid, 258)[14..], [1, 2]);
        for column in [Column::Boolean, Column::Double, Column::Uuid, Column::Inet, Column::Date] {
            assert_eq!(text(&column, "x"), b"x", "for the server to refuse");
        }
    }

    #[test]
    fn collections_are_written_as_json() {
        let int = || Box::new(Column::Whole(4));
        let list = text(&Column::List(int()), "[1, 2]");
        assert_eq!(list, b"\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x04\0\0\0\x02");
        let map = text(&Column::Map(Box::new(Column::Plain), int()), r#"{"a": 1}"#);
        assert_eq!(map, b"\0\0\0\x01\0\0\0\x01a\0\0\0\x04\0\0\0\x01");
        let tuple = text(&Column::Tuple(vec![Column::Boolean, Column::Plain]), "[true, null]");
        assert_eq!(tuple, b"\0\0\0\x01\x01\xff\xff\xff\xff");
        let record = Column::Record(vec![("a".into(), Column::Plain), ("b".into(), *int())]);
        assert_eq!(text(&record, r#"{"b": 1}"#), b"\xff\xff\xff\xff\0\0\0\x04\0\0\0\x01");
        for wrong in [r#"{"c": 1}"#, "[1]", "{"] {
            assert_eq!(text(&record, wrong), wrong.as_bytes(), "for the server to refuse");
        }
    }
}
