//! Commands: written as JSON with `?` for a value (`?b`: as binary; `?i`: a number in 32 bits), sent as BSON.

use super::OP_MSG;
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

/// How a value goes into BSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// By what it is: a string or 64 bits.
    Own,
    Binary,
    /// 32 bits.
    Short,
}

const DOUBLE: u8 = 0x01;
const STRING: u8 = 0x02;
const DOCUMENT: u8 = 0x03;
const ARRAY: u8 = 0x04;
const BINARY: u8 = 0x05;
const BOOLEAN: u8 = 0x08;
const INT32: u8 = 0x10;
const INT64: u8 = 0x12;

impl Template {
    /// The command `text`, for `database`.
    pub(super) fn new(text: &str, database: &str) -> Result<Self, &'static str> {
        let mut parser = Parser { rest: text.trim(), pieces: Vec::new() };
        parser.expect("{")?;
        parser.pieces.push(Piece::Open);
        parser.members()?;
        let mut name = vec![STRING];
        name.extend_from_slice(b"$db\0");
        string(database.as_bytes(), &mut name);
        parser.bytes(&name);
        parser.pieces.push(Piece::Close);
        if parser.rest.is_empty() {
            Ok(Self { pieces: parser.pieces })
        } else {
            Err("something behind the end of a command")
        }
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
        (Value::Integer(number), _) => {
            begin(INT64);
            out.extend_from_slice(&number.to_le_bytes());
        }
        (Value::Text(text), Form::Binary) => {
            begin(BINARY);
            out.extend_from_slice(&(text.len() as i32).to_le_bytes());
            out.push(0); // of the generic kind
            out.extend_from_slice(text);
        }
        (Value::Text(text), _) => {
            begin(STRING);
            string(text, out);
        }
    }
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as i32 + 1).to_le_bytes());
    out.extend_from_slice(text);
    out.push(0);
}

struct Parser<'a> {
    rest: &'a str,
    pieces: Vec<Piece>,
}

impl<'a> Parser<'a> {
    fn bytes(&mut self, bytes: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(Piece::Bytes(bytes.to_vec())),
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, word: &'static str) -> Result<(), &'static str> {
        if self.takes(word) { Ok(()) } else { Err("a command that is no JSON") }
    }

    /// Up to and with the closing brace.
    fn members(&mut self) -> Result<(), &'static str> {
        while !self.takes("}") {
            let mut name = self.text()?.as_bytes().to_vec();
            name.push(0);
            self.expect(":")?;
            self.value(name)?;
            if !self.takes(",") {
                return self.expect("}");
            }
        }
        Ok(())
    }

    fn elements(&mut self) -> Result<(), &'static str> {
        let mut number = 0;
        while !self.takes("]") {
            self.value(format!("{number}\0").into_bytes())?;
            number += 1;
            if !self.takes(",") {
                return self.expect("]");
            }
        }
        Ok(())
    }

    fn value(&mut self, name: Vec<u8>) -> Result<(), &'static str> {
        if self.takes("?b") {
            self.pieces.push(Piece::Gap { name, form: Form::Binary });
        } else if self.takes("?i") {
            self.pieces.push(Piece::Gap { name, form: Form::Short });
        } else if self.takes("?") {
            self.pieces.push(Piece::Gap { name, form: Form::Own });
        } else if self.takes("{") {
            self.nested(DOCUMENT, &name, Self::members)?;
        } else if self.takes("[") {
            self.nested(ARRAY, &name, Self::elements)?;
        } else if self.takes("true") {
            self.fixed(BOOLEAN, &name, &[1]);
        } else if self.takes("false") {
            self.fixed(BOOLEAN, &name, &[0]);
        } else if self.rest.starts_with('"') {
            let mut bytes = Vec::new();
            string(self.text()?.as_bytes(), &mut bytes);
            self.fixed(STRING, &name, &bytes);
        } else {
            let end = self.rest.find([',', '}', ']', ' ']).unwrap_or(self.rest.len());
            let number: f64 = self.rest[..end].parse().map_err(|_| "a command that is no JSON")?;
            self.rest = &self.rest[end..];
            self.fixed(DOUBLE, &name, &number.to_le_bytes());
        }
        Ok(())
    }

    fn fixed(&mut self, kind: u8, name: &[u8], value: &[u8]) {
        self.bytes(&[kind]);
        self.bytes(name);
        self.bytes(value);
    }

    fn nested(
        &mut self,
        kind: u8,
        name: &[u8],
        inner: fn(&mut Self) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        self.fixed(kind, name, &[]);
        let depth: i32 = self.pieces.iter().fold(1, |depth, piece| match piece {
            Piece::Open => depth + 1,
            Piece::Close => depth - 1,
            Piece::Bytes(_) | Piece::Gap { .. } => depth,
        });
        if depth >= MOST_DEEP as i32 {
            return Err("a command that is too deep");
        }
        self.pieces.push(Piece::Open);
        inner(self)?;
        self.pieces.push(Piece::Close);
        Ok(())
    }

    fn text(&mut self) -> Result<&'a str, &'static str> {
        let quoted = self.rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (text, rest) = quoted.ok_or("a command that is no JSON")?;
        self.rest = rest.trim_start();
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_bson_with_its_values() {
        let template =
            Template::new(r#"{"f": "t", "q": {"_id": ?, "v": ?b}}"#, "d").expect("a command");
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

    #[test]
    fn what_is_no_command_is_refused() {
        for text in ["", "{", "[1]", r#"{"a"}"#, r#"{"a": b}"#, r#"{"a": 1} x"#, r#"{"a": [1}"#] {
            assert!(Template::new(text, "d").is_err(), "{text}");
        }
        let deep = format!("{}1{}", r#"{"a": "#.repeat(40), "}".repeat(40));
        assert!(Template::new(&deep, "d").is_err());
    }
}
