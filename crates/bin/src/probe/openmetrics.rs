//! The board as OpenMetrics text (OpenMetrics 1.0).

use std::fmt::Write;

use tare_probe::sink::board::Board;
use tare_record::header::{Header, Target};
use tare_record::metric::{self, Metric};
use tare_record::schema::Window;
use tare_record::tables::{self, tick};

/// All families that have a value now. A sample carries the time at which the kernel was read, so
/// that `rate()` divides by the time that really passed.
pub(crate) fn text(board: &Board) -> String {
    let mut page = String::new();
    let Some(header) = &board.header else { return "# EOF\n".to_owned() };
    let realtime = RealTime::of(board, header);
    for (table_at, table) in tables::ALL.iter().enumerate() {
        let targets: Vec<&Target> = board.targets_in(table_at as u32).collect();
        for (column_at, column) in table.columns.iter().enumerate() {
            let Some(metric) = metric::metric_of(table, column, header.ticks) else { continue };
            let samples =
                Samples { board, table: table_at as u32, column: column_at, metric: &metric };
            samples.write(
                &targets,
                table.window_of(column_at),
                &realtime,
                column.meaning,
                &mut page,
            );
        }
    }
    page.push_str("# EOF\n");
    page
}

/// Turns monotonic time into wall clock by the newest tick.
struct RealTime {
    ahead_ns: u64,
}

impl RealTime {
    fn of(board: &Board, header: &Header) -> Self {
        let at = |column| board.value(tables::TICK, tare_probe::sampler::PROBE_TARGET, column);
        let ahead = at(tick::REALTIME_NS)
            .zip(at(tick::WOKE_NS))
            .and_then(|(real, woke)| real.checked_sub(woke));
        let at_start = header.started_realtime_ns.saturating_sub(header.started_monotonic_ns);
        Self { ahead_ns: ahead.unwrap_or(at_start) }
    }

    #[allow(clippy::cast_precision_loss)] // milliseconds survive
    fn seconds(&self, monotonic_ns: u64) -> f64 {
        (self.ahead_ns + monotonic_ns) as f64 / 1e9
    }
}

struct Samples<'a> {
    board: &'a Board,
    table: u32,
    column: usize,
    metric: &'a Metric,
}

impl Samples<'_> {
    #[allow(clippy::cast_precision_loss)] // a scraper knows no other numbers
    fn write(
        &self,
        targets: &[&Target],
        window: Option<Window>,
        realtime: &RealTime,
        meaning: &str,
        page: &mut String,
    ) {
        let mut is_first = true;
        for target in targets {
            let Some(value) = self.board.value(self.table, target.id, self.column) else {
                continue;
            };
            if std::mem::take(&mut is_first) {
                self.write_head(meaning, page);
            }
            let (name, value) = (escaped(&target.name), value as f64 * self.metric.scale);
            let _ = write!(
                page,
                "{}{{name=\"{name}\",target=\"{}\"}} {value}",
                self.metric.sample(),
                target.id
            );
            let read_at =
                window.and_then(|window| self.board.value(self.table, target.id, window.t1));
            if let Some(read_at_ns) = read_at {
                let _ = write!(page, " {:.3}", realtime.seconds(read_at_ns));
            }
            page.push('\n');
        }
    }

    fn write_head(&self, meaning: &str, page: &mut String) {
        let family = &self.metric.family;
        let _ = writeln!(page, "# TYPE {family} {}", self.metric.kind);
        if !self.metric.unit.is_empty() {
            let _ = writeln!(page, "# UNIT {family} {}", self.metric.unit);
        }
        let _ = writeln!(page, "# HELP {family} {}", escaped(meaning));
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_label() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }

    #[test]
    fn an_empty_board_is_a_whole_exposition() {
        assert_eq!(text(&Board::default()), "# EOF\n");
    }
}
