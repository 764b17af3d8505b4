//! Commands: written as JSON with `?` for a value, sent as BSON.

use super::OP_MSG;
use super::extended::{
    ARRAY, BINARY, BOOLEAN, DATE, DOCUMENT, DOUBLE, Form, INT32, INT64, NULL, OBJECT_ID, STRING,
    form, object_id, put_binary, string, typed,
};
use super::json::Json;
use crate::protocol::statement::json_parts;
use crate::protocol::{Value, Values};

/// A command taken apart into what is fixed and what each request fills in.
#[derive(Debug)]
pub(super) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, PartialEq)]
enum Piece {
    Bytes(Vec<u8>),
    /// A document or an array begins: its length comes first.
    Open,
    Close,
    /// An element: a value under this name.
    Gap {
        name: Vec<u8>,
        form: Form,
    },
}

impl Template {
    /// The command `text`, for `database`.
    pub(super) fn new(text: &str, database: &str) -> Result<Self, String> {
        let parts = json_parts(text).ok_or("a string without its end")?;
        let parts = parts.iter().enumerate().map(|(place, part)| match place % 2 {
            0 => part.replace('?', MARK),
            _ => (*part).to_owned(),
        });
        let json = serde_json::from_str(&parts.collect::<String>())
            .map_err(|error| format!("a command that is no JSON: {error}"))?;
        let Json::Document(members) = json else {
            return Err("a command that is no document".to_owned());
        };
        let mut builder = Builder { pieces: vec![Piece::Open] };
        builder.members(&members, 1)?;
        builder.value("$db", &Json::Text(database.to_owned()), 1)?;
        builder.pieces.push(Piece::Close);
        Ok(Self { pieces: builder.pieces })
    }

    pub(super) fn encode(&self, values: &Values, slot: u16, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&i32::from(slot).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&OP_MSG.to_le_bytes());
        out.extend_from_slice(&[0; 5]); // no flags; a body
        let mut values = values.iter();
        let mut open = [0; MOST_DEEP];
        let mut depth = 0;
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(bytes) => out.extend_from_slice(bytes),
                Piece::Open => {
                    open[depth] = out.len();
                    depth += 1;
                    out.extend_from_slice(&[0; 4]);
                }
                Piece::Close => {
                    out.push(0);
                    depth -= 1;
                    end(open[depth], out);
                }
                Piece::Gap { name, form } => {
                    if let Some(value) = values.next() {
                        element(name, value, *form, out);
                    }
                }
            }
        }
        end(start, out);
    }
}

/// JSON that stands for a value of a request, and its only name.
const MARK: &str = r#"{"$?": null}"#;
const MARKED: &str = "$?";
/// No command that is written here is deeper.
const MOST_DEEP: usize = 16;

fn end(start: usize, out: &mut [u8]) {
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn element(name: &[u8], value: Value<'_>, form: Form, out: &mut Vec<u8>) {
    let mut begin = |kind: u8| {
        out.push(kind);
        out.extend_from_slice(name);
    };
    match (value, form) {
        (Value::Integer(number), Form::Short) => {
            begin(INT32);
            out.extend_from_slice(&(number as i32).to_le_bytes());
        }
        (Value::Integer(number), Form::Double) => {
            begin(DOUBLE);
            #[allow(clippy::cast_precision_loss)] // as other programs do
            out.extend_from_slice(&(number as f64).to_le_bytes());
        }
        (Value::Integer(number), Form::ObjectId) => {
            begin(OBJECT_ID);
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&number.to_be_bytes());
        }
        (Value::Integer(number), form) => {
            begin(if form == Form::Date { DATE } else { INT64 });
            out.extend_from_slice(&number.to_le_bytes());
        }
        (Value::Text(text), Form::Binary) => {
            begin(BINARY);
            put_binary(0, text, out);
        }
        (Value::Text(text), form) => {
            if let Some(id) = object_id(text).filter(|_| form == Form::ObjectId) {
                begin(OBJECT_ID);
                out.extend_from_slice(&id);
            } else {
                begin(STRING);
                string(text, out);
            }
        }
    }
}

struct Builder {
    pieces: Vec<Piece>,
}

impl Builder {
    fn members(&mut self, members: &[(String, Json)], depth: usize) -> Result<(), String> {
        members.iter().try_for_each(|(name, value)| self.value(name, value, depth))
    }

    fn value(&mut self, name: &str, value: &Json, depth: usize) -> Result<(), String> {
        if name.contains('\0') {
            return Err("a name with a zero in it".to_owned());
        }
        match value {
            Json::Null => self.fixed(NULL, name, &[]),
            Json::Flag(flag) => self.fixed(BOOLEAN, name, &[u8::from(*flag)]),
            Json::Whole(number) => match i32::try_from(*number) {
                Ok(number) => self.fixed(INT32, name, &number.to_le_bytes()),
                Err(_) => self.fixed(INT64, name, &number.to_le_bytes()),
            },
            Json::Real(number) => self.fixed(DOUBLE, name, &number.to_le_bytes()),
            Json::Text(text) => {
                let mut bytes = Vec::new();
                string(text.as_bytes(), &mut bytes);
                self.fixed(STRING, name, &bytes);
            }
            Json::List(elements) => {
                self.open(ARRAY, name, depth)?;
                for (place, element) in elements.iter().enumerate() {
                    self.value(&place.to_string(), element, depth + 1)?;
                }
                self.pieces.push(Piece::Close);
            }
            Json::Document(members) => {
                if let Some(form) = gap(value)? {
                    let name = [name.as_bytes(), &[0]].concat();
                    self.pieces.push(Piece::Gap { name, form });
                } else if let Some((kind, bytes)) = typed(value)? {
                    self.fixed(kind, name, &bytes);
                } else {
                    self.open(DOCUMENT, name, depth)?;
                    self.members(members, depth + 1)?;
                    self.pieces.push(Piece::Close);
                }
            }
        }
        Ok(())
    }

    fn fixed(&mut self, kind: u8, name: &str, value: &[u8]) {
        let bytes = [&[kind], name.as_bytes(), &[0], value].concat();
        match self.pieces.last_mut() {
            Some(Piece::Bytes(last)) => last.extend_from_slice(&bytes),
            _ => self.pieces.push(Piece::Bytes(bytes)),
        }
    }

    fn open(&mut self, kind: u8, name: &str, depth: usize) -> Result<(), String> {
        if depth >= MOST_DEEP {
            return Err("a command that is too deep".to_owned());
        }
        self.fixed(kind, name, &[]);
        self.pieces.push(Piece::Open);
        Ok(())
    }
}

/// How a request's value is written, if this is one: `?`, or such as `{"$oid": ?}`.
fn gap(value: &Json) -> Result<Option<Form>, &'static str> {
    match value {
        Json::Document(members) => match members.as_slice() {
            [(name, _)] if name == MARKED => Ok(Some(Form::Own)),
            [(name, value)] if value.only(MARKED).is_some() => form(name),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_bson_with_its_values() {
        let template = Template::new(r#"{"f": "t", "q": {"_id": ?, "v": {"$binary": ?}}}"#, "d")
            .expect("a command");
        let mut values = Values::default();
        values.text(|out| out.extend_from_slice(b"k1"));
        values.text(|out| out.extend_from_slice(b"xyz"));
        let mut out = Vec::new();
        template.encode(&values, 7, &mut out);
        let inner = [
            &[2][..],
            b"_id\0",
            &[3, 0, 0, 0],
            b"k1\0",
            &[5],
            b"v\0",
            &[3, 0, 0, 0, 0],
            b"xyz",
            &[0],
        ]
        .concat();
        let inner = [&(inner.len() as i32 + 4).to_le_bytes()[..], &inner].concat();
        let body = [
            &[2][..],
            b"f\0",
            &[2, 0, 0, 0],
            b"t\0",
            &[3],
            b"q\0",
            &inner,
            &[2],
            b"$db\0",
            &[2, 0, 0, 0],
            b"d\0",
            &[0],
        ]
        .concat();
        let body = [&(body.len() as i32 + 4).to_le_bytes()[..], &body].concat();
        let head = [7, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0, 0, 0, 0, 0, 0];
        let whole = (4 + head.len() + body.len()) as i32;
        assert_eq!(out, [&whole.to_le_bytes()[..], &head, &body].concat());
    }

    /// The only member's type and value in a command with this value.
    fn sent(value: &str, fill: impl FnOnce(&mut Values)) -> Vec<u8> {
        let mut values = Values::default();
        fill(&mut values);
        let mut out = Vec::new();
        let template = Template::new(&format!(r#"{{"v": {value}}}"#), "d").expect("a command");
        template.encode(&values, 0, &mut out);
        let rest = &out[25..out.len() - 12];
        assert_eq!(&rest[1..3], b"v\0");
        [&rest[..1], &rest[3..]].concat()
    }

    #[test]
    fn values_have_the_types_that_the_command_names() {
        let of = |value: &str, number| sent(value, |values: &mut Values| values.integer(number));
        assert_eq!(of("?", 7), b"\x12\x07\0\0\0\0\0\0\0");
        assert_eq!(of(r#"{"$numberInt": ?}"#, -1), b"\x10\xff\xff\xff\xff");
        assert_eq!(of(r#"{"$numberDouble": ?}"#, 1), b"\x01\0\0\0\0\0\0\xf0\x3f");
        assert_eq!(of(r#"{"$date": ?}"#, 1), b"\x09\x01\0\0\0\0\0\0\0");
        assert_eq!(of(r#"{"$oid": ?}"#, 258), b"\x07\0\0\0\0\0\0\0\0\0\0\x01\x02");
        let of = |text: &'static [u8]| {
            sent(r#"{"$oid": ?}"#, |values| values.text(|out| out.extend_from_slice(text)))
        };
        assert_eq!(of(b"00000000000000000000000f"), b"\x07\0\0\0\0\0\0\0\0\0\0\0\x0f");
        assert_eq!(of(b"g"), b"\x02\x02\0\0\0g\0", "not one: as it is");
    }

    #[test]
    fn json_has_the_types_of_bson() {
        let of = |value| sent(value, |_| {});
        assert_eq!(of("null"), b"\x0a");
        assert_eq!(of("true"), b"\x08\x01");
        assert_eq!(of("-2"), b"\x10\xfe\xff\xff\xff");
        assert_eq!(of("2147483648"), b"\x12\0\0\0\x80\0\0\0\0");
        assert_eq!(of("1.0"), b"\x01\0\0\0\0\0\0\xf0\x3f");
        assert_eq!(of(r#""a\"?\n""#), b"\x02\x05\0\0\0a\"?\n\0");
        assert_eq!(of("[null]"), b"\x04\x08\0\0\0\x0a0\0\0");
        assert_eq!(of(r#"{"$oid": "56e1fc72e0c917e9c4714161"}"#)[..3], [7, 0x56, 0xe1]);
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for text in [
            "",
            "{",
            "[1]",
            r#"{"a"}"#,
            r#"{"a": b}"#,
            r#"{"a": 1} x"#,
            r#"{"a": [1}"#,
            r#"{"a": "}"#,
            "{?: 1}",
            r#"{"a": {"$uuid": ?}}"#,
        ] {
            assert!(Template::new(text, "d").is_err(), "{text}");
        }
        let deep = format!("{}1{}", r#"{"a": "#.repeat(40), "}".repeat(40));
        assert!(Template::new(&deep, "d").is_err());
    }
}
