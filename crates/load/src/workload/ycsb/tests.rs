use super::*;
use crate::protocol::Value;
use crate::workload::Expect;

fn workload(phase: Phase, given: &[&str]) -> Ycsb {
    stored(Store::Redis, phase, given)
}

fn stored(store: Store, phase: Phase, given: &[&str]) -> Ycsb {
    let given: Vec<String> = given.iter().map(|&one| one.to_owned()).collect();
    let properties = Properties::read(&[], &given).expect("properties");
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
    let made = |store, phase, given: &[&str]| {
        let given: Vec<String> = given.iter().map(|&one| one.to_owned()).collect();
        let properties = Properties::read(&[], &given).expect("properties");
        preparations(&Settings::new(properties, phase, store).expect("settings"), store)
    };
    let given = ["recordcount=1", "fieldcount=1", "jdbc.createtable=true"];
    let text =
        "CREATE TABLE IF NOT EXISTS usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY, field0 TEXT)";
    assert_eq!(made(Store::Sql, Phase::Load, &given), [text]);
    assert!(made(Store::Sql, Phase::Run, &given).is_empty());
    let given = ["recordcount=1", "cassandra.createtable=true", "cassandra.keyspace=k"];
    let texts = made(Store::Cassandra, Phase::Load, &given);
    assert!(texts[1].starts_with("CREATE TABLE IF NOT EXISTS k.usertable (y_id"));
}
