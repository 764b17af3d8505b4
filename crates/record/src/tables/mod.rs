//! Every table of a trace. The order is part of the journal's format: add at the end.

pub mod cgroup;
pub mod cpu;
pub mod disk;
pub mod interface;
pub mod memory;
pub mod perf;
pub mod pressure;
pub mod process;
pub mod system;
pub mod tick;

use crate::schema::Table;

/// All tables; a row refers to its table by the position here.
pub static ALL: [&Table; 10] = [
    &tick::TABLE,
    &cpu::TABLE,
    &system::TABLE,
    &memory::TABLE,
    &pressure::TABLE,
    &disk::TABLE,
    &interface::TABLE,
    &cgroup::TABLE,
    &process::TABLE,
    &perf::TABLE,
];

pub const TICK: u32 = 0;
pub const CPU: u32 = 1;
pub const SYSTEM: u32 = 2;
pub const MEMORY: u32 = 3;
pub const PRESSURE: u32 = 4;
pub const DISK: u32 = 5;
pub const INTERFACE: u32 = 6;
pub const CGROUP: u32 = 7;
pub const PROCESS: u32 = 8;
pub const PERF: u32 = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Kind, Window};

    #[test]
    fn positions_name_their_tables() {
        let named = [
            (TICK, "tick"),
            (CPU, "cpu"),
            (SYSTEM, "system"),
            (MEMORY, "memory"),
            (PRESSURE, "pressure"),
            (DISK, "disk"),
            (INTERFACE, "interface"),
            (CGROUP, "cgroup"),
            (PROCESS, "process"),
            (PERF, "perf"),
        ];
        for (at, name) in named {
            assert_eq!(ALL[at as usize].name, name);
        }
    }

    #[test]
    fn every_column_tells_its_unit_or_is_a_plain_count() {
        let units = ["_ns", "_us", "_ms", "_ticks", "_bytes", "_sectors", "_pages"];
        for column in ALL.iter().flat_map(|table| table.columns) {
            let has_unit = units.iter().any(|unit| column.name.ends_with(unit));
            let is_instant = column.kind == Kind::Instant;
            assert!(!is_instant || column.name.ends_with("_ns"), "{}", column.name);
            assert!(has_unit || !column.meaning.is_empty(), "{}", column.name);
        }
    }

    #[test]
    fn names_are_unique_within_a_table() {
        for table in ALL {
            let mut names: Vec<_> = table.columns.iter().map(|column| column.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.columns.len(), "{}", table.name);
        }
    }

    #[test]
    fn a_value_belongs_to_the_window_in_front_of_it() {
        let window = cgroup::TABLE.window_of(cgroup::USAGE_NS);
        assert_eq!(window, Some(Window { t0: cgroup::USAGE_T0_NS, t1: cgroup::USAGE_T1_NS }));
        let window = cgroup::TABLE.window_of(cgroup::BLOCK_WRITES);
        assert_eq!(window, Some(Window { t0: cgroup::BLOCK_AT_NS, t1: cgroup::BLOCK_AT_NS }));
        assert_eq!(process::TABLE.window_of(process::PID), None);
    }

    #[test]
    fn every_counter_has_a_window() {
        for table in ALL {
            for (at, column) in table.columns.iter().enumerate() {
                let has_window = table.window_of(at).is_some();
                assert!(
                    has_window || column.kind != Kind::Counter,
                    "{}.{}",
                    table.name,
                    column.name
                );
            }
        }
    }
}
