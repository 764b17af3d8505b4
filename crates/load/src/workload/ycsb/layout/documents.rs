//! `MongoDB`: a record is a document, its key in `_id`, and each field binary, as YCSB's binding has it.

use super::{Ask, Layout, Sent, Verb};
use crate::protocol::{Statement, Type, Values};
use crate::workload::Expect;
use crate::workload::ycsb::settings::Settings;

pub(super) struct Documents {
    statements: Vec<Statement>,
}

const READ: usize = 0;
const SCAN: usize = 1;
const UPDATE: usize = 2;
const INSERT: usize = 3;
/// Three of each field: to read, to scan and to update it.
const OF_FIELDS: usize = 4;

impl Documents {
    pub(super) fn new(settings: &Settings) -> Self {
        let (table, names) = (&settings.table, &settings.fields.names);
        let concern = format!(r#""writeConcern": {}"#, settings.binding.write_concern);
        let find = |filter: &str, more: &str, projection: &str| {
            let filter = format!(r#""filter": {{"_id": {filter}}}"#);
            format!(r#"{{"find": "{table}", {filter}, {more}, "singleBatch": true{projection}}}"#)
        };
        // Without `batchSize` a first batch has 101 documents.
        let read = |projection: &str| find("?", r#""limit": 1"#, projection);
        let range = r#""sort": {"_id": 1}, "limit": ?, "batchSize": ?"#;
        let scan = |projection: &str| find(r#"{"$gte": ?}"#, range, projection);
        let update = |sets: &str| {
            let change = format!(r#"{{"q": {{"_id": ?}}, "u": {{"$set": {{{sets}}}}}}}"#);
            format!(r#"{{"update": "{table}", "updates": [{change}], {concern}}}"#)
        };
        let sets: Vec<String> =
            names.iter().map(|name| format!(r#""{name}": {{"$binary": ?}}"#)).collect();
        let all = sets.join(", ");
        let mut texts = vec![
            read(""),
            scan(""),
            update(&all),
            format!(r#"{{"insert": "{table}", "documents": [{{"_id": ?, {all}}}], {concern}}}"#),
        ];
        for (name, set) in names.iter().zip(&sets) {
            let only = format!(r#", "projection": {{"{name}": 1}}"#);
            texts.extend([read(&only), scan(&only), update(set)]);
        }
        let statement = |text: String| Statement {
            parameters: vec![Type::Text; text.matches('?').count()],
            text,
            ..Statement::default()
        };
        Self { statements: texts.into_iter().map(statement).collect() }
    }
}

impl Layout for Documents {
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
        values.text(|out| out.extend_from_slice(ask.key));
        let one = Expect { rows: 1, ..Expect::default() };
        let pick = |all, part| ask.field.map_or(all, |field| OF_FIELDS + 3 * field + part);
        match ask.verb {
            Verb::Read => Sent {
                statement: pick(READ, 0),
                expect: Expect { bytes: ask.bytes(), contents: ask.contents(), ..one },
            },
            Verb::Scan => {
                values.integer(ask.length.into());
                values.integer(ask.length.into());
                Sent { statement: pick(SCAN, 1), expect: Expect { bytes: ask.bytes(), ..one } }
            }
            Verb::Update | Verb::Insert => {
                for field in ask.range() {
                    values.text(|out| ask.value(field, out));
                }
                let updates = ask.verb == Verb::Update;
                let statement = if updates { pick(UPDATE, 2) } else { INSERT };
                Sent { statement, expect: one }
            }
        }
    }
}
