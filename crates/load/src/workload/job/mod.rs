//! A mix of the user's own commands or statements, from a file in YAML or JSON.

mod source;
mod template;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use self::source::{Generator, Source, letters};
pub use self::template::Dialect;
use self::template::{Parameter, Piece, template};
use super::{Expect, Operation, Request, Stream, Workload};
use crate::error::LoadError;
use crate::protocol::statement::signed_decimal;
use crate::protocol::{Statement, Values};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    requests_per_connection: Option<u32>,
    #[serde(default)]
    generators: BTreeMap<String, Generator>,
    operations: Vec<OperationEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationEntry {
    name: String,
    #[serde(default = "one")]
    weight: f64,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    send: String,
    #[serde(default)]
    expect: ExpectEntry,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ExpectEntry {
    rows: u32,
    bytes: u32,
    may_miss: bool,
}

const fn one() -> f64 {
    1.0
}

/// The workload of a job file.
pub struct Job {
    /// Defaults for the options of the client.
    pub requests_per_connection: Option<u32>,
    kinds: Vec<String>,
    /// Cumulative weights of the operations; the last one is 1.
    shares: Vec<f64>,
    statements: Vec<Statement>,
    /// Index in `statements` of each operation's first statement.
    first_statement: Vec<usize>,
    requests: Vec<Template>,
    sources: Vec<Source>,
}

/// A statement with its values.
struct Template {
    parameters: Vec<Parameter>,
    expect: Expect,
    last: bool,
}

impl Job {
    /// # Errors
    /// The file is not valid, and why.
    pub fn read(path: &Path, dialect: Dialect) -> Result<Self, LoadError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| LoadError::File { path: path.to_owned(), source })?;
        Self::parse(&text, dialect)
            .map_err(|reason| LoadError::Usage(format!("{}: {reason}", path.display())))
    }

    /// # Errors
    /// The text is not valid, and why.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, String> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        if file.format != 1 {
            return Err(format!("format {} is not known; this program reads 1", file.format));
        }
        if file.operations.is_empty() || file.operations.len() > 64 {
            return Err("there must be 1 to 64 operations".to_owned());
        }
        let names: Vec<&String> = file.generators.keys().collect();
        let sources = file.generators.iter().map(|(name, generator)| {
            Source::new(generator).map_err(|reason| format!("generator {name}: {reason}"))
        });
        let mut job = Self {
            requests_per_connection: file.requests_per_connection,
            kinds: Vec::new(),
            shares: Vec::new(),
            statements: Vec::new(),
            first_statement: Vec::new(),
            requests: Vec::new(),
            sources: sources.collect::<Result<_, _>>()?,
        };
        let total: f64 = file.operations.iter().map(|operation| operation.weight).sum();
        let mut sum = 0.0;
        for operation in &file.operations {
            let of = |reason: String| format!("operation {}: {reason}", operation.name);
            if operation.weight.is_nan() || operation.weight <= 0.0 || total.is_infinite() {
                return Err(of("a weight must be a number above 0".to_owned()));
            }
            if operation.steps.is_empty() || operation.steps.len() > 255 {
                return Err(of("there must be 1 to 255 steps".to_owned()));
            }
            sum += operation.weight;
            job.kinds.push(operation.name.clone());
            job.shares.push(sum / total);
            job.first_statement.push(job.statements.len());
            for (number, step) in operation.steps.iter().enumerate() {
                let (statement, parameters) =
                    template(&step.send, dialect, &names, &job.sources).map_err(of)?;
                let ExpectEntry { rows, bytes, may_miss } = step.expect;
                let expect = Expect { rows, bytes, may_miss, ..Expect::default() };
                let last = number + 1 == operation.steps.len();
                job.statements.push(statement);
                job.requests.push(Template { parameters, expect, last });
            }
        }
        Ok(job)
    }

    fn drawn(&self, stream: &mut Stream, kind: Option<u8>) -> Operation {
        let key = stream.connection + stream.number * stream.connections;
        let mut random = stream.next_random();
        let share = random.unit();
        let drawn = self.shares.iter().position(|&sum| share < sum).unwrap_or(0) as u8;
        Operation { kind: kind.unwrap_or(drawn), step: 0, key, random }
    }

    fn write(&self, source: usize, operation: &Operation, out: &mut Vec<u8>) {
        match self.number(source, operation) {
            Some(number) => signed_decimal(out, number),
            None => self.text(source, operation, out),
        }
    }

    /// Number of a source, which is the same in all steps of an operation.
    fn number(&self, source: usize, operation: &Operation) -> Option<i64> {
        match &self.sources[source] {
            Source::Number { from, numbers } => {
                let drawn = numbers.draw(&mut operation.random.apart(source as u64));
                Some(from.wrapping_add_unsigned(drawn))
            }
            Source::Sequential { from, items } => {
                Some(from.wrapping_add_unsigned(operation.key % items))
            }
            Source::Text { .. } | Source::Choice(_) => None,
        }
    }

    fn text(&self, source: usize, operation: &Operation, out: &mut Vec<u8>) {
        let mut random = operation.random.apart(source as u64);
        match &self.sources[source] {
            Source::Choice(words) => {
                let word = &words[random.below(words.len() as u64) as usize];
                out.extend_from_slice(word.as_bytes());
            }
            Source::Text { length } => letters(&mut random, *length as usize, out),
            Source::Number { .. } | Source::Sequential { .. } => {}
        }
    }
}

impl Workload for Job {
    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn has_steps(&self) -> bool {
        self.requests.iter().any(|request| !request.last)
    }

    fn draw(&self, stream: &mut Stream) -> Operation {
        self.drawn(stream, None)
    }

    fn draw_of(&self, kind: u8, stream: &mut Stream) -> Operation {
        self.drawn(stream, Some(kind))
    }

    fn request(&self, operation: &mut Operation, values: &mut Values) -> Request {
        let statement =
            self.first_statement[usize::from(operation.kind)] + usize::from(operation.step);
        let template = &self.requests[statement];
        for parameter in &template.parameters {
            match parameter {
                Parameter::Whole(source) => match self.number(*source, operation) {
                    Some(number) => values.integer(number),
                    None => values.text(|out| self.text(*source, operation, out)),
                },
                Parameter::Pieces(pieces) => values.text(|out| {
                    for piece in pieces {
                        match piece {
                            Piece::Literal(literal) => out.extend_from_slice(literal),
                            Piece::Source(source) => self.write(*source, operation, out),
                        }
                    }
                }),
            }
        }
        operation.step = operation.step.saturating_add(1);
        Request { statement, expect: template.expect, last: template.last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(
            statement.text,
            r#"{"find": "c", "filter": {"_id": ?, "a": ?, "b": ?, "d": {}}}"#
        );
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
}
