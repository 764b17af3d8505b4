//! sysbench's OLTP scripts: its tables, its statements, its distributions.

mod draw;
mod fill;
mod script;
mod table;

pub use self::draw::Draw;
pub use self::fill::Fill;
pub use self::script::{Counts, Script};
use self::script::{Part, Step};
use self::table::{C_BYTES, digits};
pub use self::table::{Engine, after_filling, before_filling};
use super::{Expect, Operation, Request, Stream, Workload};
use crate::protocol::{Statement, Type, Values};
use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub script: Script,
    pub engine: Engine,
    pub tables: u32,
    pub table_size: u64,
    pub range_size: u64,
    pub draw: Draw,
    pub counts: Counts,
}

/// Events of one script: each is an operation, as sysbench counts and measures them.
pub struct Sysbench {
    settings: Settings,
    kinds: [String; 1],
    statements: Vec<Statement>,
    /// With the transaction around it. Its rollback is last, and only reached after a failure.
    steps: Vec<Step>,
    /// Statement of each step for the first table; the same for parts of the same kind.
    first_statement: Vec<usize>,
    /// Number of statements from those of one table to those of the next.
    stride: usize,
    is_transaction: bool,
}

/// Parts of an operation's random numbers at which those for tables and for rows start.
const OF_TABLES: u64 = 0;
const OF_ROWS: u64 = 1_000;
const OF_TEXTS: u64 = 2_000;

impl Sysbench {
    /// # Errors
    /// A setting is not possible, and why.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let Settings { script, counts, .. } = settings;
        let inner = script.steps(&counts).ok_or("an event has more than 250 statements")?;
        if inner.is_empty() {
            return Err("an event has no statement".to_owned());
        }
        let mut parts: Vec<Part> = Vec::new();
        for step in &inner {
            if !parts.contains(&step.part) {
                parts.push(step.part);
            }
        }
        let mut statements: Vec<Statement> = (1..=settings.tables)
            .flat_map(|table| {
                parts.iter().map(move |&part| statement(part, table, settings.engine))
            })
            .collect();
        let place = |part: Part| parts.iter().position(|&known| known == part).unwrap_or_default();
        let mut steps = inner.clone();
        let mut first_statement: Vec<usize> = inner.iter().map(|step| place(step.part)).collect();
        let is_transaction = script.is_transaction(&counts);
        if is_transaction {
            let outer = [
                (Part::Begin, 0),
                (Part::Commit, steps.len() + 1),
                (Part::Rollback, steps.len() + 2),
            ];
            for (part, at) in outer {
                steps.insert(at, Step { part, group: 0 });
                first_statement.insert(at, statements.len());
                statements.push(statement(part, 0, settings.engine));
            }
        }
        let kinds = [script.name().to_owned()];
        let stride = parts.len();
        Ok(Self { settings, kinds, statements, steps, first_statement, stride, is_transaction })
    }

    /// Last step of an event without failures.
    fn last_step(&self) -> usize {
        self.steps.len() - 1 - usize::from(self.is_transaction)
    }

    fn expect(&self, part: Part, id: u64) -> Expect {
        let rows_deleted = self.settings.script == Script::Delete;
        let rows_replaced = self.steps.iter().any(|step| step.part == Part::Reinsert);
        let (rows, bytes) = match part {
            Part::Begin | Part::Commit | Part::Rollback => (0, 0),
            Part::Point => (1, C_BYTES),
            Part::SimpleRange | Part::OrderRange | Part::DistinctRange => {
                let rows = self.settings.range_size.min(self.settings.table_size + 1 - id) as u32;
                (rows, rows.saturating_mul(C_BYTES))
            }
            Part::SumRange => (1, 1),
            Part::IndexUpdate
            | Part::NonIndexUpdate
            | Part::Delete
            | Part::Reinsert
            | Part::Insert => (1, 0),
        };
        let may_miss = match part {
            Part::Delete => rows_deleted || rows_replaced,
            // Another session may just have deleted the row, to insert it again: PostgreSQL then
            // finds nothing to change.
            Part::IndexUpdate | Part::NonIndexUpdate => rows_replaced,
            // Without transactions, readers see that, too.
            _ => rows_replaced && !self.is_transaction && !matches!(part, Part::Reinsert),
        };
        Expect { rows, bytes: if may_miss { 0 } else { bytes }, may_miss, ..Expect::default() }
    }

    /// Last id of a `BETWEEN`.
    fn range_end(&self, id: u64) -> i64 {
        (id + self.settings.range_size - 1) as i64
    }
}

/// Adds `c` and `pad` of a new row.
fn texts(random: &mut Random, values: &mut Values) {
    values.text(|out| digits(10, random, out));
    values.text(|out| digits(5, random, out));
}

fn statement(part: Part, table: u32, engine: Engine) -> Statement {
    use Type::{Integer, Text};
    let range = [Integer, Integer].as_slice();
    let row = [Integer, Integer, Text, Text].as_slice();
    let (text, parameters): (String, &[Type]) = match part {
        Part::Begin => ("BEGIN".into(), &[]),
        Part::Commit => ("COMMIT".into(), &[]),
        Part::Rollback => ("ROLLBACK".into(), &[]),
        Part::Point => (format!("SELECT c FROM sbtest{table} WHERE id=?"), &[Integer]),
        Part::SimpleRange => {
            (format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ?"), range)
        }
        Part::SumRange => {
            (format!("SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN ? AND ?"), range)
        }
        Part::OrderRange => {
            (format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c"), range)
        }
        Part::DistinctRange => {
            let text = "WHERE id BETWEEN ? AND ? ORDER BY c";
            (format!("SELECT DISTINCT c FROM sbtest{table} {text}"), range)
        }
        Part::IndexUpdate => (format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?"), &[Integer]),
        Part::NonIndexUpdate => {
            (format!("UPDATE sbtest{table} SET c=? WHERE id=?"), &[Text, Integer])
        }
        Part::Delete => (format!("DELETE FROM sbtest{table} WHERE id=?"), &[Integer]),
        Part::Insert if engine == Engine::Postgresql => {
            (format!("INSERT INTO sbtest{table} (k, c, pad) VALUES (?, ?, ?)"), &row[1..])
        }
        Part::Reinsert | Part::Insert => {
            (format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)"), row)
        }
    };
    Statement { text, parameters: parameters.to_vec(), ..Statement::default() }
}

impl Workload for Sysbench {
    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn has_steps(&self) -> bool {
        self.last_step() > 0
    }

    fn draw(&self, stream: &mut Stream) -> Operation {
        Operation { kind: 0, step: 0, key: 0, random: stream.next_random() }
    }

    fn request(&self, operation: &mut Operation, values: &mut Values) -> Request {
        let number = usize::from(operation.step);
        let Step { part, group } = self.steps[number];
        // A row that is inserted again is the one from the step before.
        let of_row = number as u64 - u64::from(part == Part::Reinsert);
        let mut random = operation.random.apart(OF_ROWS + of_row);
        let id = self.settings.draw.id(self.settings.table_size, &mut random);
        let mut text = operation.random.apart(OF_TEXTS + number as u64);
        match part {
            Part::Begin | Part::Commit | Part::Rollback => {}
            Part::Point | Part::IndexUpdate | Part::Delete => values.integer(id as i64),
            Part::SimpleRange | Part::SumRange | Part::OrderRange | Part::DistinctRange => {
                values.integer(id as i64);
                values.integer(self.range_end(id));
            }
            Part::NonIndexUpdate => {
                values.text(|out| digits(10, &mut text, out));
                values.integer(id as i64);
            }
            Part::Reinsert => {
                values.integer(id as i64);
                values.integer(self.settings.draw.id(self.settings.table_size, &mut random) as i64);
                texts(&mut text, values);
            }
            Part::Insert => {
                if self.settings.engine == Engine::Mysql {
                    values.integer(0); // the server's next one
                }
                values.integer(id as i64);
                texts(&mut text, values);
            }
        }
        let statement = match part {
            Part::Begin | Part::Commit | Part::Rollback => self.first_statement[number],
            _ => self.first_statement[number] + self.stride * self.table(operation, group),
        };
        operation.step += 1;
        let last = number == self.last_step() || part == Part::Rollback;
        Request { statement, expect: self.expect(part, id), last }
    }

    fn failed(&self, operation: &mut Operation) {
        if self.is_transaction {
            operation.step = (self.steps.len() - 1) as u8;
        }
    }
}

impl Sysbench {
    fn table(&self, operation: &Operation, group: u8) -> usize {
        let mut random: Random = operation.random.apart(OF_TABLES + u64::from(group));
        random.below(self.settings.tables.into()) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Value;

    const COUNTS: Counts = Counts {
        point_selects: 10,
        range_selects: true,
        simple_ranges: 1,
        sum_ranges: 1,
        order_ranges: 1,
        distinct_ranges: 1,
        index_updates: 1,
        non_index_updates: 1,
        delete_inserts: 1,
        skip_trx: false,
    };

    fn sysbench(script: Script, counts: Counts) -> Sysbench {
        let settings = Settings {
            script,
            engine: Engine::Mysql,
            tables: 3,
            table_size: 1_000,
            range_size: 100,
            draw: Draw::Uniform,
            counts,
        };
        Sysbench::new(settings).expect("it can be")
    }

    /// The requests of an operation, each as its statement and its values.
    fn requests(
        sysbench: &Sysbench,
        operation: &mut Operation,
    ) -> Vec<(String, Vec<String>, Expect)> {
        let mut requests = Vec::new();
        loop {
            let mut values = Values::default();
            let request = sysbench.request(operation, &mut values);
            let shown = values.iter().map(|value| match value {
                Value::Integer(number) => number.to_string(),
                Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            });
            let text = sysbench.statements()[request.statement].text.clone();
            requests.push((text, shown.collect(), request.expect));
            if request.last {
                return requests;
            }
        }
    }

    fn first(sysbench: &Sysbench) -> Vec<(String, Vec<String>, Expect)> {
        requests(sysbench, &mut sysbench.draw(&mut Stream::new(1, 0, 1)))
    }

    #[test]
    fn an_event_has_the_statements_of_its_script() {
        let lengths = [
            (Script::PointSelect, 1),
            (Script::ReadOnly, 16),
            (Script::ReadWrite, 20),
            (Script::WriteOnly, 6),
            (Script::UpdateIndex, 1),
            (Script::UpdateNonIndex, 1),
            (Script::Insert, 1),
            (Script::Delete, 1),
        ];
        for (script, length) in lengths {
            assert_eq!(first(&sysbench(script, COUNTS)).len(), length, "{script:?}");
        }
        let event = first(&sysbench(Script::ReadWrite, COUNTS));
        assert_eq!(event[0].0, "BEGIN");
        assert_eq!(event[19].0, "COMMIT");
        let without = Counts { skip_trx: true, ..COUNTS };
        assert_eq!(first(&sysbench(Script::ReadWrite, without)).len(), 18);
        let without = Counts { range_selects: false, ..COUNTS };
        assert_eq!(first(&sysbench(Script::ReadOnly, without)).len(), 12);
    }

    #[test]
    fn a_deleted_row_is_inserted_again_into_its_table() {
        let event = first(&sysbench(Script::WriteOnly, COUNTS));
        let table = event[3].0.strip_prefix("DELETE FROM ").expect("a delete").split(' ').next();
        assert!(event[4].0.starts_with(&format!("INSERT INTO {} ", table.expect("a table"))));
        assert_eq!(event[3].1[0], event[4].1[0]);
        assert_eq!((event[4].1[2].len(), event[4].1[3].len()), (119, 59));
    }

    #[test]
    fn ranges_at_the_end_of_a_table_are_shorter() {
        let sysbench = sysbench(Script::ReadOnly, COUNTS);
        for operation in 0..200 {
            let mut stream = Stream::new(operation, 0, 1);
            let event = requests(&sysbench, &mut sysbench.draw(&mut stream));
            let (_, values, expect) = &event[11];
            let id: u32 = values[0].parse().expect("an id");
            assert_eq!(values[1], (id + 99).to_string());
            assert_eq!(expect.rows, 100.min(1_001 - id));
            assert_eq!(expect.bytes, expect.rows * 119);
        }
    }

    #[test]
    fn a_failure_leads_to_the_rollback() {
        let sysbench = sysbench(Script::ReadWrite, COUNTS);
        let mut operation = sysbench.draw(&mut Stream::new(1, 0, 1));
        let mut values = Values::default();
        sysbench.request(&mut operation, &mut values);
        sysbench.request(&mut operation, &mut values);
        sysbench.failed(&mut operation);
        let rest = requests(&sysbench, &mut operation);
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0].0, "ROLLBACK");
    }

    #[test]
    fn tables_are_drawn_evenly() {
        let sysbench = sysbench(Script::PointSelect, COUNTS);
        let mut counts = [0_u32; 3];
        let mut stream = Stream::new(1, 0, 1);
        for _ in 0..3_000 {
            let event = requests(&sysbench, &mut sysbench.draw(&mut stream));
            let table = (1..=3).find(|n| event[0].0.contains(&format!("sbtest{n} "))).expect("one");
            counts[table - 1] += 1;
        }
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
    }

    #[test]
    fn more_than_a_byte_of_steps_is_refused() {
        let counts = Counts { point_selects: 255, ..COUNTS };
        let settings = Settings { counts, ..sysbench(Script::ReadOnly, COUNTS).settings };
        assert!(Sysbench::new(settings).is_err());
    }
}
