//! Tables: a record is a row, its key in `YCSB_KEY` (SQL) or `y_id` (CQL), and each field a column of text.

use super::{Ask, Layout, Sent};
use crate::protocol::{Statement, Type, Values};
use crate::workload::Expect;
use crate::workload::ycsb::binding::Binding;
use crate::workload::ycsb::settings::Settings;
use crate::workload::ycsb::store::Verb;

/// Language of the statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// By YCSB's JDBC binding.
    Sql,
    /// By its binding for Cassandra.
    Cql,
}

pub(super) struct Tables {
    language: Language,
    statements: Vec<Statement>,
    read: Pick,
    update: Pick,
    scan: Pick,
    insert: usize,
}

/// Indexes of a verb's statements: one for all fields, or one per field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    None,
    All(usize),
    FirstOfEach(usize),
}

impl Pick {
    fn of(self, field: Option<usize>) -> usize {
        match (self, field) {
            (Self::FirstOfEach(first), Some(field)) => first + field,
            (Self::All(statement) | Self::FirstOfEach(statement), _) => statement,
            (Self::None, _) => usize::MAX,
        }
    }
}

impl Tables {
    /// Statements of operations that can occur; each connection prepares all of them.
    pub(super) fn new(language: Language, settings: &Settings) -> Self {
        let mut tables = Self {
            language,
            statements: Vec::new(),
            read: Pick::None,
            update: Pick::None,
            scan: Pick::None,
            insert: usize::MAX,
        };
        if settings.asks_for(Verb::Read) {
            tables.read = tables.add(Verb::Read, settings.read_all_fields, settings);
        }
        if settings.asks_for(Verb::Scan) {
            tables.scan = tables.add(Verb::Scan, settings.read_all_fields, settings);
        }
        if settings.asks_for(Verb::Update) {
            tables.update = tables.add(Verb::Update, settings.write_all_fields, settings);
        }
        if settings.asks_for(Verb::Insert) {
            tables.insert = tables.add(Verb::Insert, true, settings).of(None);
        }
        tables
    }

    fn add(&mut self, verb: Verb, all: bool, settings: &Settings) -> Pick {
        let (names, first) = (&settings.fields.names, self.statements.len());
        let table = &settings.table;
        if all {
            self.statements.push(statement(self.language, verb, table, names));
            return Pick::All(first);
        }
        let each = names.chunks(1).map(|name| statement(self.language, verb, table, name));
        self.statements.extend(each);
        Pick::FirstOfEach(first)
    }
}

fn statement(language: Language, verb: Verb, table: &str, fields: &[String]) -> Statement {
    let (columns, marks) = (fields.join(", "), ", ?".repeat(fields.len()));
    let sets = fields.join(" = ?, ");
    let insert = |key| format!("INSERT INTO {table} ({key}, {columns}) VALUES (?{marks})");
    let text = match (language, verb) {
        (Language::Sql, Verb::Read) => format!("SELECT {columns} FROM {table} WHERE YCSB_KEY = ?"),
        (Language::Sql, Verb::Scan) => {
            format!("SELECT {columns} FROM {table} WHERE YCSB_KEY >= ? ORDER BY YCSB_KEY LIMIT ?")
        }
        (Language::Sql, Verb::Update) => {
            format!("UPDATE {table} SET {sets} = ? WHERE YCSB_KEY = ?")
        }
        (Language::Sql, Verb::Insert) => insert("YCSB_KEY"),
        (Language::Cql, Verb::Read) => format!("SELECT {columns} FROM {table} WHERE y_id = ?"),
        (Language::Cql, Verb::Scan) => {
            format!("SELECT {columns} FROM {table} WHERE token(y_id) >= token(?) LIMIT ?")
        }
        (Language::Cql, Verb::Update | Verb::Insert) => insert("y_id"),
    };
    let parameters = match verb {
        Verb::Read => vec![Type::Text],
        Verb::Scan => vec![Type::Text, Type::Integer],
        Verb::Update | Verb::Insert => vec![Type::Text; fields.len() + 1],
    };
    Statement { text, parameters, ..Statement::default() }
}

impl Layout for Tables {
    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn steps(&self, _verb: Verb) -> u8 {
        1
    }

    fn is_alone(&self, _verb: Verb) -> bool {
        false
    }

    fn request(&self, ask: &Ask<'_>, values: &mut Values) -> Sent {
        let key = |values: &mut Values| values.text(|out| out.extend_from_slice(ask.key));
        let fields = |values: &mut Values| {
            for field in ask.range() {
                values.text(|out| ask.value(field, out));
            }
        };
        // CQL does not tell whether a row was there.
        let counted =
            Expect { rows: u32::from(self.language == Language::Sql), ..Expect::default() };
        match ask.verb {
            Verb::Read => {
                key(values);
                let found =
                    Expect { rows: 1, bytes: ask.bytes(), contents: ask.contents(), ..counted };
                Sent { statement: self.read.of(ask.field), expect: found }
            }
            Verb::Scan => {
                key(values);
                values.integer(ask.length.into());
                let found = Expect { rows: 1, bytes: ask.bytes(), ..counted };
                Sent { statement: self.scan.of(ask.field), expect: found }
            }
            Verb::Update if self.language == Language::Sql => {
                fields(values);
                key(values);
                Sent { statement: self.update.of(ask.field), expect: counted }
            }
            Verb::Update | Verb::Insert => {
                key(values);
                fields(values);
                let inserts = ask.verb == Verb::Insert;
                let statement = if inserts { self.insert } else { self.update.of(ask.field) };
                Sent { statement, expect: counted }
            }
        }
    }
}

/// Statements that make the table if it is missing.
pub(super) fn preparations(language: Language, settings: &Settings) -> Vec<String> {
    let Settings { table, binding, .. } = settings;
    let Binding { keyspace, copies, table_options, .. } = binding;
    let kind = if language == Language::Sql { "TEXT" } else { "varchar" };
    let columns: Vec<String> =
        settings.fields.names.iter().map(|name| format!("{name} {kind}")).collect();
    let columns = columns.join(", ");
    match language {
        Language::Sql => vec![format!(
            "CREATE TABLE IF NOT EXISTS {table} (YCSB_KEY VARCHAR(255) PRIMARY KEY, {columns})"
        )],
        Language::Cql => {
            let with = table_options.as_ref().map_or(String::new(), |said| format!(" WITH {said}"));
            vec![
                format!(
                    "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {copies}}}"
                ),
                format!(
                    "CREATE TABLE IF NOT EXISTS {keyspace}.{table} (y_id varchar PRIMARY KEY, {columns}){with}"
                ),
            ]
        }
    }
}
