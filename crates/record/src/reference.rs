//! The reference page of the trace's tables, generated from their declaration.

use std::fmt::Write;

use crate::metric::{self, Metric};
use crate::schema::{Column, KEYS, Quantum, Ticks};
use crate::tables;

/// Any value: names do not depend on the machine's clock.
const ANY_TICKS: Ticks = Ticks { jiffy_ns: 4_000_000, user_hz: 100 };

/// Markdown of all tables, for `docs/reference/trace-format.md`.
#[must_use]
pub fn markdown() -> String {
    let mut page = String::new();
    let _ = writeln!(page, "### Keys of every table\n");
    heading(&mut page);
    for column in &KEYS {
        line(&mut page, column, None);
    }
    for table in tables::ALL {
        let _ = writeln!(page, "\n### `{}.parquet`\n\n{}\n", table.name, table.meaning.trim());
        heading(&mut page);
        for column in table.columns {
            line(&mut page, column, metric::metric_of(table, column, ANY_TICKS));
        }
    }
    page
}

fn heading(page: &mut String) {
    let _ = writeln!(
        page,
        "| column | kind | moves | source | meaning | OpenMetrics |\n|---|---|---|---|---|---|"
    );
}

fn line(page: &mut String, column: &Column, metric: Option<Metric>) {
    let moves = match column.quantum {
        Quantum::Exact => "",
        Quantum::Tick => "each scheduler tick",
        Quantum::UserTick => "each scheduler tick, in units of 1 / USER_HZ",
    };
    let sample = metric.map_or(String::new(), |metric| format!("`{}`", metric.sample()));
    let source = column.source.replace('|', "\\|");
    let _ = writeln!(
        page,
        "| `{}` | {} | {moves} | {source} | {} | {sample} |",
        column.name,
        column.kind.word(),
        column.meaning
    );
}
