//! What rows show by themselves is found when a journal is converted: once, in order, with nothing stored of it.

use std::collections::BTreeMap;
use std::path::Path;

use tare_record::header::{Header, Target, TargetKind};
use tare_record::journal::Writer;
use tare_record::parquet::read::{self, Value};
use tare_record::parquet::{self, OnDamage};
use tare_record::row::{Key, Row};
use tare_record::schema::Ticks;
use tare_record::tables::{self, tick};
use tare_record::{ABSENT, RecordError};

const SECOND_NS: u64 = 1_000_000_000;

fn header() -> Header {
    Header {
        trace_version: tare_record::TRACE_VERSION,
        probe_version: String::new(),
        rate_hz: 1.0,
        host_rate_hz: 1.0,
        period_ns: SECOND_NS,
        ticks: Ticks { jiffy_ns: 4_000_000, user_hz: 100 },
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

/// `what` and `detail` of each event, and when it was.
fn events(directory: &Path) -> Vec<(String, String, i64)> {
    let mut found = Vec::new();
    read::read_table::<RecordError>(
        &directory.join("event.parquet"),
        |columns| {
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            assert_eq!(names, ["tick", "target", "name", "at_ns", "what", "detail"]);
            Ok(())
        },
        |row| {
            let [_, _, _, Value::Number(at_ns), Value::Text(what), Value::Text(detail)] = row
            else {
                panic!("{row:?}")
            };
            found.push((what.clone(), detail.clone(), *at_ns));
            Ok(())
        },
    )
    .expect("a readable table");
    found
}

#[test]
fn a_machine_that_slept_and_missed_ticks_is_told_of_from_its_rows() {
    let home = tempfile::tempdir().expect("a directory");
    let journal = home.path().join("journal.tare");
    let mut writer = Writer::create(&journal, &header()).expect("a journal");
    let (name, detail) = ("tare-probe".to_owned(), String::new());
    let (kind, sources) = (TargetKind::Probe, BTreeMap::new());
    let target = Target { id: 0, kind, name, detail, opened_ns: 0, sources };
    writer.target(&target).expect("written");
    for number in 0..10_u64 {
        let mut cells = [ABSENT; tick::WIDTH];
        let woke_ns = (100 + number) * SECOND_NS;
        let asleep_ns = if number < 4 { 0 } else { 30 * SECOND_NS };
        cells[tick::DUE_NS] = woke_ns - 5;
        cells[tick::WOKE_NS] = woke_ns;
        cells[tick::BOOTTIME_NS] = woke_ns + asleep_ns;
        cells[tick::MISSED_TICKS] = if number == 7 { 2 } else { 0 };
        cells[tick::DROPPED_ROWS] = 0;
        writer
            .push(Row { key: Key { table: tables::TICK, target: 0, tick: number }, cells: &cells });
        writer.flush(number).expect("written");
    }
    drop(writer);
    let trace = parquet::convert(&journal, home.path(), OnDamage::Stop).expect("converted");
    assert_eq!(trace.rows["tick"], 10);
    let at = |second: i64| second * SECOND_NS as i64 - 5;
    assert_eq!(
        events(home.path()),
        [
            ("suspended".to_owned(), format!("{} ns", 30 * SECOND_NS), at(104)),
            ("missed".to_owned(), "2 ticks before this one".to_owned(), at(107)),
        ]
    );
}
