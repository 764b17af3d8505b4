//! Names and scales of columns in OpenMetrics: base units, and counters that end in `_total`.

use crate::schema::{Column, Kind, Table, Ticks};

/// A column in OpenMetrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Without the `_total` that a counter's samples end with.
    pub family: String,
    pub kind: &'static str,
    /// `seconds` or `bytes`; empty for a plain count.
    pub unit: &'static str,
    /// Factor from a stored value to the metric's unit.
    pub scale: f64,
}

impl Metric {
    /// Name of the sample.
    #[must_use]
    pub fn sample(&self) -> String {
        let total = if self.kind == "counter" { "_total" } else { "" };
        format!("{}{total}", self.family)
    }
}

/// Suffix of a column → unit, and the factor to it.
#[allow(clippy::cast_precision_loss)] // USER_HZ is 100
fn unit_of(name: &str, ticks: Ticks) -> (&str, &'static str, f64) {
    let units = [
        ("_ns", "seconds", 1e-9),
        ("_us", "seconds", 1e-6),
        ("_ms", "seconds", 1e-3),
        ("_ticks", "seconds", 1.0 / ticks.user_hz.max(1) as f64),
        ("_sectors", "bytes", 512.0),
        ("_kib", "bytes", 1024.0),
        ("_bytes", "bytes", 1.0),
    ];
    for (suffix, unit, scale) in units {
        if let Some(stem) = name.strip_suffix(suffix) {
            return (stem, unit, scale);
        }
    }
    (name, "", 1.0)
}

/// `None` for columns that only contain the time when another was read.
#[must_use]
pub fn metric_of(table: &Table, column: &Column, ticks: Ticks) -> Option<Metric> {
    let kind = match column.kind {
        Kind::Counter => "counter",
        Kind::Gauge | Kind::Code => "gauge",
        Kind::Instant => return None,
    };
    // A number of missed ticks is not a time in ticks.
    let (stem, unit, scale) = match column.name {
        "missed_ticks" => (column.name, "", 1.0),
        name => unit_of(name, ticks),
    };
    let prefix = if table.name == "tick" { "probe" } else { table.name };
    let family = if unit.is_empty() {
        format!("tare_{prefix}_{stem}")
    } else {
        format!("tare_{prefix}_{stem}_{unit}")
    };
    Some(Metric { family, kind, unit, scale })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables;
    use std::collections::BTreeSet;

    const TICKS: Ticks = Ticks { jiffy_ns: 4_000_000, user_hz: 100 };

    fn named(table: &Table, name: &str) -> Metric {
        let column = table.columns.iter().find(|column| column.name == name).expect("a column");
        metric_of(table, column, TICKS).expect("a metric")
    }

    #[test]
    fn names_carry_base_units() {
        let usage = named(&tables::cgroup::TABLE, "usage_ns");
        assert_eq!(usage.sample(), "tare_cgroup_usage_seconds_total");
        let user = named(&tables::cpu::TABLE, "user_ticks");
        assert_eq!((user.sample().as_str(), user.unit), ("tare_cpu_user_seconds_total", "seconds"));
        assert!((user.scale - 0.01).abs() < f64::EPSILON);
        let memory = named(&tables::cgroup::TABLE, "memory_bytes");
        assert_eq!(memory.sample(), "tare_cgroup_memory_bytes");
        assert_eq!(named(&tables::tick::TABLE, "missed_ticks").sample(), "tare_probe_missed_ticks");
    }

    #[test]
    fn no_two_columns_share_a_family() {
        let metrics = tables::ALL.iter().flat_map(|table| {
            table.columns.iter().filter_map(|column| metric_of(table, column, TICKS))
        });
        let families: Vec<String> = metrics.map(|metric| metric.family).collect();
        let unique: BTreeSet<&String> = families.iter().collect();
        assert_eq!(unique.len(), families.len());
    }
}
