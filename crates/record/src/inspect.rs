//! Finds events in rows: counters that decreased, missed ticks, suspends, dropped rows.

use std::collections::HashMap;

use crate::cell::to_option;
use crate::header::{Event, What};
use crate::row::Row;
use crate::schema::{Kind, Table};
use crate::tables::{self, tick};
use crate::{ABSENT, Cell};

/// Smallest difference between the two clocks that counts as a suspend.
const SUSPEND_FLOOR_NS: u64 = 1_000_000;

/// Keeps the last value of each counter.
#[derive(Clone, Debug)]
pub struct Inspector {
    /// Positions of the counters of each table, together for the CPU caches.
    counters: Vec<Box<[u8]>>,
    newest: HashMap<(u32, u32), Vec<Cell>>,
    suspends: Suspends,
    dropped_rows: u64,
}

/// Finds in rows of the probe's own table how long the machine was suspended before them.
#[derive(Clone, Debug, Default)]
pub struct Suspends {
    boot_minus_monotonic_ns: Option<u64>,
    pub total_ns: u64,
}

impl Suspends {
    /// By how much `CLOCK_BOOTTIME` gained on `CLOCK_MONOTONIC` since the last tick, if it did.
    pub fn before(&mut self, cells: &[Cell]) -> Option<u64> {
        let ahead_ns = to_option(cells[tick::BOOTTIME_NS])?.checked_sub(cells[tick::WOKE_NS])?;
        let before_ns = self.boot_minus_monotonic_ns.replace(ahead_ns)?;
        let asleep_ns = ahead_ns.checked_sub(before_ns).filter(|gap| *gap >= SUSPEND_FLOOR_NS)?;
        self.total_ns += asleep_ns;
        Some(asleep_ns)
    }
}

impl Default for Inspector {
    fn default() -> Self {
        let counters_of = |table: &&'static Table| -> Box<[u8]> {
            let columns = table.columns.iter().enumerate();
            columns
                .filter(|(_, column)| column.kind == Kind::Counter)
                .filter_map(|(at, _)| u8::try_from(at).ok())
                .collect()
        };
        Self {
            counters: tables::ALL.iter().map(counters_of).collect(),
            newest: HashMap::new(),
            suspends: Suspends::default(),
            dropped_rows: 0,
        }
    }
}

impl Inspector {
    /// Inspects one row and calls `found` with each event.
    pub fn look(&mut self, row: Row<'_>, mut found: impl FnMut(Event)) {
        if row.key.table == tables::TICK {
            self.look_at_tick(row, &mut found);
        }
        let newest = self
            .newest
            .entry((row.key.table, row.key.target))
            .or_insert_with(|| vec![ABSENT; row.cells.len()]);
        for &at in &self.counters[row.key.table as usize] {
            let at = usize::from(at);
            let (cell, before) = (row.cells[at], newest[at]);
            if cell == ABSENT {
                continue;
            }
            if before != ABSENT && cell < before {
                found(fall(row, at, before));
            }
            newest[at] = cell;
        }
    }

    /// Forgets a target that has ended.
    pub fn forget(&mut self, target: u32) {
        self.newest.retain(|(_, known), _| *known != target);
    }

    fn look_at_tick(&mut self, row: Row<'_>, found: &mut impl FnMut(Event)) {
        let mut tell = |what, detail| {
            found(Event {
                tick: row.key.tick,
                target: row.key.target,
                at_ns: at_ns(row),
                what,
                detail,
            });
        };
        let missed = row.cells[tick::MISSED_TICKS];
        if missed > 0 {
            tell(What::Missed, format!("{missed} ticks before this one"));
        }
        let dropped = row.cells[tick::DROPPED_ROWS];
        if dropped > self.dropped_rows {
            tell(What::Dropped, format!("{} rows", dropped - self.dropped_rows));
            self.dropped_rows = dropped;
        }
        if let Some(asleep_ns) = self.suspends.before(row.cells) {
            tell(What::Suspended, format!("{asleep_ns} ns"));
        }
    }
}

fn fall(row: Row<'_>, column: usize, before: Cell) -> Event {
    let table = tables::ALL[row.key.table as usize];
    let name = table.columns[column].name;
    Event {
        tick: row.key.tick,
        target: row.key.target,
        at_ns: at_ns(row),
        what: What::CounterFell,
        detail: format!("{}.{name}: {before} → {}", table.name, row.cells[column]),
    }
}

/// Start of a row's first window: its first instant.
fn at_ns(row: Row<'_>) -> u64 {
    let columns = tables::ALL[row.key.table as usize].columns;
    columns
        .iter()
        .zip(row.cells)
        .find(|(column, cell)| column.kind == Kind::Instant && **cell != ABSENT)
        .map_or(0, |(_, cell)| *cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Key;
    use crate::tables::{cgroup, cpu};

    fn events(inspector: &mut Inspector, table: u32, cells: &[Cell]) -> Vec<Event> {
        let mut events = Vec::new();
        let key = Key { table, target: 3, tick: 9 };
        inspector.look(Row { key, cells }, |event| events.push(event));
        events
    }

    #[test]
    fn a_counter_that_falls_is_told_with_both_values() {
        let mut inspector = Inspector::default();
        let mut cells = [ABSENT; cpu::WIDTH];
        cells[cpu::T0_NS] = 77;
        cells[cpu::IOWAIT_TICKS] = 100;
        assert_eq!(events(&mut inspector, tables::CPU, &cells), []);
        cells[cpu::IOWAIT_TICKS] = 98;
        let found = events(&mut inspector, tables::CPU, &cells);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, What::CounterFell);
        assert_eq!(found[0].detail, "cpu.iowait_ticks: 100 → 98");
        assert_eq!(found[0].at_ns, 77);
    }

    #[test]
    fn a_gauge_may_fall_and_an_absent_counter_is_no_fall() {
        let mut inspector = Inspector::default();
        let mut cells = [ABSENT; cgroup::WIDTH];
        cells[cgroup::MEMORY_BYTES] = 10;
        cells[cgroup::WRITTEN_BYTES] = 10;
        events(&mut inspector, tables::CGROUP, &cells);
        cells[cgroup::MEMORY_BYTES] = 5;
        cells[cgroup::WRITTEN_BYTES] = ABSENT;
        assert_eq!(events(&mut inspector, tables::CGROUP, &cells), []);
        cells[cgroup::WRITTEN_BYTES] = 9;
        assert_eq!(
            events(&mut inspector, tables::CGROUP, &cells).len(),
            1,
            "compared across the gap"
        );
    }

    fn tick_cells(woke_ns: u64, boottime_ns: u64, missed: u64) -> [Cell; tick::WIDTH] {
        let mut cells = [ABSENT; tick::WIDTH];
        cells[tick::WOKE_NS] = woke_ns;
        cells[tick::BOOTTIME_NS] = boottime_ns;
        cells[tick::MISSED_TICKS] = missed;
        cells[tick::DROPPED_ROWS] = 0;
        cells
    }

    #[test]
    fn a_suspend_shows_as_boottime_running_ahead() {
        let mut inspector = Inspector::default();
        assert_eq!(events(&mut inspector, tables::TICK, &tick_cells(1_000, 5_000, 0)), []);
        let hour_ns = 3_600_000_000_000;
        let found = events(&mut inspector, tables::TICK, &tick_cells(2_000, 6_000 + hour_ns, 0));
        assert_eq!(found[0].what, What::Suspended);
        assert_eq!(inspector.suspends.total_ns, hour_ns);
        assert_eq!(
            events(&mut inspector, tables::TICK, &tick_cells(3_000, 7_100 + hour_ns, 0)),
            []
        );
    }

    #[test]
    fn missed_ticks_are_told() {
        let mut inspector = Inspector::default();
        events(&mut inspector, tables::TICK, &tick_cells(1_000, 1_000, 0));
        let found = events(&mut inspector, tables::TICK, &tick_cells(9_000, 9_000, 7));
        assert_eq!(found[0].what, What::Missed);
        assert_eq!(found[0].detail, "7 ticks before this one");
    }
}
