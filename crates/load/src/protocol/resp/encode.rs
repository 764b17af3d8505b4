//! Commands as arrays of bulk strings, all but the values prepared.

use crate::protocol::statement::{decimal, signed_decimal};
use crate::protocol::{Value, Values};

/// A command with gaps for its values.
#[derive(Debug)]
pub(super) struct Template {
    /// What stands before the first value, between them, and behind the last one.
    literals: Vec<Vec<u8>>,
}

impl Template {
    pub(super) fn new(text: &str) -> Self {
        let words = words(text);
        let mut literals = vec![Vec::new()];
        header(b'*', words.len(), &mut literals[0]);
        for word in words {
            let literal = literals.last_mut().expect("there is a first one");
            match word {
                Word::Literal(word) => bulk(word.as_bytes(), literal),
                Word::Value => literals.push(Vec::new()),
            }
        }
        Self { literals }
    }

    pub(super) fn encode(&self, values: &Values, out: &mut Vec<u8>) {
        let mut literals = self.literals.iter();
        out.extend_from_slice(literals.next().map_or(&[], Vec::as_slice));
        for (value, literal) in values.iter().zip(literals) {
            match value {
                Value::Text(text) => bulk(text, out),
                Value::Integer(number) => integer(number, out),
            }
            out.extend_from_slice(literal);
        }
    }
}

enum Word {
    Literal(String),
    Value,
}

/// Words between blanks; quotes keep blanks and a literal `?`.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (word, after) = match quoted {
            Some((word, after)) => (Word::Literal(word.to_owned()), after),
            None => match rest.split_once(char::is_whitespace).unwrap_or((rest, "")) {
                ("?", after) => (Word::Value, after),
                (word, after) => (Word::Literal(word.to_owned()), after),
            },
        };
        words.push(word);
        rest = after.trim_start();
    }
    words
}

pub(super) fn command(words: &[&str], out: &mut Vec<u8>) {
    header(b'*', words.len(), out);
    for word in words {
        bulk(word.as_bytes(), out);
    }
}

fn header(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    decimal(out, length as u64);
    out.extend_from_slice(b"\r\n");
}

fn bulk(text: &[u8], out: &mut Vec<u8>) {
    header(b'$', text.len(), out);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn integer(number: i64, out: &mut Vec<u8>) {
    let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
    header(b'$', digits + usize::from(number < 0), out);
    signed_decimal(out, number);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str, values: &Values) -> String {
        let mut out = Vec::new();
        Template::new(text).encode(values, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn values_go_where_the_marks_are() {
        let mut values = Values::default();
        values.text(|out| out.extend_from_slice(b"user7"));
        values.integer(-12);
        assert_eq!(
            encoded("SET ? ?  EX 5", &values),
            "*5\r\n$3\r\nSET\r\n$5\r\nuser7\r\n$3\r\n-12\r\n$2\r\nEX\r\n$1\r\n5\r\n"
        );
    }

    #[test]
    fn quotes_keep_blanks_and_marks() {
        assert_eq!(
            encoded("SET \"a b\" \"?\"", &Values::default()),
            "*3\r\n$3\r\nSET\r\n$3\r\na b\r\n$1\r\n?\r\n"
        );
    }

    #[test]
    fn lengths_of_numbers() {
        for number in [0, 9, 10, -1, 99, 100, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            integer(number, &mut out);
            let text = number.to_string();
            assert_eq!(out, format!("${}\r\n{text}\r\n", text.len()).into_bytes());
        }
    }
}
