//! Declaration of columns: kind, step, and where the kernel has it.

/// How to interpret a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Increases as long as its target exists; only differences are meaningful.
    Counter,
    /// A level at one moment.
    Gauge,
    /// A reading of `CLOCK_MONOTONIC` (or the clock that the name says), nanoseconds.
    Instant,
    /// A number that stands for a word; the column's description lists them.
    Code,
}

impl Kind {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Instant => "instant",
            Self::Code => "code",
        }
    }
}

/// Step in which a counter of time increases, or its largest possible age when read.
///
/// Unless it is [`Quantum::Exact`], a difference of two readings is uncertain by one quantum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantum {
    /// Increases with each event.
    Exact,
    /// Increases at the scheduler's tick (4 ms at HZ = 250).
    Tick,
    /// Increases at the scheduler's tick and is reported in units of `1 / USER_HZ` (10 ms).
    UserTick,
}

/// Clock rates of the machine, from which quanta are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ticks {
    /// Length of a scheduler tick: the resolution of `CLOCK_MONOTONIC_COARSE`.
    pub jiffy_ns: u64,
    /// `sysconf(_SC_CLK_TCK)`: the unit of `*_ticks` columns is `1 / user_hz` seconds.
    pub user_hz: u64,
}

impl Quantum {
    /// Nanoseconds of one step on this machine; 0 if the counter is exact.
    #[must_use]
    pub fn nanoseconds(self, ticks: Ticks) -> u64 {
        let user_tick_ns = 1_000_000_000 / ticks.user_hz.max(1);
        match self {
            Self::Exact => 0,
            Self::Tick => ticks.jiffy_ns,
            // A unit of 10 ms that can change only every 4 ms changes every 8 or 12 ms.
            Self::UserTick => user_tick_ns.div_ceil(ticks.jiffy_ns.max(1)) * ticks.jiffy_ns.max(1),
        }
    }
}

/// One column of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Column {
    /// Name with its unit, as in the Parquet file.
    pub name: &'static str,
    pub kind: Kind,
    pub quantum: Quantum,
    /// The file and field it comes from; v1 and v2 separated by `|`.
    pub source: &'static str,
    pub meaning: &'static str,
}

/// One table of a trace: one Parquet file, one row per target and tick.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub meaning: &'static str,
    pub columns: &'static [Column],
}

/// The two columns between whose times a value was read: the last two instants in front of it, or
/// the last one twice if it is the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub t0: usize,
    pub t1: usize,
}

/// Window of the column at this position, from the kinds of all columns of its table.
#[must_use]
pub fn window_of(kinds: &[Kind], at: usize) -> Option<Window> {
    let t1 = (0..at).rev().find(|before| kinds[*before] == Kind::Instant)?;
    let t0 = if t1 > 0 && kinds[t1 - 1] == Kind::Instant { t1 - 1 } else { t1 };
    Some(Window { t0, t1 })
}

impl Table {
    /// The window of the column at this position.
    #[must_use]
    pub fn window_of(&self, at: usize) -> Option<Window> {
        let kinds: Vec<Kind> = self.columns.iter().map(|column| column.kind).collect();
        window_of(&kinds, at)
    }
}

/// Columns that every table begins with.
pub const KEYS: [Column; 3] = [
    Column {
        name: "tick",
        kind: Kind::Gauge,
        quantum: Quantum::Exact,
        source: "tare-probe",
        meaning: "number of the tick, counted from 0 at the start; missed ticks leave a gap",
    },
    Column {
        name: "target",
        kind: Kind::Gauge,
        quantum: Quantum::Exact,
        source: "tare-probe",
        meaning: "number of the target, explained in the table `target`",
    },
    Column {
        name: "name",
        kind: Kind::Gauge,
        quantum: Quantum::Exact,
        source: "command line",
        meaning: "name of the target; two incarnations of one container share it",
    },
];

/// Declares a table: a module with `TABLE` and the position of each column in a row.
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $table:literal {
            $( $id:ident $name:literal $kind:ident $quantum:ident $source:literal $meaning:literal; )+
        }
    ) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)] // names of constants, counted
        enum Position { $($id),+ }
        $(
            #[doc = $meaning]
            #[allow(clippy::doc_markdown)] // file names and C constants, meant for the reference page
            pub const $id: usize = Position::$id as usize;
        )+
        /// Cells in one row.
        pub const WIDTH: usize = [$($name),+].len();
        $(#[doc = $doc])+
        #[allow(clippy::doc_markdown)] // as above
        pub static TABLE: $crate::schema::Table = $crate::schema::Table {
            name: $table,
            meaning: concat!($($doc),+),
            columns: &[$(
                $crate::schema::Column {
                    name: $name,
                    kind: $crate::schema::Kind::$kind,
                    quantum: $crate::schema::Quantum::$quantum,
                    source: $source,
                    meaning: $meaning,
                }
            ),+],
        };
    };
}
pub(crate) use table;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_ticks_move_in_whole_scheduler_ticks() {
        let ticks = Ticks { jiffy_ns: 4_000_000, user_hz: 100 };
        assert_eq!(Quantum::UserTick.nanoseconds(ticks), 12_000_000);
        assert_eq!(Quantum::Tick.nanoseconds(ticks), 4_000_000);
        assert_eq!(Quantum::Exact.nanoseconds(ticks), 0);
    }

    #[test]
    fn user_ticks_equal_the_unit_where_the_tick_divides_it() {
        let ticks = Ticks { jiffy_ns: 1_000_000, user_hz: 100 };
        assert_eq!(Quantum::UserTick.nanoseconds(ticks), 10_000_000);
    }
}
