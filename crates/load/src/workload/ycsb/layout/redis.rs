//! Redis: a record is a hash, and the sorted set `_indices` has all keys, by their Java hashes, for scans.

use super::{Ask, Layout, Sent};
use crate::protocol::statement::signed_decimal;
use crate::protocol::{Statement, Type, Values};
use crate::workload::Expect;
use crate::workload::ycsb::store::Verb;
use crate::workload::ycsb::values::{Fields, JavaHash};

pub(super) struct Redis {
    statements: Vec<Statement>,
}

const READ: usize = 0;
const READ_BY_NAME: usize = 1;
const READ_FIELD: usize = 2;
const WRITE: usize = 3;
const WRITE_FIELD: usize = 4;
const INDEX: usize = 5;
const SCAN: usize = 6;
/// Of the first field; the others follow.
const SCAN_FIELD: usize = 7;

impl Redis {
    pub(super) fn new(fields: &Fields) -> Self {
        let names = fields.names.join(" ");
        let pairs = format!("{} ?", fields.names.join(" ? "));
        let scan = "ZRANGEBYSCORE _indices ? +inf LIMIT 0 ?";
        let statement = |text: &str, each: Option<&str>| Statement {
            text: text.to_owned(),
            parameters: vec![Type::Text; text.split(' ').filter(|word| *word == "?").count()],
            each: each.map(str::to_owned),
        };
        let mut statements = vec![
            statement("HGETALL ?", None),
            statement(&format!("HMGET ? {names}"), None),
            statement("HMGET ? ?", None),
            statement(&format!("HSET ? {pairs}"), None),
            statement("HSET ? ? ?", None),
            statement("ZADD _indices ? ?", None),
            statement(scan, Some("HGETALL ?")),
        ];
        let field = |name: &String| statement(scan, Some(&format!("HMGET ? {name}")));
        statements.extend(fields.names.iter().map(field));
        Self { statements }
    }
}

impl Layout for Redis {
    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn steps(&self, verb: Verb) -> u8 {
        if verb == Verb::Insert { 2 } else { 1 }
    }

    fn is_alone(&self, verb: Verb) -> bool {
        verb == Verb::Scan // its replies say what to read next
    }

    fn request(&self, ask: &Ask<'_>, values: &mut Values) -> Sent {
        match ask.verb {
            Verb::Read => read(ask, values),
            Verb::Update => Sent {
                statement: write(ask, values),
                // Fields that the hash gained: a record that had any was not there.
                expect: Expect { number: Some(0), ..Expect::default() },
            },
            Verb::Insert if ask.step == 0 => {
                Sent { statement: write(ask, values), expect: Expect::default() }
            }
            Verb::Insert => {
                score(ask.key, values);
                text(ask.key, values);
                Sent { statement: INDEX, expect: Expect::default() }
            }
            Verb::Scan => scan(ask, values),
        }
    }
}

fn read(ask: &Ask<'_>, values: &mut Values) -> Sent {
    text(ask.key, values);
    let count = ask.fields.names.len() as u32;
    let found =
        Expect { rows: count, bytes: ask.bytes(), contents: ask.contents(), ..Expect::default() };
    match ask.field {
        Some(field) => {
            text(ask.fields.names[field].as_bytes(), values);
            Sent { statement: READ_FIELD, expect: Expect { rows: 1, ..found } }
        }
        None if ask.by_name => Sent { statement: READ_BY_NAME, expect: found },
        None => Sent {
            statement: READ,
            // Names come with the values.
            expect: Expect {
                rows: 2 * count,
                bytes: found.bytes.saturating_add(ask.fields.bytes_of_names()),
                contents: found
                    .contents
                    .map(|sum| sum.wrapping_add(ask.fields.contents_of_names())),
                ..found
            },
        },
    }
}

fn write(ask: &Ask<'_>, values: &mut Values) -> usize {
    text(ask.key, values);
    if let Some(field) = ask.field {
        text(ask.fields.names[field].as_bytes(), values);
    }
    for field in ask.range() {
        values.text(|out| ask.value(field, out));
    }
    if ask.field.is_some() { WRITE_FIELD } else { WRITE }
}

fn scan(ask: &Ask<'_>, values: &mut Values) -> Sent {
    score(ask.key, values);
    values.integer(ask.length.into());
    let statement = ask.field.map_or(SCAN, |field| SCAN_FIELD + field);
    Sent { statement, expect: Expect { rows: 1, ..Expect::default() } }
}

fn score(key: &[u8], values: &mut Values) {
    values.text(|out| signed_decimal(out, JavaHash::of(key).into()));
}

fn text(text: &[u8], values: &mut Values) {
    values.text(|out| out.extend_from_slice(text));
}
