//! pgbench's scripts, built in and from files, on the tables that `pgbench -i` makes.

mod expression;
mod parse;
mod tables;

use std::collections::BTreeMap;
use std::time::Duration;

use self::expression::{Draws, Expression, evaluate};
pub use self::tables::{Accounts, after_filling, before_filling};
use super::{Answer, Datum, Expect, Memory, Next, Operation, Request, Stream, Workload};
use crate::protocol::{Label, Statement, Status, Values};

/// The longest built-in script, of which the others are parts.
const TPCB: &str = r"
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

/// The scripts that pgbench has built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    TpcbLike,
    SimpleUpdate,
    SelectOnly,
}

impl BuiltIn {
    pub const ALL: [Self; 3] = [Self::TpcbLike, Self::SimpleUpdate, Self::SelectOnly];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TpcbLike => "tpcb-like",
            Self::SimpleUpdate => "simple-update",
            Self::SelectOnly => "select-only",
        }
    }

    fn text(self) -> String {
        let others = ["pgbench_tellers", "pgbench_branches"];
        let keeps = |line: &&str| match self {
            Self::TpcbLike => true,
            Self::SimpleUpdate => !others.iter().any(|table| line.contains(table)),
            Self::SelectOnly => line.contains("aid random") || line.starts_with("SELECT"),
        };
        TPCB.lines().filter(keeps).flat_map(|line| [line, "\n"]).collect()
    }
}

/// A script and how often it is drawn, relative to others.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub name: String,
    /// `None`: that of a file.
    pub built_in: Option<BuiltIn>,
    /// Of a file.
    pub text: String,
    pub weight: f64,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub scripts: Vec<Chosen>,
    pub scale: u32,
    pub variables: BTreeMap<String, f64>,
    /// How often a transaction is tried that fails for others' sake.
    pub most_tries: u32,
}

/// A line of a script.
#[derive(Debug, PartialEq)]
enum Instruction {
    Sql {
        statement: usize,
        variables: Vec<usize>,
        expect: Expect,
    },
    Set {
        variable: usize,
        value: Expression,
    },
    /// So many times the nanoseconds.
    Sleep {
        time: Expression,
        unit_ns: u64,
    },
    /// Goes to another line if this is false; always if there is nothing to ask.
    Jump {
        unless: Option<Expression>,
        to: usize,
    },
}

struct Script {
    instructions: Vec<Instruction>,
    /// Whether an error leaves a transaction behind.
    is_transaction: bool,
}

/// Transactions of pgbench's scripts: each is an operation, as pgbench counts and measures them.
pub struct Pgbench {
    kinds: Vec<String>,
    /// Cumulative weights; the last one is 1.
    shares: Vec<f64>,
    scripts: Vec<Script>,
    /// The last one rolls back.
    statements: Vec<Statement>,
    /// Of all variables, at the beginning of an operation.
    initial: Vec<Datum>,
    /// Variable of the connection's number.
    client: usize,
    most_retries: u32,
}

/// States of an operation that rolls back, counted from the end of its script.
const TO_END: usize = 0;
const TO_RETRY: usize = 1;
const SENT: usize = 2;

impl Pgbench {
    /// # Errors
    /// A script is not valid, and why.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        let mut names = parse::Names::default();
        names.define("scale", Datum::Integer(settings.scale.into()));
        let client = names.define("client_id", Datum::Integer(0));
        for (name, &value) in &settings.variables {
            #[allow(clippy::float_cmp, clippy::cast_precision_loss)] // whole numbers stay whole
            let whole = value.trunc() == value && value.abs() < i64::MAX as f64;
            let value = if whole { Datum::Integer(value as i64) } else { Datum::Double(value) };
            names.define(name, value);
        }
        let total: f64 = settings.scripts.iter().map(|script| script.weight).sum();
        let (mut sum, mut statements) = (0.0, Vec::new());
        let (mut kinds, mut shares, mut scripts) = (Vec::new(), Vec::new(), Vec::new());
        for chosen in &settings.scripts {
            let of = |reason: String| format!("{}: {reason}", chosen.name);
            if !(chosen.weight > 0.0 && total.is_finite()) {
                return Err(of("a weight must be a number above 0".to_owned()));
            }
            let text = chosen.built_in.map_or_else(|| chosen.text.clone(), BuiltIn::text);
            let mut script = parse::script(&text, &mut names, &mut statements).map_err(of)?;
            if chosen.built_in.is_some() {
                script.expect_rows(&statements);
            }
            sum += chosen.weight;
            shares.push(sum / total);
            kinds.push(chosen.name.clone());
            scripts.push(script);
        }
        statements.push(Statement { text: "ROLLBACK".to_owned(), ..Statement::default() });
        let initial = names.values()?;
        let most_retries = settings.most_tries.saturating_sub(1);
        Ok(Self { kinds, shares, scripts, statements, initial, client, most_retries })
    }

    fn refused(&self, script: &Script, memory: &mut Memory, code: Label) -> Next {
        let again = memory.may_retry(code, self.most_retries);
        if script.is_transaction {
            memory.at = script.instructions.len() + if again { TO_RETRY } else { TO_END };
            return Next::Request;
        }
        if again { Next::Again } else { Next::End }
    }
}

impl Script {
    /// Runs a script up to its next request, pause or end.
    fn run(&self, of: &Operation, memory: &mut Memory) -> Next {
        while let Some(instruction) = self.instructions.get(memory.at) {
            // Values do not depend on what the server answered, and are the same in another try.
            let mut draws = Draws(of.random.apart(memory.at as u64));
            let mut value = |of: &Expression, data: &[Datum]| evaluate(of, data, &mut draws);
            memory.at += 1;
            match instruction {
                Instruction::Sql { variables, .. } => {
                    if variables.iter().any(|&variable| memory.data[variable] == Datum::Null) {
                        return Next::Fail("a variable is NULL");
                    }
                    memory.at -= 1;
                    return Next::Request;
                }
                Instruction::Set { variable, value: of } => match value(of, &memory.data) {
                    Ok(value) => memory.data[*variable] = value,
                    Err(why) => return Next::Fail(why),
                },
                Instruction::Sleep { time, unit_ns } => {
                    let time = match value(time, &memory.data) {
                        Ok(Datum::Integer(time)) => u64::try_from(time).unwrap_or(0),
                        Ok(_) => return Next::Fail("the time of \\sleep is no whole number"),
                        Err(why) => return Next::Fail(why),
                    };
                    return Next::Pause(Duration::from_nanos(time.saturating_mul(*unit_ns)));
                }
                Instruction::Jump { unless, to } => {
                    let holds = unless.as_ref().map(|unless| value(unless, &memory.data));
                    match holds.transpose() {
                        Ok(None | Some(Datum::Null | Datum::Integer(0))) => memory.at = *to,
                        Ok(Some(_)) => {}
                        Err(why) => return Next::Fail(why),
                    }
                }
            }
        }
        Next::End
    }

    /// Every `SELECT` finds its row and every `UPDATE` changes one, or the tables are smaller than the scale says.
    fn expect_rows(&mut self, statements: &[Statement]) {
        for instruction in &mut self.instructions {
            if let Instruction::Sql { statement, expect, .. } = instruction {
                let text = &statements[*statement].text;
                let rows = ["SELECT", "UPDATE", "INSERT"].iter().any(|verb| text.starts_with(verb));
                *expect = Expect { rows: rows.into(), ..Expect::default() };
            }
        }
    }
}

impl Workload for Pgbench {
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

    fn draw(&self, stream: &mut Stream) -> Operation {
        let mut random = stream.next_random();
        let share = random.unit();
        let kind = self.shares.iter().position(|&sum| share < sum).unwrap_or(0) as u8;
        Operation { kind, step: 0, key: stream.connection, random }
    }

    fn draw_of(&self, kind: u8, stream: &mut Stream) -> Operation {
        Operation { kind, ..self.draw(stream) }
    }

    fn next(&self, of: &mut Operation, memory: &mut Memory, answer: Option<Answer<'_>>) -> Next {
        let script = &self.scripts[usize::from(of.kind)];
        let end = script.instructions.len();
        if memory.data.is_empty() {
            memory.data.clone_from(&self.initial);
            memory.data[self.client] = Datum::Integer(of.key as i64);
        }
        match answer {
            Some(_) if memory.at == end + SENT + TO_END => Next::End,
            Some(_) if memory.at == end + SENT + TO_RETRY => Next::Again,
            Some(Answer { status: Status::Error(code), .. }) => self.refused(script, memory, code),
            _ => script.run(of, memory),
        }
    }

    fn request(&self, of: &mut Operation, values: &mut Values) -> Request {
        let mut memory = Memory::default();
        self.next(of, &mut memory, None);
        self.request_of(of, &mut memory, values)
    }

    fn request_of(&self, of: &mut Operation, memory: &mut Memory, out: &mut Values) -> Request {
        let script = &self.scripts[usize::from(of.kind)];
        let last = false; // its script says so
        let Some(Instruction::Sql { statement, variables, expect }) =
            script.instructions.get(memory.at)
        else {
            memory.at += SENT;
            let statement = self.statements.len() - 1;
            return Request { statement, expect: Expect::default(), last };
        };
        memory.at += 1;
        for &variable in variables {
            match &memory.data[variable] {
                Datum::Integer(number) => out.integer(*number),
                Datum::Double(number) => {
                    out.text(|out| out.extend_from_slice(number.to_string().as_bytes()));
                }
                Datum::Text(text) => out.text(|out| out.extend_from_slice(text)),
                Datum::Null => out.text(|_| {}), // refused before
            }
        }
        Request { statement: *statement, expect: *expect, last }
    }
}

#[cfg(test)]
mod tests;
