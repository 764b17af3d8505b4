//! Filling of the tables, with many rows per statement.

use super::table::digits;
use super::{Draw, Settings};
use crate::protocol::{Statement, Type, Values};
use crate::workload::{Expect, Operation, Request, Stream, Workload};

/// Rows of one statement, about 20 kB.
const ROWS: u64 = 100;

/// Operations that each insert the rows of one statement.
pub struct Fill {
    tables: u64,
    table_size: u64,
    draw: Draw,
    kinds: [String; 1],
    /// For each table, the statement with all rows, then one for the remaining rows, if any.
    statements: Vec<Statement>,
}

impl Fill {
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let rest = settings.table_size % ROWS;
        let statements = (1..=settings.tables).flat_map(|table| {
            let rows = [ROWS, rest].into_iter().filter(|&rows| rows > 0);
            rows.map(move |rows| insert(table, rows as usize))
        });
        Self {
            tables: settings.tables.into(),
            table_size: settings.table_size,
            draw: settings.draw,
            kinds: ["fill".to_owned()],
            statements: statements.collect(),
        }
    }

    /// Number of operations that fill all tables.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.tables * self.table_size.div_ceil(ROWS)
    }
}

fn insert(table: u32, rows: usize) -> Statement {
    let values = vec!["(?, ?, ?, ?)"; rows].join(", ");
    let row = [Type::Integer, Type::Integer, Type::Text, Type::Text];
    Statement {
        text: format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES {values}"),
        parameters: row.repeat(rows),
        ..Statement::default()
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
        false
    }

    fn draw(&self, stream: &mut Stream) -> Operation {
        let key = stream.next_turn();
        Operation { kind: 0, step: 0, key, random: stream.next_random() }
    }

    fn request(&self, operation: &mut Operation, values: &mut Values) -> Request {
        let of_table = self.table_size.div_ceil(ROWS);
        let (table, piece) = (operation.key / of_table, operation.key % of_table);
        let first = piece * ROWS + 1;
        let rows = ROWS.min(self.table_size + 1 - first);
        for id in first..first + rows {
            values.integer(id as i64);
            let k = self.draw.id(self.table_size, &mut operation.random);
            values.integer(k as i64);
            values.text(|out| digits(10, &mut operation.random, out));
            values.text(|out| digits(5, &mut operation.random, out));
        }
        let each = self.statements.len() as u64 / self.tables;
        let statement = table * each + u64::from(rows < ROWS && each > 1);
        let expect = Expect { rows: rows as u32, ..Expect::default() };
        Request { statement: statement as usize, expect, last: true }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Counts, Engine, Script};
    use super::*;
    use crate::protocol::Value;

    fn fill(tables: u32, table_size: u64) -> Fill {
        let counts = Counts {
            point_selects: 1,
            range_selects: false,
            simple_ranges: 0,
            sum_ranges: 0,
            order_ranges: 0,
            distinct_ranges: 0,
            index_updates: 0,
            non_index_updates: 0,
            delete_inserts: 0,
            skip_trx: true,
        };
        let (script, engine, draw) = (Script::PointSelect, Engine::Mysql, Draw::Uniform);
        let range_size = 1;
        Fill::new(&Settings { script, engine, tables, table_size, range_size, draw, counts })
    }

    #[test]
    fn every_row_of_every_table_is_inserted_once() {
        for (size, connections) in [(250, 3), (200, 1), (70, 2), (1, 1)] {
            let fill = fill(2, size);
            let mut found = Vec::new();
            for connection in 0..connections {
                let mut stream = Stream::new(1, connection, connections);
                let all = fill.operations();
                let share = all / connections + u64::from(connection < all % connections);
                for _ in 0..share {
                    let mut values = Values::default();
                    let request = fill.request(&mut fill.draw(&mut stream), &mut values);
                    let statement = &fill.statements()[request.statement];
                    assert_eq!(statement.parameters.len(), values.len());
                    assert_eq!(values.len(), 4 * request.expect.rows as usize);
                    let table = statement.text[18..19].to_owned();
                    for value in values.iter().step_by(4) {
                        let Value::Integer(id) = value else { panic!("an id is a number") };
                        found.push((table.clone(), id as u64));
                    }
                }
            }
            found.sort_unstable();
            let expected: Vec<(String, u64)> = (1..=2)
                .flat_map(|table| (1..=size).map(move |id| (table.to_string(), id)))
                .collect();
            assert_eq!(found, expected);
        }
    }
}
