//! A mix of one's own commands or statements, from a file in YAML or JSON.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::numbers::{Numbers, Zipfian};
use super::{Expect, Operation, Request, Stream, Workload};
use crate::error::LoadError;
use crate::protocol::statement::signed_decimal;
use crate::protocol::{Statement, Type, Values};
use crate::random::Random;

/// How a statement's text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Words between blanks; generators may be parts of a word.
    Words,
    /// SQL or CQL: a generator is a whole parameter.
    Sql,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    #[serde(default)]
    generators: BTreeMap<String, Generator>,
    operations: Vec<OperationEntry>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum Generator {
    Uniform {
        from: i64,
        to: i64,
    },
    Zipfian {
        from: i64,
        to: i64,
        exponent: f64,
    },
    Hotspot {
        from: i64,
        to: i64,
        data: f64,
        operations: f64,
    },
    Exponential {
        from: i64,
        to: i64,
        mean: f64,
    },
    /// Counts up over all connections, and from `from` again after `to`.
    Sequential {
        from: i64,
        to: i64,
    },
    /// So many random letters and digits.
    Text {
        length: u32,
    },
    Choice(Vec<String>),
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
    kinds: Vec<String>,
    /// The sums of the weights up to each operation, the last one 1.
    shares: Vec<f64>,
    statements: Vec<Statement>,
    /// Of each operation, one after the other in `statements`.
    first_statement: Vec<usize>,
    requests: Vec<Template>,
    sources: Vec<Source>,
}

/// What goes into a statement.
struct Template {
    parameters: Vec<Parameter>,
    expect: Expect,
    last: bool,
}

enum Parameter {
    Whole(usize),
    /// A word made of several pieces.
    Pieces(Vec<Piece>),
}

enum Piece {
    Literal(Vec<u8>),
    Source(usize),
}

enum Source {
    Number { from: i64, numbers: Numbers },
    Sequential { from: i64, items: u64 },
    Text { length: u32 },
    Choice(Vec<String>),
}

impl Job {
    /// # Errors
    /// Says what in the file cannot be.
    pub fn read(path: &Path, dialect: Dialect) -> Result<Self, LoadError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| LoadError::File { path: path.to_owned(), source })?;
        Self::parse(&text, dialect)
            .map_err(|reason| LoadError::Usage(format!("{}: {reason}", path.display())))
    }

    /// # Errors
    /// Says what in the text cannot be.
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
                let expect = Expect { rows, bytes, contents: None, may_miss };
                let last = number + 1 == operation.steps.len();
                job.statements.push(statement);
                job.requests.push(Template { parameters, expect, last });
            }
        }
        Ok(job)
    }

    fn write(&self, source: usize, operation: &Operation, out: &mut Vec<u8>) {
        match self.number(source, operation) {
            Some(number) => signed_decimal(out, number),
            None => self.text(source, operation, out),
        }
    }

    /// The same within one operation, whichever step asks.
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

/// Random letters, digits, `-` and `_`, ten of each draw.
pub(super) fn letters(random: &mut Random, length: usize, out: &mut Vec<u8>) {
    const LETTERS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    let mut left = length;
    while left > 0 {
        let mut bits = random.next_u64();
        for _ in 0..left.min(10) {
            out.push(LETTERS[(bits & 63) as usize]);
            bits >>= 6;
        }
        left -= left.min(10);
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
        let key = stream.connection + stream.number * stream.connections;
        let mut random = stream.next_random();
        let share = random.unit();
        let kind = self.shares.iter().position(|&sum| share < sum).unwrap_or(0) as u8;
        Operation { kind, step: 0, key, random }
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

impl Source {
    fn new(generator: &Generator) -> Result<Self, String> {
        let items = |from: i64, to: i64| {
            let items = to.checked_sub(from).and_then(|items| u64::try_from(items).ok());
            items.map(|items| items + 1).ok_or_else(|| "`to` is below `from`".to_owned())
        };
        let share = |share: f64, name: &str| {
            let inside = (0.0..=1.0).contains(&share);
            inside.then_some(share).ok_or_else(|| format!("`{name}` must be from 0 to 1"))
        };
        Ok(match generator {
            Generator::Uniform { from, to } => Self::Number {
                from: *from,
                numbers: Numbers::Uniform { items: items(*from, *to)? },
            },
            Generator::Zipfian { from, to, exponent } => {
                if !(0.0..=10.0).contains(exponent) {
                    return Err("`exponent` must be from 0 to 10".to_owned());
                }
                let zipfian = Zipfian::new(items(*from, *to)?, *exponent);
                Self::Number { from: *from, numbers: Numbers::Zipfian(zipfian) }
            }
            Generator::Hotspot { from, to, data, operations } => {
                let items = items(*from, *to)?;
                let (data, operations) = (share(*data, "data")?, share(*operations, "operations")?);
                Self::Number { from: *from, numbers: Numbers::Hotspot { items, data, operations } }
            }
            Generator::Exponential { from, to, mean } => {
                if mean.is_nan() || *mean <= 0.0 {
                    return Err("`mean` must be above 0".to_owned());
                }
                let numbers = Numbers::Exponential { items: items(*from, *to)?, mean: *mean };
                Self::Number { from: *from, numbers }
            }
            Generator::Sequential { from, to } => {
                Self::Sequential { from: *from, items: items(*from, *to)? }
            }
            Generator::Text { length } if *length > 1 << 24 => {
                return Err("a text may have 16 MiB at most".to_owned());
            }
            Generator::Text { length } => Self::Text { length: *length },
            Generator::Choice(words) if words.is_empty() => {
                return Err("there is nothing to choose from".to_owned());
            }
            Generator::Choice(words) => Self::Choice(words.clone()),
        })
    }
}

/// Takes `{name}` out of a text.
fn template(
    text: &str,
    dialect: Dialect,
    names: &[&String],
    sources: &[Source],
) -> Result<(Statement, Vec<Parameter>), String> {
    let mut statement = Statement { text: String::new(), parameters: Vec::new() };
    let mut parameters = Vec::new();
    match dialect {
        Dialect::Sql => {
            for piece in pieces(text, names)? {
                match piece {
                    Piece::Literal(literal) => {
                        statement.text.push_str(&String::from_utf8_lossy(&literal));
                    }
                    Piece::Source(source) => {
                        statement.text.push('?');
                        statement.parameters.push(match sources[source] {
                            Source::Number { .. } | Source::Sequential { .. } => Type::Integer,
                            Source::Text { .. } | Source::Choice(_) => Type::Text,
                        });
                        parameters.push(Parameter::Whole(source));
                    }
                }
            }
        }
        Dialect::Words => {
            for word in text.split_ascii_whitespace() {
                if !statement.text.is_empty() {
                    statement.text.push(' ');
                }
                let pieces = pieces(word, names)?;
                if !pieces.iter().any(|piece| matches!(piece, Piece::Source(_))) {
                    statement.text.push_str(word);
                    continue;
                }
                statement.text.push('?');
                statement.parameters.push(Type::Text);
                parameters.push(Parameter::Pieces(pieces));
            }
        }
    }
    Ok((statement, parameters))
}

fn pieces(text: &str, names: &[&String]) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after
            .split_once('}')
            .ok_or_else(|| format!("`{text}`: a brace is opened and not closed"))?;
        let source = names.iter().position(|known| *known == name).ok_or_else(|| {
            format!("`{text}`: there is no generator `{name}`; add it under `generators`")
        })?;
        if !before.is_empty() {
            pieces.push(Piece::Literal(before.as_bytes().to_vec()));
        }
        pieces.push(Piece::Source(source));
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.as_bytes().to_vec()));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Value;

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
