//! A workload after TPC-C, on sysbench-tpcc's tables: its five transactions in their mix. It is not audited, and its
//! results are no TPC results.

mod fill;
mod inputs;
mod query;
mod steps;

use std::time::Duration;

pub use self::fill::{Fill, after_filling, before_filling};
use self::inputs::Inputs;
use self::query::Query;
use self::steps::{Kind, Step};
use super::sysbench::Engine;
use super::{Answer, Datum, Memory, Next, Operation, Request, Stream, Workload};
use crate::protocol::{Label, Statement, Status, Values};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub engine: Engine,
    /// Sets of tables: `warehouse1`, `warehouse2`, …
    pub tables: u32,
    /// Warehouses in each set.
    pub warehouses: u32,
    /// How often a transaction is tried that fails for others' sake.
    pub most_tries: u32,
    /// Share of the keying and think times of the standard.
    pub think: f64,
}

pub const DISTRICTS: u32 = 10;
pub const CUSTOMERS: u32 = 3_000;
pub const ITEMS: u32 = 100_000;

/// Step of an operation that rolls back, and then ends or begins again.
const ROLL_BACK_TO_END: usize = 1_000;
const ROLL_BACK_TO_RETRY: usize = 1_001;

/// Transactions: each is an operation.
pub struct Tpcc {
    settings: Settings,
    kinds: Vec<String>,
    statements: Vec<Statement>,
}

impl Tpcc {
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let of_tables = (1..=settings.tables)
            .flat_map(|table| Query::ALL.into_iter().map(move |query| query.statement(table)));
        let around = ["BEGIN", "COMMIT", "ROLLBACK"].into_iter();
        let around = around.map(|text| Statement { text: text.to_owned(), ..Statement::default() });
        let kinds = Kind::ALL.map(|kind| kind.name().to_owned()).to_vec();
        Self { settings, kinds, statements: of_tables.chain(around).collect() }
    }

    fn inputs(&self, of: &Operation) -> Inputs {
        Inputs::new(of.random, self.settings.warehouses, self.settings.tables)
    }

    fn refused(&self, memory: &mut Memory, code: Label) -> Next {
        let again = memory.may_retry(code, self.settings.most_tries.saturating_sub(1));
        memory.at = if again { ROLL_BACK_TO_RETRY } else { ROLL_BACK_TO_END };
        Next::Request
    }
}

impl Workload for Tpcc {
    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn has_steps(&self) -> bool {
        true
    }

    fn has_flow(&self) -> bool {
        true
    }

    fn keeps_rows(&self) -> bool {
        true
    }

    fn draw(&self, stream: &mut Stream) -> Operation {
        let mut random = stream.next_random();
        let share = random.below(100);
        let mut sum = 0;
        let kind = Kind::ALL.into_iter().position(|kind| {
            sum += kind.percent();
            share < sum
        });
        Operation { kind: kind.unwrap_or_default() as u8, step: 0, key: 0, random }
    }

    fn draw_of(&self, kind: u8, stream: &mut Stream) -> Operation {
        Operation { kind, ..self.draw(stream) }
    }

    fn next(&self, of: &mut Operation, memory: &mut Memory, answer: Option<Answer<'_>>) -> Next {
        if memory.data.is_empty() {
            memory.data.resize(steps::SLOTS, Datum::Null);
        }
        let Some(Answer { status, rows }) = answer else { return Next::Request };
        match (memory.at, status) {
            (ROLL_BACK_TO_END, _) => return Next::End,
            (ROLL_BACK_TO_RETRY, _) => return Next::Again,
            (_, Status::Error(code)) => return self.refused(memory, code),
            _ => {}
        }
        let kind = Kind::ALL[usize::from(of.kind)];
        let Some(rows) = rows else { return Next::Fail("this protocol keeps no rows") };
        steps::learn(kind, &self.inputs(of), memory, rows)
    }

    fn request(&self, of: &mut Operation, values: &mut Values) -> Request {
        let mut memory = Memory::default();
        self.next(of, &mut memory, None);
        self.request_of(of, &mut memory, values)
    }

    fn request_of(&self, of: &mut Operation, memory: &mut Memory, out: &mut Values) -> Request {
        let inputs = self.inputs(of);
        let around = self.statements.len() - 3;
        let kind = Kind::ALL[usize::from(of.kind)];
        let last = false; // its steps say so
        let plain = |statement| Request { statement, expect: super::Expect::default(), last };
        if memory.at >= ROLL_BACK_TO_END {
            return plain(around + 2);
        }
        match steps::ask(kind, &inputs, memory, out) {
            Step::Begin => plain(around),
            Step::Commit => plain(around + 1),
            Step::Ask(query, expect) => {
                let statement = inputs.table as usize * Query::ALL.len() + query as usize;
                Request { statement, expect, last }
            }
        }
    }

    fn think(&self, operation: &Operation) -> Duration {
        let (keying, mean) = Kind::ALL[usize::from(operation.kind)].times_s();
        let think = mean * operation.random.apart(inputs::OF_THINKING).exponential().min(10.0);
        Duration::from_secs_f64((keying + think) * self.settings.think)
    }
}

#[cfg(test)]
mod tests;
