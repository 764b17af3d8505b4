//! sysbench's tables, as its `prepare` makes them, so that each program can use the other's tables.

use crate::protocol::Statement;
use crate::random::Random;

/// Database whose SQL is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Mysql,
    Postgresql,
}

/// Ten groups of eleven digits, with dashes between them.
pub(super) const C_BYTES: u32 = 119;

/// Groups of eleven random digits.
pub(super) fn digits(groups: u32, random: &mut Random, out: &mut Vec<u8>) {
    for group in 0..groups {
        if group > 0 {
            out.push(b'-');
        }
        let mut number = random.below(100_000_000_000);
        let start = out.len();
        out.resize(start + 11, b'0');
        for digit in out[start..].iter_mut().rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
    }
}

/// Statements to execute before rows are inserted.
#[must_use]
pub fn before_filling(engine: Engine, tables: u32) -> Vec<Statement> {
    let (id, options) = match engine {
        Engine::Mysql => ("INTEGER NOT NULL AUTO_INCREMENT", " ENGINE = innodb"),
        Engine::Postgresql => ("SERIAL", ""),
    };
    (1..=tables)
        .map(|table| {
            once(format!(
                "CREATE TABLE sbtest{table} (id {id}, k INTEGER DEFAULT '0' NOT NULL, \
                 c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, \
                 PRIMARY KEY (id)){options}"
            ))
        })
        .collect()
}

/// Statements to execute after rows are inserted, for the index on `k` and the number of the next row.
#[must_use]
pub fn after_filling(engine: Engine, tables: u32, table_size: u64) -> Vec<Statement> {
    (1..=tables)
        .flat_map(|table| {
            let index = once(format!("CREATE INDEX k_{table} ON sbtest{table}(k)"));
            let next = (engine == Engine::Postgresql)
                .then(|| once(format!("SELECT setval('sbtest{table}_id_seq', {table_size})")));
            std::iter::once(index).chain(next)
        })
        .collect()
}

fn once(text: String) -> Statement {
    Statement { text, ..Statement::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_form_of_sysbench() {
        let mut random = Random::new(1);
        for (groups, length) in [(10, 119), (5, 59)] {
            let mut out = Vec::new();
            digits(groups, &mut random, &mut out);
            assert_eq!(out.len(), length);
            for (place, &byte) in out.iter().enumerate() {
                let dash = place % 12 == 11;
                assert!(if dash { byte == b'-' } else { byte.is_ascii_digit() });
            }
        }
    }
}
