//! The newest values of every target, for the terminal and for scrapers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tare_record::header::{Event, Footer, Header, Target, What};
use tare_record::inspect::Inspector;
use tare_record::rate::{self, Rate, Reading};
use tare_record::row::Row;
use tare_record::schema::Kind;
use tare_record::{ABSENT, Cell, RecordError, tables};

use super::Sink;

/// Shortest time for rates on the board: over a shorter one, the quantum would dominate.
const RATE_SPAN_NS: u64 = 900_000_000;

/// The newest values of one table and target.
#[derive(Clone, Debug)]
pub struct Latest {
    /// For each column, the newest value that was not absent.
    pub cells: Vec<Cell>,
    /// The values from about a second before.
    earlier: Vec<Cell>,
    /// Values that become `earlier` after the span has passed, and when they were read.
    marked: Vec<Cell>,
    marked_at_ns: u64,
}

/// All newest values.
#[derive(Clone, Debug, Default)]
pub struct Board {
    pub header: Option<Header>,
    pub targets: BTreeMap<u32, Target>,
    /// By table and target.
    pub rows: BTreeMap<(u32, u32), Latest>,
    pub events: u64,
    pub last_event: Option<Event>,
    inspector: Inspector,
}

/// A board that the pump writes and other threads read.
#[derive(Clone, Debug, Default)]
pub struct SharedBoard(Arc<Mutex<Board>>);

impl SharedBoard {
    /// Locks the board; the pump waits meanwhile, so keep the lock only briefly.
    pub fn look(&self) -> MutexGuard<'_, Board> {
        // A reader that panicked has not written anything.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    /// Newest value of a column.
    #[must_use]
    pub fn value(&self, table: u32, target: u32, column: usize) -> Option<u64> {
        let cell = *self.rows.get(&(table, target))?.cells.get(column)?;
        (cell != ABSENT).then_some(cell)
    }

    /// Rate of a counter over about the last second.
    #[must_use]
    pub fn rate(&self, table: u32, target: u32, column: usize) -> Option<Rate> {
        let latest = self.rows.get(&(table, target))?;
        let ticks = self.header.as_ref()?.ticks;
        let declared = tables::ALL[table as usize];
        let window = declared.window_of(column)?;
        let reading = |cells: &[Cell]| {
            let [value, t0_ns, t1_ns] = [column, window.t0, window.t1].map(|at| cells[at]);
            let is_whole = ![value, t0_ns, t1_ns].contains(&ABSENT);
            is_whole.then_some(Reading { value, t0_ns, t1_ns })
        };
        let counter = &declared.columns[column];
        let quantum = rate::quantum_in_units(counter.name, counter.quantum, counter.kind, ticks);
        rate::between(reading(&latest.earlier)?, reading(&latest.cells)?, quantum)
    }

    /// Targets with rows in a table, by number.
    pub fn targets_in(&self, table: u32) -> impl Iterator<Item = &Target> {
        self.rows
            .keys()
            .filter(move |(of, _)| *of == table)
            .filter_map(|(_, target)| self.targets.get(target))
    }

    fn note(&mut self, event: Event) {
        self.events += 1;
        self.last_event = Some(event);
    }

    fn put(&mut self, row: Row<'_>) {
        let mut events = Vec::new();
        self.inspector.look(row, |event| events.push(event));
        for event in events {
            self.note(event);
        }
        let width = row.cells.len();
        let latest = self.rows.entry((row.key.table, row.key.target)).or_insert_with(|| Latest {
            cells: vec![ABSENT; width],
            earlier: vec![ABSENT; width],
            marked: row.cells.to_vec(),
            marked_at_ns: 0,
        });
        for (newest, cell) in latest.cells.iter_mut().zip(row.cells) {
            if *cell != ABSENT {
                *newest = *cell;
            }
        }
        let now_ns = taken_at_ns(row);
        if now_ns >= latest.marked_at_ns + RATE_SPAN_NS {
            latest.earlier.clone_from(&latest.marked);
            latest.marked.clone_from(&latest.cells);
            latest.marked_at_ns = now_ns;
        }
    }
}

/// When a row was read: its first instant, in whichever column.
fn taken_at_ns(row: Row<'_>) -> u64 {
    let columns = tables::ALL[row.key.table as usize].columns;
    let instants = columns.iter().zip(row.cells).filter(|(column, _)| column.kind == Kind::Instant);
    instants.map(|(_, cell)| *cell).find(|cell| *cell != ABSENT).unwrap_or_default()
}

impl Sink for SharedBoard {
    fn begin(&mut self, header: &Header) -> Result<(), RecordError> {
        self.look().header = Some(header.clone());
        Ok(())
    }

    fn target(&mut self, target: &Target) -> Result<(), RecordError> {
        self.look().targets.insert(target.id, target.clone());
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        let mut board = self.look();
        if event.what == What::Vanished {
            board.targets.remove(&event.target);
            board.rows.retain(|(_, target), _| *target != event.target);
            board.inspector.forget(event.target);
        }
        board.note(event.clone());
        Ok(())
    }

    fn row(&mut self, row: Row<'_>) {
        self.look().put(row);
    }

    fn flush(&mut self, _upto: u64) -> Result<(), RecordError> {
        Ok(())
    }

    fn is_watched(&self) -> bool {
        true
    }

    fn finish(&mut self, _footer: &Footer) -> Result<(), RecordError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_record::row::Key;
    use tare_record::tables::{cgroup, process};

    fn header() -> Header {
        Header {
            trace_version: 1,
            probe_version: String::new(),
            rate_hz: 10.0,
            host_rate_hz: 10.0,
            period_ns: 100_000_000,
            ticks: tare_record::schema::Ticks { jiffy_ns: 4_000_000, user_hz: 100 },
            page_bytes: 4096,
            kernel: String::new(),
            cpus: 1,
            boot_id: String::new(),
            scheduler: String::new(),
            scheduler_refused: None,
            cgroup_layout: String::new(),
            block_source: String::new(),
            block_refused: None,
            tail: None,
            tail_refused: None,
            started_monotonic_ns: 0,
            started_realtime_ns: 0,
        }
    }

    fn put(board: &mut SharedBoard, tick: u64, usage_ns: Cell) {
        let mut cells = [ABSENT; cgroup::WIDTH];
        cells[cgroup::USAGE_T0_NS] = 5_000_000_000 + tick * 100_000_000;
        cells[cgroup::USAGE_T1_NS] = cells[cgroup::USAGE_T0_NS] + 1000;
        cells[cgroup::USAGE_NS] = usage_ns;
        board.row(Row { key: Key { table: tables::CGROUP, target: 4, tick }, cells: &cells });
    }

    #[test]
    fn a_rate_spans_about_a_second_and_has_bounds() {
        let mut board = SharedBoard::default();
        board.begin(&header()).expect("begins");
        for tick in 0..=25 {
            put(&mut board, tick, tick * 50_000_000);
        }
        let rate = board.look().rate(tables::CGROUP, 4, cgroup::USAGE_NS).expect("a rate");
        assert!((rate.per_s / 1e9 - 0.5).abs() < 1e-3, "{rate:?}");
        assert!(rate.high_per_s - rate.low_per_s < 2e7, "{rate:?}");
    }

    #[test]
    fn a_process_whose_row_begins_with_its_number_has_rates_too() {
        let mut board = SharedBoard::default();
        board.begin(&header()).expect("begins");
        for tick in 0..=25 {
            let mut cells = [ABSENT; process::WIDTH];
            cells[process::PID] = 812;
            cells[process::CPU_T0_NS] = 5_000_000_000 + tick * 100_000_000;
            cells[process::CPU_T1_NS] = cells[process::CPU_T0_NS] + 1000;
            cells[process::CPU_NS] = tick * 20_000_000;
            board.row(Row { key: Key { table: tables::PROCESS, target: 4, tick }, cells: &cells });
        }
        let rate = board.look().rate(tables::PROCESS, 4, process::CPU_NS).expect("a rate");
        assert!((rate.per_s / 1e9 - 0.2).abs() < 1e-3, "{rate:?}");
    }

    #[test]
    fn an_absent_value_keeps_the_one_before() {
        let mut board = SharedBoard::default();
        put(&mut board, 0, 7);
        put(&mut board, 1, ABSENT);
        assert_eq!(board.look().value(tables::CGROUP, 4, cgroup::USAGE_NS), Some(7));
        assert_eq!(board.look().value(tables::CGROUP, 4, cgroup::WRITES), None);
    }
}
