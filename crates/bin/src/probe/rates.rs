//! Turns rows of counters into rows of rates with bounds.

use std::collections::HashMap;

use tare_record::parquet::read::{FileColumn, Value};
use tare_record::rate::{self, Reading};
use tare_record::schema::{Kind, Window, window_of};

use crate::shown::Shown;

/// Keeps each target's newest reading of each counter.
pub(crate) struct Rates {
    columns: Vec<FileColumn>,
    windows: Vec<Option<Window>>,
    newest: HashMap<i64, Vec<Option<Reading>>>,
    target_at: Option<usize>,
}

impl Rates {
    pub(crate) fn new(columns: &[FileColumn]) -> Self {
        let kinds: Vec<Kind> =
            columns.iter().map(|column| column.kind.unwrap_or(Kind::Gauge)).collect();
        Self {
            windows: (0..columns.len()).map(|at| window_of(&kinds, at)).collect(),
            target_at: columns.iter().position(|column| column.name == "target"),
            columns: columns.to_vec(),
            newest: HashMap::new(),
        }
    }

    /// Columns of the rates: three for each counter, none for instants, the others unchanged.
    pub(crate) fn names(&self) -> Vec<String> {
        self.columns
            .iter()
            .flat_map(|column| match column.kind {
                Some(Kind::Counter) => ["per_s", "per_s_low", "per_s_high"]
                    .map(|what| format!("{}_{what}", column.name))
                    .to_vec(),
                Some(Kind::Instant) => Vec::new(),
                _ => vec![column.name.clone()],
            })
            .collect()
    }

    /// Row of rates since each counter's previous reading; `None` for a target's first row.
    pub(crate) fn next(&mut self, row: &[Value]) -> Option<Vec<Shown>> {
        let target = match self.target_at.map(|at| &row[at]) {
            Some(Value::Number(target)) => *target,
            _ => 0,
        };
        let is_first = !self.newest.contains_key(&target);
        let newest = self.newest.entry(target).or_insert_with(|| vec![None; row.len()]);
        let mut shown = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            match column.kind {
                Some(Kind::Counter) => {
                    let reading = reading_of(row, at, self.windows[at]);
                    let before = newest[at];
                    if reading.is_some() {
                        newest[at] = reading;
                    }
                    let rate =
                        before.zip(reading).and_then(|(a, b)| rate::between(a, b, column.quantum));
                    shown.extend(match rate {
                        Some(rate) => {
                            [rate.per_s, rate.low_per_s, rate.high_per_s].map(Shown::Real)
                        }
                        None => [Shown::Missing, Shown::Missing, Shown::Missing],
                    });
                }
                Some(Kind::Instant) => {}
                _ => shown.push(Shown::from(&row[at])),
            }
        }
        (!is_first).then_some(shown)
    }
}

fn reading_of(row: &[Value], at: usize, window: Option<Window>) -> Option<Reading> {
    let number = |at: usize| match row[at] {
        Value::Number(number) => u64::try_from(number).ok(),
        _ => None,
    };
    let window = window?;
    Some(Reading { value: number(at)?, t0_ns: number(window.t0)?, t1_ns: number(window.t1)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: Option<Kind>) -> FileColumn {
        FileColumn { name: name.to_owned(), kind, quantum: 0 }
    }

    fn rates() -> Rates {
        Rates::new(&[
            column("target", None),
            column("t0_ns", Some(Kind::Instant)),
            column("t1_ns", Some(Kind::Instant)),
            column("reads", Some(Kind::Counter)),
            column("pids", Some(Kind::Gauge)),
        ])
    }

    fn row(target: i64, t_ns: i64, reads: Option<i64>) -> [Value; 5] {
        let reads = reads.map_or(Value::Missing, Value::Number);
        [Value::Number(target), Value::Number(t_ns), Value::Number(t_ns), reads, Value::Number(3)]
    }

    #[test]
    fn a_counter_becomes_a_rate_with_bounds() {
        assert_eq!(
            rates().names(),
            ["target", "reads_per_s", "reads_per_s_low", "reads_per_s_high", "pids"]
        );
    }

    #[test]
    fn a_missing_reading_does_not_break_the_next_rate() {
        let mut rates = rates();
        assert_eq!(rates.next(&row(1, 0, Some(10))), None);
        let gap = rates.next(&row(1, 1_000_000_000, None)).expect("a row");
        assert_eq!(gap[1], Shown::Missing);
        let after = rates.next(&row(1, 2_000_000_000, Some(30))).expect("a row");
        assert_eq!(after[1], Shown::Real(10.0));
    }

    #[test]
    fn targets_do_not_mix() {
        let mut rates = rates();
        rates.next(&row(1, 0, Some(10)));
        assert_eq!(rates.next(&row(2, 1_000_000_000, Some(99))), None);
    }
}
