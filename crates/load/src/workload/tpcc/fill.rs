//! Tables as sysbench-tpcc makes them, so that each program can use the other's. The server makes the rows.

use super::inputs::{C_LOADED_NAME, SYLLABLES};
use super::{CUSTOMERS, DISTRICTS, ITEMS, Settings};
use crate::protocol::{Statement, Type, Values};
use crate::workload::sysbench::Engine;
use crate::workload::{Expect, Operation, Request, Stream, Workload};

/// Items and rows of stock of one statement.
const ROWS: u32 = 10_000;
const PIECES: u64 = (ITEMS / ROWS) as u64;
/// Statements of a district, one after the other, and of all of a set of tables.
const OF_DISTRICT: usize = 5;
const OF_TABLES: usize = 2 + OF_DISTRICT;

/// In the words of a server: `{r}` a number from 0 to 1, `{m}` 32 random letters, `{int}` a type of whole numbers,
/// `{tiny}` and `{time}` types of columns, `{n}` 10,000 rows `n` with the numbers `i` from 1 on.
fn sql(engine: Engine, text: &str) -> String {
    let digits = (0..10).map(|digit| format!("SELECT {digit} AS i")).collect::<Vec<_>>();
    let digits = format!("({})", digits.join(" UNION ALL "));
    let numbers = format!(
        "(SELECT a.i + 10 * b.i + 100 * c.i + 1000 * d.i + 1 AS i \
         FROM {digits} a, {digits} b, {digits} c, {digits} d) n"
    );
    let words = match engine {
        Engine::Mysql => [
            ("{r}", "RAND()"),
            ("{m}", "MD5(RAND())"),
            ("{int}", "SIGNED"),
            ("{tiny}", "tinyint"),
            ("{time}", "datetime"),
        ],
        Engine::Postgresql => [
            ("{r}", "random()"),
            ("{m}", "MD5(random()::text)"),
            ("{int}", "int"),
            ("{tiny}", "smallint"),
            ("{time}", "timestamp"),
        ],
    };
    let text = text.replace("{n}", &numbers);
    words.into_iter().fold(text, |text, (word, meaning)| text.replace(word, meaning))
}

fn once(engine: Engine, text: &str, table: u32) -> Statement {
    Statement { text: sql(engine, text).replace('#', &table.to_string()), ..Statement::default() }
}

const TABLES: [&str; 9] = [
    "warehouse# (w_id smallint NOT NULL, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), \
     w_city varchar(20), w_state char(2), w_zip char(9), w_tax decimal(4,2), w_ytd decimal(12,2), PRIMARY KEY (w_id))",
    "district# (d_id {tiny} NOT NULL, d_w_id smallint NOT NULL, d_name varchar(10), d_street_1 varchar(20), \
     d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9), d_tax decimal(4,2), \
     d_ytd decimal(12,2), d_next_o_id int, PRIMARY KEY (d_w_id, d_id))",
    "customer# (c_id int NOT NULL, c_d_id {tiny} NOT NULL, c_w_id smallint NOT NULL, c_first varchar(16), \
     c_middle char(2), c_last varchar(16), c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), \
     c_state char(2), c_zip char(9), c_phone char(16), c_since {time}, c_credit char(2), c_credit_lim bigint, \
     c_discount decimal(4,2), c_balance decimal(12,2), c_ytd_payment decimal(12,2), c_payment_cnt smallint, \
     c_delivery_cnt smallint, c_data text, PRIMARY KEY (c_w_id, c_d_id, c_id))",
    "history# (h_c_id int, h_c_d_id {tiny}, h_c_w_id smallint, h_d_id {tiny}, h_w_id smallint, h_date {time}, \
     h_amount decimal(6,2), h_data varchar(24))",
    "orders# (o_id int NOT NULL, o_d_id {tiny} NOT NULL, o_w_id smallint NOT NULL, o_c_id int, o_entry_d {time}, \
     o_carrier_id {tiny}, o_ol_cnt {tiny}, o_all_local {tiny}, PRIMARY KEY (o_w_id, o_d_id, o_id))",
    "new_orders# (no_o_id int NOT NULL, no_d_id {tiny} NOT NULL, no_w_id smallint NOT NULL, \
     PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
    "order_line# (ol_o_id int NOT NULL, ol_d_id {tiny} NOT NULL, ol_w_id smallint NOT NULL, ol_number {tiny} NOT NULL, \
     ol_i_id int, ol_supply_w_id smallint, ol_delivery_d {time}, ol_quantity {tiny}, ol_amount decimal(6,2), \
     ol_dist_info char(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    "stock# (s_i_id int NOT NULL, s_w_id smallint NOT NULL, s_quantity smallint, s_dist_01 char(24), \
     s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), \
     s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24), s_dist_10 char(24), s_ytd decimal(8,0), \
     s_order_cnt smallint, s_remote_cnt smallint, s_data varchar(50), PRIMARY KEY (s_w_id, s_i_id))",
    "item# (i_id int NOT NULL, i_im_id int, i_name varchar(24), i_price decimal(5,2), i_data varchar(50), \
     PRIMARY KEY (i_id))",
];

const INDEXES: [&str; 6] = [
    "idx_customer# ON customer# (c_w_id, c_d_id, c_last, c_first)",
    "idx_orders# ON orders# (o_w_id, o_d_id, o_c_id, o_id)",
    "fkey_stock_2# ON stock# (s_i_id)",
    "fkey_order_line_2# ON order_line# (ol_supply_w_id, ol_i_id)",
    "fkey_history_1# ON history# (h_c_w_id, h_c_d_id, h_c_id)",
    "fkey_history_2# ON history# (h_w_id, h_d_id)",
];

/// An address of six columns.
const ADDRESS: &str =
    "LEFT({m}, 10), LEFT({m}, 18), LEFT({m}, 18), LEFT({m}, 18), LEFT({m}, 2), '123411111'";

/// Statements to execute before the rest is inserted: tables, warehouses and districts.
#[must_use]
pub fn before_filling(of: &Settings) -> Vec<Statement> {
    let end = if of.engine == Engine::Mysql { " ENGINE = innodb" } else { "" };
    let warehouses = of.warehouses;
    (1..=of.tables)
        .flat_map(|table| {
            let made = TABLES.map(|text| format!("CREATE TABLE {text}{end}"));
            let rows = [
                format!(
                    "INSERT INTO warehouse# SELECT n.i, {ADDRESS}, {{r}} * 0.2, 300000 \
                     FROM {{n}} WHERE n.i <= {warehouses}"
                ),
                format!(
                    "INSERT INTO district# SELECT n.i, w_id, {ADDRESS}, {{r}} * 0.2, 30000, 3001 \
                     FROM warehouse#, {{n}} WHERE n.i <= {DISTRICTS}"
                ),
            ];
            made.into_iter().chain(rows).map(move |text| once(of.engine, &text, table))
        })
        .collect()
}

/// Statements to execute after it.
#[must_use]
pub fn after_filling(of: &Settings) -> Vec<Statement> {
    let indexes =
        |table| INDEXES.map(|text| once(of.engine, &format!("CREATE INDEX {text}"), table));
    let analyze = |table| {
        let names = TABLES.map(|text| text.split(' ').next().unwrap_or_default());
        let verb = if of.engine == Engine::Mysql { "ANALYZE TABLE" } else { "ANALYZE" };
        names.map(|name| once(of.engine, &format!("{verb} {name}"), table))
    };
    let tables = 1..=of.tables;
    // MySQL cannot prepare ANALYZE in every version, and keeps statistics by itself.
    let analyzes = of.engine == Engine::Postgresql;
    tables.clone().flat_map(indexes).chain(tables.filter(|_| analyzes).flat_map(analyze)).collect()
}

/// Operations that fill the tables: pieces of the items, then for each warehouse pieces of its stock, then districts.
pub struct Fill {
    settings: Settings,
    kinds: [String; 3],
    statements: Vec<Statement>,
}

fn statements(engine: Engine, table: u32) -> [Statement; OF_TABLES] {
    let name = |digit: &str| format!("RTRIM(SUBSTRING('{SYLLABLES}', {digit} % 10 * 5 + 1, 5))");
    let last =
        [name("CAST(FLOOR(k / 100) AS {int})"), name("CAST(FLOOR(k / 10) AS {int})"), name("k")];
    let drawn = format!(
        "((CAST(FLOOR({{r}} * 256) AS {{int}}) | CAST(FLOOR({{r}} * 1000) AS {{int}})) + {C_LOADED_NAME}) % 1000"
    );
    let here = "d_w_id = ? AND d_id = ?";
    let texts = [
        "INSERT INTO item# SELECT n.i + ?, 1 + FLOOR({r} * 10000), LEFT({m}, 24), 1 + {r} * 99, \
         LEFT(CONCAT({m}, {m}), 50) FROM {n}"
            .to_owned(),
        "INSERT INTO stock# SELECT n.i + ?, w_id, 10 + FLOOR({r} * 91), LEFT({m}, 24), LEFT({m}, 24), LEFT({m}, 24), \
         LEFT({m}, 24), LEFT({m}, 24), LEFT({m}, 24), LEFT({m}, 24), LEFT({m}, 24), LEFT({m}, 24), LEFT({m}, 24), \
         0, 0, 0, LEFT(CONCAT({m}, {m}), 50) FROM warehouse#, {n} WHERE w_id = ?"
            .to_owned(),
        format!(
            "INSERT INTO customer# SELECT i, d_id, d_w_id, LEFT({{m}}, 16), 'OE', CONCAT({}, {}, {}), LEFT({{m}}, 18), \
             LEFT({{m}}, 18), LEFT({{m}}, 18), LEFT({{m}}, 2), '123411111', LEFT({{m}}, 16), NOW(), \
             CASE WHEN {{r}} < 0.1 THEN 'BC' ELSE 'GC' END, 50000, {{r}} * 0.5, -10, 10, 1, 0, \
             CONCAT({{m}}, {{m}}, {{m}}, {{m}}, {{m}}, {{m}}, {{m}}, {{m}}, {{m}}, {{m}}, {{m}}, {{m}}) \
             FROM (SELECT d_id, d_w_id, n.i, CASE WHEN n.i <= 1000 THEN n.i - 1 ELSE {drawn} END AS k \
             FROM district#, {{n}} WHERE {here} AND n.i <= {CUSTOMERS} LIMIT {CUSTOMERS}) named",
            last[0], last[1], last[2]
        ),
        format!(
            "INSERT INTO history# SELECT n.i, d_id, d_w_id, d_id, d_w_id, NOW(), 10, LEFT({{m}}, 24) \
             FROM district#, {{n}} WHERE {here} AND n.i <= {CUSTOMERS}"
        ),
        // 1237 and 3000 have no common divisor: every customer has one order.
        format!(
            "INSERT INTO orders# SELECT n.i, d_id, d_w_id, (n.i * 1237 + d_id * 7) % {CUSTOMERS} + 1, NOW(), \
             CASE WHEN n.i < 2101 THEN 1 + FLOOR({{r}} * 10) END, 5 + FLOOR({{r}} * 11), 1 \
             FROM district#, {{n}} WHERE {here} AND n.i <= {CUSTOMERS}"
        ),
        "INSERT INTO new_orders# SELECT o_id, o_d_id, o_w_id FROM orders# \
         WHERE o_w_id = ? AND o_d_id = ? AND o_id > 2100"
            .to_owned(),
        format!(
            "INSERT INTO order_line# SELECT o_id, o_d_id, o_w_id, n.i, 1 + FLOOR({{r}} * {ITEMS}), o_w_id, \
             CASE WHEN o_id < 2101 THEN NOW() END, 5, CASE WHEN o_id < 2101 THEN 0 ELSE 0.01 + {{r}} * 9999.98 END, \
             LEFT({{m}}, 24) FROM orders#, {{n}} WHERE o_w_id = ? AND o_d_id = ? AND n.i <= 15 AND n.i <= o_ol_cnt"
        ),
    ];
    texts.map(|text| {
        let parameters = vec![Type::Integer; text.matches('?').count()];
        Statement { parameters, ..once(engine, &text, table) }
    })
}

impl Fill {
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let statements = (1..=settings.tables).flat_map(|table| statements(settings.engine, table));
        let kinds = ["items", "stock", "district"].map(str::to_owned);
        Self { settings, kinds, statements: statements.collect() }
    }

    /// Number of operations that fill all tables.
    #[must_use]
    pub fn operations(&self) -> u64 {
        let each = PIECES + u64::from(DISTRICTS);
        u64::from(self.settings.tables) * (PIECES + u64::from(self.settings.warehouses) * each)
    }
}

impl Workload for Fill {
    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn has_steps(&self) -> bool {
        true
    }

    fn draw(&self, stream: &mut Stream) -> Operation {
        let key = stream.next_turn();
        let warehouses = u64::from(self.settings.warehouses);
        let within = key / u64::from(self.settings.tables);
        let kind = match within.checked_sub(PIECES) {
            None => 0,
            Some(within) if within < warehouses * PIECES => 1,
            Some(_) => 2,
        };
        Operation { kind, step: 0, key, random: stream.next_random() }
    }

    fn request(&self, operation: &mut Operation, values: &mut Values) -> Request {
        let tables = u64::from(self.settings.tables);
        let (table, within) = (operation.key % tables, operation.key / tables);
        let warehouses = u64::from(self.settings.warehouses);
        let first = table as usize * OF_TABLES;
        let (statement, rows) = match operation.kind {
            0 => {
                values.integer((within * u64::from(ROWS)) as i64);
                (0, ROWS)
            }
            1 => {
                let within = within - PIECES;
                values.integer((within % PIECES * u64::from(ROWS)) as i64);
                values.integer((within / PIECES + 1) as i64);
                (1, ROWS)
            }
            _ => {
                let within = within - PIECES - warehouses * PIECES;
                values.integer((within / u64::from(DISTRICTS) + 1) as i64);
                values.integer((within % u64::from(DISTRICTS) + 1) as i64);
                let step = usize::from(operation.step);
                (2 + step, [CUSTOMERS, CUSTOMERS, CUSTOMERS, 900, 5 * CUSTOMERS][step])
            }
        };
        operation.step += 1;
        let last = operation.kind < 2 || usize::from(operation.step) == OF_DISTRICT;
        Request { statement: first + statement, expect: Expect { rows, ..Expect::default() }, last }
    }
}
