//! YCSB's core workloads, from its own property files: same keys, same fields, same tables.

mod binding;
mod keys;
mod layout;
mod properties;
mod said;
mod settings;
mod store;
mod values;

use self::keys::Inserted;
use self::layout::{Ask, Layout, layout};
pub use self::properties::Properties;
pub use self::settings::{Client, Phase, Settings};
pub use self::store::Store;
use self::store::Verb;
use super::{Operation, Request, Stream, Workload};
use crate::protocol::{Statement, Values};
use crate::random::Random;

/// Statements that make the table, where the load phase is asked to.
#[must_use]
pub fn preparations(settings: &Settings, store: Store) -> Vec<String> {
    if settings.phase == Phase::Load && settings.binding.creates_table {
        layout::preparations(store, settings)
    } else {
        Vec::new()
    }
}

/// What `CoreWorkload` does with one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read-modify-write",
        }
    }

    /// The calls of a binding that it is made of.
    const fn verbs(self) -> &'static [Verb] {
        match self {
            Self::Read => &[Verb::Read],
            Self::Update => &[Verb::Update],
            Self::Insert => &[Verb::Insert],
            Self::Scan => &[Verb::Scan],
            Self::ReadModifyWrite => &[Verb::Read, Verb::Update],
        }
    }
}

/// A kind, and the sum of the shares up to its own.
struct Part {
    kind: Kind,
    up_to: f64,
}

pub struct Ycsb {
    settings: Settings,
    layout: Box<dyn Layout>,
    mix: Vec<Part>,
    kinds: Vec<String>,
    inserted: Inserted,
}

// Random numbers of an operation beside those of its fields, which are their places.
const WHICH_FIELD_IS_READ: u64 = 1 << 32;
const WHICH_FIELD_IS_WRITTEN: u64 = WHICH_FIELD_IS_READ + 1;
const HOW_MANY_RECORDS: u64 = WHICH_FIELD_IS_READ + 2;

impl Ycsb {
    #[must_use]
    pub fn new(settings: Settings, store: Store) -> Self {
        let shares = settings.shares;
        let parts = match settings.phase {
            Phase::Load => vec![(Kind::Insert, 1.0)],
            Phase::Run => vec![
                (Kind::Read, shares.read),
                (Kind::Update, shares.update),
                (Kind::Insert, shares.insert),
                (Kind::Scan, shares.scan),
                (Kind::ReadModifyWrite, shares.read_modify_write),
            ],
        };
        let mut sum = 0.0;
        let mut part = |(kind, share): (Kind, f64)| {
            sum += share;
            Part { kind, up_to: sum }
        };
        let there = parts.into_iter().filter(|&(_, share)| share > 0.0);
        let mix: Vec<Part> = there.map(&mut part).collect();
        Self {
            layout: layout(store, &settings),
            kinds: mix.iter().map(|part| part.kind.name().to_owned()).collect(),
            mix,
            inserted: Inserted::new(settings.records),
            settings,
        }
    }

    fn ask<'a>(&'a self, verb: Verb, step: u8, key: &'a [u8], random: Random) -> Ask<'a> {
        let settings = &self.settings;
        let one_of = |part| {
            let count = settings.fields.names.len() as u64;
            random.apart(part).below(count) as usize
        };
        let field = match verb {
            Verb::Read | Verb::Scan if settings.read_all_fields => None,
            Verb::Read | Verb::Scan => Some(one_of(WHICH_FIELD_IS_READ)),
            Verb::Update if settings.write_all_fields => None,
            Verb::Update => Some(one_of(WHICH_FIELD_IS_WRITTEN)),
            Verb::Insert => None,
        };
        let length = match verb {
            Verb::Scan => {
                let mut random = random.apart(HOW_MANY_RECORDS);
                settings.scan_lengths.least + settings.scan_lengths.numbers.draw(&mut random) as u32
            }
            _ => 0,
        };
        let by_name = settings.read_by_name || settings.fields.known;
        Ask { verb, step, key, field, by_name, length, fields: &settings.fields, random }
    }

    fn drawn(&self, stream: &mut Stream, kind: Option<u8>) -> Operation {
        let turn = stream.connection + stream.number * stream.connections;
        let mut random = stream.next_random();
        if self.settings.phase == Phase::Load {
            let key = self.settings.insert_start + turn;
            return Operation { kind: 0, step: 0, key, random };
        }
        let share = random.unit();
        let drawn = self.mix.iter().position(|part| share < part.up_to).unwrap_or(0);
        let kind = kind.map_or(drawn, usize::from);
        let key = match self.mix[kind].kind {
            Kind::Insert => self.inserted.next(),
            _ => self.settings.chooser.choose(&mut random, turn, self.inserted.there()),
        };
        Operation { kind: kind as u8, step: 0, key, random }
    }
}

impl Workload for Ycsb {
    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn statements(&self) -> &[Statement] {
        self.layout.statements()
    }

    fn has_steps(&self) -> bool {
        let mut verbs = self.mix.iter().flat_map(|part| part.kind.verbs());
        verbs.any(|&verb| self.layout.is_alone(verb))
    }

    fn draw(&self, stream: &mut Stream) -> Operation {
        self.drawn(stream, None)
    }

    fn draw_of(&self, kind: u8, stream: &mut Stream) -> Operation {
        self.drawn(stream, Some(kind))
    }

    fn request(&self, operation: &mut Operation, values: &mut Values) -> Request {
        let verbs = self.mix[usize::from(operation.kind)].kind.verbs();
        let mut step = operation.step;
        let mut verb = verbs[0];
        for &next in verbs {
            verb = next;
            match step.checked_sub(self.layout.steps(verb)) {
                Some(beyond) => step = beyond,
                None => break,
            }
        }
        operation.step += 1;
        let steps: u8 = verbs.iter().map(|&verb| self.layout.steps(verb)).sum();
        let key = self.settings.keys.key(operation.key);
        let ask = self.ask(verb, step, key.as_bytes(), operation.random);
        let sent = self.layout.request(&ask, values);
        let last = operation.step == steps;
        Request { statement: sent.statement, expect: sent.expect, last }
    }

    fn ended(&self, operation: &Operation) {
        let inserts = self.mix[usize::from(operation.kind)].kind == Kind::Insert;
        if inserts && self.settings.phase == Phase::Run {
            self.inserted.acknowledge(operation.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Value;
    use crate::workload::Expect;

    fn workload(phase: Phase, said: &[&str]) -> Ycsb {
        stored(Store::Redis, phase, said)
    }

    fn stored(store: Store, phase: Phase, said: &[&str]) -> Ycsb {
        let said: Vec<String> = said.iter().map(|&one| one.to_owned()).collect();
        let properties = Properties::read(&[], &said).expect("properties");
        Ycsb::new(Settings::new(properties, phase, store).expect("settings"), store)
    }

    /// What one operation sends, and what is expected of each reply.
    fn requests(ycsb: &Ycsb, operation: &mut Operation) -> Vec<(String, Vec<String>, Expect)> {
        let mut found = Vec::new();
        loop {
            let mut values = Values::default();
            let request = ycsb.request(operation, &mut values);
            let text = |value: Value<'_>| match value {
                Value::Integer(number) => number.to_string(),
                Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            };
            let texts = values.iter().map(text).collect();
            let statement = ycsb.statements()[request.statement].text.clone();
            found.push((statement, texts, request.expect));
            if request.last {
                return found;
            }
        }
    }

    fn of_kind(ycsb: &Ycsb, kind: &str) -> Operation {
        let mut stream = Stream::new(1, 0, 1);
        std::iter::repeat_with(|| ycsb.draw(&mut stream))
            .take(10_000)
            .find(|operation| ycsb.kinds()[usize::from(operation.kind)] == kind)
            .expect("it comes")
    }

    #[test]
    fn a_load_inserts_each_record_once() {
        let ycsb = workload(Phase::Load, &["recordcount=10", "insertstart=4", "fieldcount=2"]);
        let mut keys = Vec::new();
        for connection in 0..3 {
            let mut stream = Stream::new(1, connection, 3);
            keys.extend((0..2).map(|_| ycsb.draw(&mut stream).key));
        }
        keys.sort_unstable();
        assert_eq!(keys, [4, 5, 6, 7, 8, 9]);
        let found = requests(&ycsb, &mut of_kind(&ycsb, "insert"));
        let sent: Vec<&str> = found.iter().map(|(text, ..)| text.as_str()).collect();
        assert_eq!(sent, ["HSET ? field0 ? field1 ?", "ZADD _indices ? ?"]);
        let (key, value) = (&found[0].1[0], &found[0].1[1]);
        assert_eq!((&found[1].1[1], value.len()), (key, 100));
    }

    #[test]
    fn workload_a_reads_and_updates_one_field() {
        let mix = ["recordcount=10", "readproportion=0.5", "updateproportion=0.5"];
        let ycsb = workload(Phase::Run, &mix);
        assert_eq!(ycsb.kinds(), ["read", "update"]);
        let read = requests(&ycsb, &mut of_kind(&ycsb, "read"));
        assert_eq!((read.len(), read[0].0.as_str(), read[0].2.rows), (1, "HGETALL ?", 20));
        let update = requests(&ycsb, &mut of_kind(&ycsb, "update"));
        assert_eq!((update.len(), update[0].0.as_str()), (1, "HSET ? ? ?"));
        assert_eq!(update[0].2.number, Some(0), "no field is new");
        assert!(update[0].1[1].starts_with("field"));
        let mut stream = Stream::new(9, 0, 1);
        let reads = (0..40_000).filter(|_| ycsb.draw(&mut stream).kind == 0).count();
        assert!((19_500..20_500).contains(&reads), "{reads}");
        assert!(!ycsb.has_steps());
    }

    #[test]
    fn a_read_modify_write_reads_and_writes_one_record() {
        let mix = ["recordcount=10", "readproportion=0", "readmodifywriteproportion=1"];
        let ycsb = workload(Phase::Run, &mix);
        let found = requests(&ycsb, &mut of_kind(&ycsb, "read-modify-write"));
        assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("HGETALL ?", "HSET ? ? ?"));
        assert_eq!(found[0].1[0], found[1].1[0]);
    }

    #[test]
    fn a_scan_asks_for_keys_from_a_hash_on() {
        let mix = ["recordcount=10", "scanproportion=1", "maxscanlength=7"];
        let ycsb = workload(Phase::Run, &mix);
        let found = requests(&ycsb, &mut of_kind(&ycsb, "scan"));
        let length: u32 = found[0].1[1].parse().expect("a number");
        assert!((1..=7).contains(&length) && found[0].1[0].parse::<i32>().is_ok());
        assert!(ycsb.has_steps(), "a scan needs its connection for itself");
    }

    #[test]
    fn inserted_records_are_asked_for_when_they_are_there() {
        let mix =
            ["recordcount=10", "readproportion=0.5", "insertproportion=0.5", "updateproportion=0"];
        let ycsb = workload(Phase::Run, &[&mix[..], &["requestdistribution=latest"]].concat());
        let insert = of_kind(&ycsb, "insert");
        let mut stream = Stream::new(3, 0, 1);
        let mut newest = |count| {
            let drawn = (0..count).map(|_| ycsb.draw(&mut stream));
            drawn.filter(|operation| operation.kind == 0).map(|read| read.key).max()
        };
        assert_eq!(newest(300), Some(9));
        ycsb.ended(&insert);
        assert_eq!((insert.key, newest(300)), (10, Some(10)));
    }

    #[test]
    fn known_contents_are_expected() {
        let mix = [
            "recordcount=10",
            "updateproportion=0",
            "dataintegrity=true",
            "readmodifywriteproportion=1",
        ];
        let ycsb = workload(Phase::Run, &mix);
        let read = requests(&ycsb, &mut of_kind(&ycsb, "read"));
        assert!(read[0].0.starts_with("HMGET ? field0 field1"));
        assert!(read[0].2.contents.is_some());
        let first = requests(&ycsb, &mut of_kind(&ycsb, "read-modify-write"));
        let second = requests(&ycsb, &mut of_kind(&ycsb, "read-modify-write"));
        assert_eq!(first[1].1[2], second[1].1[2], "a written value is known");
    }

    #[test]
    fn rows_have_the_columns_of_ycsbs_bindings() {
        let every = [
            "recordcount=10",
            "fieldcount=2",
            "insertproportion=1",
            "scanproportion=1",
            "readallfields=false",
        ];
        let texts = |store| {
            let ycsb = stored(store, Phase::Run, &every);
            ycsb.statements().iter().map(|one| one.text.clone()).collect::<Vec<_>>()
        };
        let scan = "WHERE YCSB_KEY >= ? ORDER BY YCSB_KEY LIMIT ?";
        assert_eq!(
            texts(Store::Sql),
            [
                "SELECT field0 FROM usertable WHERE YCSB_KEY = ?",
                "SELECT field1 FROM usertable WHERE YCSB_KEY = ?",
                &format!("SELECT field0 FROM usertable {scan}"),
                &format!("SELECT field1 FROM usertable {scan}"),
                "UPDATE usertable SET field0 = ? WHERE YCSB_KEY = ?",
                "UPDATE usertable SET field1 = ? WHERE YCSB_KEY = ?",
                "INSERT INTO usertable (YCSB_KEY, field0, field1) VALUES (?, ?, ?)",
            ]
        );
        let scan = "WHERE token(y_id) >= token(?) LIMIT ?";
        assert_eq!(
            texts(Store::Cassandra),
            [
                "SELECT field0 FROM usertable WHERE y_id = ?",
                "SELECT field1 FROM usertable WHERE y_id = ?",
                &format!("SELECT field0 FROM usertable {scan}"),
                &format!("SELECT field1 FROM usertable {scan}"),
                "INSERT INTO usertable (y_id, field0) VALUES (?, ?)",
                "INSERT INTO usertable (y_id, field1) VALUES (?, ?)",
                "INSERT INTO usertable (y_id, field0, field1) VALUES (?, ?, ?)",
            ]
        );
    }

    #[test]
    fn a_row_that_is_not_there_is_told_by_sql() {
        let mix = ["recordcount=10", "writeallfields=true"];
        let rows = |store| {
            let ycsb = stored(store, Phase::Run, &mix);
            let sent = requests(&ycsb, &mut of_kind(&ycsb, "update"));
            (sent[0].1.len(), sent[0].1[10].starts_with("user"), sent[0].2.rows)
        };
        assert_eq!(rows(Store::Sql), (11, true, 1), "the key is last");
        assert_eq!(rows(Store::Cassandra), (11, false, 0));
    }

    #[test]
    fn a_load_makes_its_table_where_it_is_asked_to() {
        let made = |store, phase, said: &[&str]| {
            let said: Vec<String> = said.iter().map(|&one| one.to_owned()).collect();
            let properties = Properties::read(&[], &said).expect("properties");
            preparations(&Settings::new(properties, phase, store).expect("settings"), store)
        };
        let said = ["recordcount=1", "fieldcount=1", "jdbc.createtable=true"];
        let text =
            "CREATE TABLE IF NOT EXISTS usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY, field0 TEXT)";
        assert_eq!(made(Store::Sql, Phase::Load, &said), [text]);
        assert!(made(Store::Sql, Phase::Run, &said).is_empty());
        let said = ["recordcount=1", "cassandra.createtable=true", "cassandra.keyspace=k"];
        let texts = made(Store::Cassandra, Phase::Load, &said);
        assert!(texts[1].starts_with("CREATE TABLE IF NOT EXISTS k.usertable (y_id"));
    }
}
