use super::*;
use crate::protocol::Label;
use crate::protocol::{Type, Value};

const JOB: &str = "
format: 1
generators:
  id: {zipfian: {from: 1, to: 100, exponent: 0.99}}
  next: {sequential: {from: 0, to: 9}}
  value: {text: {length: 25}}
operations:
  - name: get
    weight: 3
    steps: [{send: 'GET key:{id}', expect: {bytes: 25}}]
  - name: change
    steps:
      - send: GET key:{id}
      - send: SET key:{id} {value}
";

fn texts(values: &Values) -> Vec<String> {
    let text = |value: Value<'_>| match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
    };
    values.iter().map(text).collect()
}

#[test]
fn words_hold_their_generators() {
    let job = Job::parse(JOB, Dialect::Words).expect("a job");
    assert_eq!(job.kinds(), ["get", "change"]);
    let texts: Vec<&str> = job.statements().iter().map(|one| one.text.as_str()).collect();
    assert_eq!(texts, ["GET ?", "GET ?", "SET ? ?"]);
    assert!(job.has_steps());
}

#[test]
fn one_operation_uses_one_value_in_all_steps() {
    let job = Job::parse(JOB, Dialect::Words).expect("a job");
    let mut stream = Stream::new(1, 0, 1);
    let mut operation = std::iter::repeat_with(|| job.draw(&mut stream))
        .find(|operation| operation.kind == 1)
        .expect("a quarter is");
    let (mut first, mut second) = (Values::default(), Values::default());
    assert!(!job.request(&mut operation, &mut first).last);
    assert!(job.request(&mut operation, &mut second).last);
    let (first, second) = (texts(&first), texts(&second));
    assert_eq!(first[0], second[0]);
    assert!(first[0].starts_with("key:"));
    assert_eq!(second[1].len(), 25);
}

#[test]
fn kinds_come_as_often_as_they_weigh() {
    let job = Job::parse(JOB, Dialect::Words).expect("a job");
    let mut stream = Stream::new(5, 0, 1);
    let gets = (0..40_000).filter(|_| job.draw(&mut stream).kind == 0).count();
    assert!((29_500..30_500).contains(&gets), "{gets}");
}

#[test]
fn a_kind_that_is_asked_for_draws_the_same_values() {
    let job = Job::parse(JOB, Dialect::Words).expect("a job");
    let (mut one, mut other) = (Stream::new(3, 0, 1), Stream::new(3, 0, 1));
    for _ in 0..100 {
        let (drawn, asked) = (job.draw(&mut one), job.draw_of(1, &mut other));
        assert_eq!(asked, Operation { kind: 1, ..drawn });
    }
}

#[test]
fn a_sequence_covers_all_connections() {
    let text = "{format: 1, generators: {n: {sequential: {from: 5, to: 14}}}, \
        operations: [{name: set, steps: [{send: 'SET {n} x'}]}]}";
    let job = Job::parse(text, Dialect::Words).expect("JSON is YAML");
    let mut found = Vec::new();
    for connection in 0..2 {
        let mut stream = Stream::new(1, connection, 2);
        for _ in 0..5 {
            let mut values = Values::default();
            job.request(&mut job.draw(&mut stream), &mut values);
            found.extend(texts(&values));
        }
    }
    found.sort_by_key(|text| text.parse::<u32>().expect("a number"));
    let expected: Vec<String> = (5..15).map(|number| number.to_string()).collect();
    assert_eq!(found, expected);
}

#[test]
fn sql_has_marks_and_types() {
    let text = "{format: 1, generators: {n: {uniform: {from: 1, to: 2}}, t: {choice: [a]}}, \
        operations: [{name: s, steps: [{send: 'SELECT c FROM t WHERE id={n} AND k={t}'}]}]}";
    let job = Job::parse(text, Dialect::Sql).expect("a job");
    let statement = &job.statements()[0];
    assert_eq!(statement.text, "SELECT c FROM t WHERE id=? AND k=?");
    assert_eq!(statement.parameters, [Type::Integer, Type::Text]);
}

#[test]
fn json_keeps_its_braces() {
    let text = "{format: 1, generators: {n: {uniform: {from: 1, to: 2}}, t: {choice: [a]}}, \
        operations: [{name: s, steps: [{send: '{\"find\": \"c\", \"filter\": {\"_id\": \"k{n}\", \"a\": {n}, \"b\": {t}, \"d\": {}}}'}]}]}";
    let job = Job::parse(text, Dialect::Json).expect("a job");
    let statement = &job.statements()[0];
    assert_eq!(statement.text, r#"{"find": "c", "filter": {"_id": ?, "a": ?, "b": ?, "d": {}}}"#);
    assert_eq!(statement.parameters, [Type::Text, Type::Integer, Type::Text]);
}

#[test]
fn what_cannot_be_is_said() {
    let error = |text: &str| Job::parse(text, Dialect::Words).err().expect("refused");
    assert!(error("{format: 2, operations: []}").contains("format 2"));
    assert!(error("{format: 1, operations: []}").contains("1 to 64 operations"));
    let unknown = "{format: 1, operations: [{name: a, steps: [{send: 'GET {id}'}]}]}";
    assert!(error(unknown).contains("no generator `id`"));
    let falling = "{format: 1, generators: {n: {uniform: {from: 2, to: 1}}}, operations: \
        [{name: a, steps: [{send: 'GET {n}'}]}]}";
    assert!(error(falling).contains("generator n: `to` is below `from`"));
    assert!(error("{format: 1, bad: 1, operations: []}").contains("bad"));
}

/// What an operation sends if each request is answered so: by an error's code, or by a row.
fn sent(
    job: &Job,
    answer: impl Fn(&str, u32) -> Result<Vec<&'static str>, &'static str>,
) -> Vec<String> {
    let mut operation = job.draw(&mut Stream::new(1, 0, 1));
    let (mut memory, mut sent) = (Memory::default(), Vec::new());
    let mut next = job.next(&mut operation, &mut memory, None);
    loop {
        match next {
            Next::Request => {
                let mut values = Values::default();
                let request = job.request_of(&mut operation, &mut memory, &mut values);
                let text = job.statements()[request.statement].text.clone();
                let shown = texts(&values)
                    .into_iter()
                    .fold(text, |text, value| text.replacen('?', &value, 1));
                let mut rows = crate::protocol::Rows::default();
                let status = match answer(&shown, memory.retries) {
                    Ok(row) => {
                        rows.put_row(&row);
                        Status::Done
                    }
                    Err(code) => Status::Error(Label::new(code.as_bytes())),
                };
                sent.push(shown);
                let answer = Some(Answer { status, rows: Some(&rows) });
                next = job.next(&mut operation, &mut memory, answer);
            }
            Next::Again => {
                operation.step = 0;
                memory = Memory { retries: memory.retries + 1, ..Memory::default() };
                next = job.next(&mut operation, &mut memory, None);
            }
            _ => return sent,
        }
    }
}

const KEEPS: &str = "
format: 1
operations:
  - name: move
    tries: 3
    steps:
      - {send: BEGIN}
      - {send: 'SELECT id, owner FROM a', keep: {id: 1, owner: 2}}
      - {send: 'UPDATE b SET n = 1 WHERE id = {id} AND owner = {owner}'}
      - {send: COMMIT}
";

#[test]
fn a_step_uses_what_an_earlier_reply_says() {
    let job = Job::parse(KEEPS, Dialect::Sql).expect("a job");
    assert!(job.has_flow() && job.keeps_rows());
    let update = "UPDATE b SET n = 1 WHERE id = 7 AND owner = x";
    let all = ["BEGIN", "SELECT id, owner FROM a", update, "COMMIT"];
    assert_eq!(sent(&job, |_, _| Ok(vec!["7", "x"])), all);
    let none =
        sent(&job, |text, _| Ok(if text.starts_with("SELECT") { vec![] } else { vec!["1"] }));
    assert_eq!(none, ["BEGIN", "SELECT id, owner FROM a", "ROLLBACK"]);
}

#[test]
fn an_operation_is_tried_again_after_a_deadlock() {
    let job = Job::parse(KEEPS, Dialect::Sql).expect("a job");
    let once = sent(&job, |text, retries| match text {
        text if text.starts_with("UPDATE") && retries == 0 => Err("1213"),
        _ => Ok(vec!["7", "x"]),
    });
    assert_eq!((once.len(), once[3].as_str(), once[7].as_str()), (8, "ROLLBACK", "COMMIT"));
    let always = sent(&job, |text, _| if text == "BEGIN" { Err("40001") } else { Ok(vec![]) });
    assert_eq!(always, ["BEGIN", "ROLLBACK"].repeat(3));
    assert_eq!(sent(&job, |_, _| Err("42P01")), ["BEGIN", "ROLLBACK"]);
}

#[test]
fn what_cannot_be_kept_is_said() {
    let error = |steps: &str, dialect| {
        let text = format!(
            "{{format: 1, generators: {{g: {{choice: [a]}}}}, operations: [{{name: a, steps: [{steps}]}}]}}"
        );
        Job::parse(&text, dialect).err().expect("refused")
    };
    let keeps = "{send: A, keep: {g: 1}}";
    assert!(error(keeps, Dialect::Sql).contains("`g` is a generator"));
    assert!(
        error("{send: 'A {v}'}, {send: B, keep: {v: 1}}", Dialect::Sql)
            .contains("before a step keeps it")
    );
    assert!(error("{send: A, keep: {v: 0}}", Dialect::Sql).contains("counted from 1"));
    assert!(error("{send: A, keep: {v: 1}}", Dialect::Json).contains("`keep` does not"));
    let text = "{format: 1, operations: [{name: a, think_ms: -1, steps: [{send: A}]}]}";
    assert!(Job::parse(text, Dialect::Words).err().expect("refused").contains("think_ms"));
}
