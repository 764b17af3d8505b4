//! pgbench's tables, as `pgbench -i` makes them, so that each program can use the other's.

use crate::protocol::{Statement, Type, Values};
use crate::workload::{Expect, Operation, Request, Stream, Workload};

const ACCOUNTS: u64 = 100_000;
const TELLERS: u32 = 10;
/// Rows of one statement.
const ROWS: u64 = 10_000;

/// Statements to execute before accounts are inserted.
#[must_use]
pub fn before_filling(scale: u32) -> Vec<Statement> {
    let kept = "WITH (fillfactor = 100)";
    [
        "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))".to_owned(),
        format!("CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84)) {kept}"),
        format!("CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84)) {kept}"),
        format!("CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88)) {kept}"),
        format!("INSERT INTO pgbench_branches (bid, bbalance) SELECT bid, 0 FROM generate_series(1, {scale}) bid"),
        format!(
            "INSERT INTO pgbench_tellers (tid, bid, tbalance) \
             SELECT tid, (tid - 1) / {TELLERS} + 1, 0 FROM generate_series(1, {}) tid",
            u64::from(TELLERS) * u64::from(scale)
        ),
    ]
    .map(once)
    .into()
}

/// Statements to execute after them.
#[must_use]
pub fn after_filling() -> Vec<Statement> {
    let tables = ["pgbench_branches", "pgbench_tellers", "pgbench_accounts"];
    let keys = tables.into_iter().zip(["bid", "tid", "aid"]);
    keys.map(|(table, key)| once(format!("ALTER TABLE {table} ADD PRIMARY KEY ({key})")))
        .chain(tables.map(|table| once(format!("VACUUM ANALYZE {table}"))))
        .collect()
}

fn once(text: String) -> Statement {
    Statement { text, ..Statement::default() }
}

/// Operations that each insert the accounts of one statement, which the server makes.
pub struct Accounts {
    kinds: [String; 1],
    statements: [Statement; 1],
    scale: u32,
}

impl Accounts {
    #[must_use]
    pub fn new(scale: u32) -> Self {
        let text = format!(
            "INSERT INTO pgbench_accounts (aid, bid, abalance, filler) \
             SELECT aid, (aid - 1) / {ACCOUNTS} + 1, 0, '' FROM generate_series(?::int, ?::int) aid"
        );
        let statement =
            Statement { text, parameters: vec![Type::Integer; 2], ..Statement::default() };
        Self { kinds: ["fill".to_owned()], statements: [statement], scale }
    }

    /// Number of operations that insert all accounts.
    #[must_use]
    pub fn operations(&self) -> u64 {
        u64::from(self.scale) * (ACCOUNTS / ROWS)
    }
}

impl Workload for Accounts {
    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn has_steps(&self) -> bool {
        false
    }

    fn draw(&self, stream: &mut Stream) -> Operation {
        let key = stream.next_turn();
        Operation { kind: 0, step: 0, key, random: stream.next_random() }
    }

    fn request(&self, operation: &mut Operation, values: &mut Values) -> Request {
        values.integer((operation.key * ROWS + 1) as i64);
        values.integer(((operation.key + 1) * ROWS) as i64);
        let expect = Expect { rows: ROWS as u32, ..Expect::default() };
        Request { statement: 0, expect, last: true }
    }
}
