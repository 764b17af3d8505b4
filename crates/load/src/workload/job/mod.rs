//! A mix of the user's own commands or statements, from a file in YAML or JSON.

mod source;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use self::source::{Generator, Source, letters};
pub use self::template::Dialect;
use self::template::{Parameter, Piece, template};
use super::{Answer, Datum, Expect, Memory, Next, Operation, Request, Stream, Workload};
use crate::error::LoadError;
use crate::protocol::statement::signed_decimal;
use crate::protocol::{Statement, Status, Values};

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
    /// How often it is tried if it fails for others' sake.
    #[serde(default)]
    tries: u32,
    /// In a closed loop, how long the connection waits after it.
    #[serde(default)]
    think_ms: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    send: String,
    #[serde(default)]
    expect: ExpectEntry,
    /// Name of a value of the reply's first row, and its column, counted from 1.
    #[serde(default)]
    keep: BTreeMap<String, usize>,
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
    /// Generators, then values that are kept.
    sources: Vec<Source>,
    kept: usize,
    /// Of each operation.
    rules: Vec<Rules>,
    rollback: usize,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    /// How often it is begun again at most.
    most: u32,
    is_transaction: bool,
    think: Duration,
}

/// A statement with its values.
struct Template {
    parameters: Vec<Parameter>,
    expect: Expect,
    last: bool,
    /// Where a value is kept, and its column, counted from 0.
    keep: Vec<(usize, usize)>,
}

/// Where an operation is while it rolls back, before it ends or begins again.
const ROLL_BACK_TO_END: usize = 1_000;
const ROLL_BACK_TO_RETRY: usize = 1_001;

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
        let steps = || file.operations.iter().flat_map(|operation| &operation.steps);
        let kept: BTreeSet<&String> = steps().flat_map(|step| step.keep.keys()).collect();
        if let Some(name) = kept.iter().find(|name| file.generators.contains_key(**name)) {
            return Err(format!("`{name}` is a generator, and also a value that is kept"));
        }
        if dialect == Dialect::Json && !kept.is_empty() {
            return Err("`keep` does not support this protocol".to_owned());
        }
        let names: Vec<&String> = file.generators.keys().chain(kept.iter().copied()).collect();
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
            kept: kept.len(),
            rules: Vec::new(),
            rollback: 0,
        };
        job.sources.extend((0..kept.len()).map(Source::Kept));
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
            if !(0.0..=1e7).contains(&operation.think_ms) {
                return Err(of("`think_ms` must be from 0 to 10000000".to_owned()));
            }
            let first = operation.steps[0].send.split_whitespace().next().unwrap_or_default();
            let begins = ["BEGIN", "START"].iter().any(|word| first.eq_ignore_ascii_case(word));
            job.rules.push(Rules {
                most: operation.tries.saturating_sub(1),
                is_transaction: begins && dialect == Dialect::Sql,
                think: Duration::from_secs_f64(operation.think_ms / 1e3),
            });
            sum += operation.weight;
            job.kinds.push(operation.name.clone());
            job.shares.push(sum / total);
            job.first_statement.push(job.statements.len());
            let mut known: Vec<&String> = Vec::new();
            for (number, step) in operation.steps.iter().enumerate() {
                let early = kept.iter().find(|name| {
                    !known.contains(name) && step.send.contains(&format!("{{{name}}}"))
                });
                if let Some(name) = early {
                    return Err(of(format!("`{name}` is used before a step keeps it")));
                }
                known.extend(step.keep.keys());
                let place = |name| kept.iter().position(|known| *known == name).unwrap_or_default();
                let keep: Option<_> = step
                    .keep
                    .iter()
                    .map(|(name, column)| Some((place(name), column.checked_sub(1)?)))
                    .collect();
                let keep = keep.ok_or_else(|| of("columns are counted from 1".to_owned()))?;
                let (statement, parameters) =
                    template(&step.send, dialect, &names, &job.sources).map_err(of)?;
                let ExpectEntry { rows, bytes, may_miss } = step.expect;
                let expect = Expect { rows, bytes, may_miss, ..Expect::default() };
                let last = number + 1 == operation.steps.len();
                job.statements.push(statement);
                job.requests.push(Template { parameters, expect, last, keep });
            }
        }
        if job.rules.iter().any(|of| of.is_transaction) && job.has_flow() {
            job.rollback = job.statements.len();
            job.statements.push(Statement { text: "ROLLBACK".to_owned(), ..Statement::default() });
        }
        Ok(job)
    }

    /// Whether a connection waits after some operation.
    #[must_use]
    pub fn thinks(&self) -> bool {
        self.rules.iter().any(|of| !of.think.is_zero())
    }

    fn drawn(&self, stream: &mut Stream, kind: Option<u8>) -> Operation {
        let key = stream.next_turn();
        let mut random = stream.next_random();
        let share = random.unit();
        let drawn = self.shares.iter().position(|&sum| share < sum).unwrap_or(0) as u8;
        Operation { kind: kind.unwrap_or(drawn), step: 0, key, random }
    }

    fn write(&self, source: usize, operation: &Operation, memory: &Memory, out: &mut Vec<u8>) {
        match self.number(source, operation) {
            Some(number) => signed_decimal(out, number),
            None => self.text(source, operation, memory, out),
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
            Source::Text { .. } | Source::Choice(_) | Source::Kept(_) => None,
        }
    }

    fn text(&self, source: usize, operation: &Operation, memory: &Memory, out: &mut Vec<u8>) {
        let mut random = operation.random.apart(source as u64);
        match &self.sources[source] {
            Source::Choice(words) => {
                let word = &words[random.below(words.len() as u64) as usize];
                out.extend_from_slice(word.as_bytes());
            }
            Source::Text { length } => letters(&mut random, *length as usize, out),
            Source::Kept(slot) => {
                if let Some(Datum::Text(text)) = memory.data.get(*slot) {
                    out.extend_from_slice(text);
                }
            }
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
        self.requests.iter().any(|request| !request.last) || self.thinks() || self.has_flow()
    }

    fn has_flow(&self) -> bool {
        self.kept > 0 || self.rules.iter().any(|of| of.most > 0)
    }

    fn keeps_rows(&self) -> bool {
        self.kept > 0
    }

    fn think(&self, operation: &Operation) -> Duration {
        self.rules[usize::from(operation.kind)].think
    }

    fn next(&self, of: &mut Operation, memory: &mut Memory, answer: Option<Answer<'_>>) -> Next {
        let Some(Answer { status, rows }) = answer else {
            memory.data.resize(self.kept, Datum::Null);
            return Next::Request;
        };
        match memory.at {
            ROLL_BACK_TO_END => return Next::End,
            ROLL_BACK_TO_RETRY => return Next::Again,
            _ => {}
        }
        let Rules { most, is_transaction, .. } = self.rules[usize::from(of.kind)];
        let first = self.first_statement[usize::from(of.kind)];
        let template = &self.requests[first + usize::from(of.step) - 1];
        let mut again = false;
        let mut stops = false;
        match status {
            Status::Error(code) => {
                again = memory.may_retry(code, most);
                stops = again || most > 0 || !template.keep.is_empty();
            }
            Status::Done | Status::Missing => {
                for &(slot, column) in &template.keep {
                    match rows.and_then(|rows| rows.text(0, column)) {
                        Some(text) => memory.data[slot] = Datum::Text(text.to_vec()),
                        None => stops = true, // later steps have nothing to ask for
                    }
                }
            }
        }
        if stops && is_transaction {
            memory.at = if again { ROLL_BACK_TO_RETRY } else { ROLL_BACK_TO_END };
            return Next::Request;
        }
        match (stops, again) {
            (_, true) => Next::Again,
            (true, false) => Next::End,
            (false, false) if template.last => Next::End,
            (false, false) => Next::Request,
        }
    }

    fn draw(&self, stream: &mut Stream) -> Operation {
        self.drawn(stream, None)
    }

    fn draw_of(&self, kind: u8, stream: &mut Stream) -> Operation {
        self.drawn(stream, Some(kind))
    }

    fn request(&self, operation: &mut Operation, values: &mut Values) -> Request {
        self.request_of(operation, &mut Memory::default(), values)
    }

    fn request_of(
        &self,
        operation: &mut Operation,
        memory: &mut Memory,
        values: &mut Values,
    ) -> Request {
        if memory.at >= ROLL_BACK_TO_END {
            return Request { statement: self.rollback, expect: Expect::default(), last: false };
        }
        let statement =
            self.first_statement[usize::from(operation.kind)] + usize::from(operation.step);
        let template = &self.requests[statement];
        for parameter in &template.parameters {
            match parameter {
                Parameter::Whole(source) => match self.number(*source, operation) {
                    Some(number) => values.integer(number),
                    None => values.text(|out| self.text(*source, operation, memory, out)),
                },
                Parameter::Pieces(pieces) => values.text(|out| {
                    for piece in pieces {
                        match piece {
                            Piece::Literal(literal) => out.extend_from_slice(literal),
                            Piece::Source(source) => self.write(*source, operation, memory, out),
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
mod tests;
