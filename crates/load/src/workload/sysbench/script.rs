//! Statements of each script's events, in order.

/// sysbench's OLTP scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    PointSelect,
    ReadOnly,
    ReadWrite,
    WriteOnly,
    UpdateIndex,
    UpdateNonIndex,
    Insert,
    Delete,
}

/// Number of an event's statements of each kind; names and defaults are sysbench's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub point_selects: u8,
    /// Whether there are range queries, of all four kinds.
    pub range_selects: bool,
    pub simple_ranges: u8,
    pub sum_ranges: u8,
    pub order_ranges: u8,
    pub distinct_ranges: u8,
    pub index_updates: u8,
    pub non_index_updates: u8,
    pub delete_inserts: u8,
    /// Whether every statement is its own transaction.
    pub skip_trx: bool,
}

/// A statement of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Begin,
    Commit,
    Rollback,
    Point,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    /// Insert the row that was deleted before.
    Reinsert,
    /// Of a new row.
    Insert,
}

/// A statement with its group: one table is drawn for each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) part: Part,
    pub(super) group: u8,
}

impl Script {
    pub const ALL: [Self; 8] = [
        Self::PointSelect,
        Self::ReadOnly,
        Self::ReadWrite,
        Self::WriteOnly,
        Self::UpdateIndex,
        Self::UpdateNonIndex,
        Self::Insert,
        Self::Delete,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PointSelect => "oltp_point_select",
            Self::ReadOnly => "oltp_read_only",
            Self::ReadWrite => "oltp_read_write",
            Self::WriteOnly => "oltp_write_only",
            Self::UpdateIndex => "oltp_update_index",
            Self::UpdateNonIndex => "oltp_update_non_index",
            Self::Insert => "oltp_insert",
            Self::Delete => "oltp_delete",
        }
    }

    fn reads(self) -> bool {
        matches!(self, Self::ReadOnly | Self::ReadWrite)
    }

    fn writes(self) -> bool {
        matches!(self, Self::WriteOnly | Self::ReadWrite)
    }

    /// Steps without the transaction. `None`: more than an event may have here.
    pub(super) fn steps(self, counts: &Counts) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        let mut group = 0;
        let mut add = |count: u8, parts: &[Part]| {
            for _ in 0..count {
                steps.extend(parts.iter().map(|&part| Step { part, group }));
            }
            group += 1;
        };
        if self.reads() {
            add(counts.point_selects, &[Part::Point]);
            if counts.range_selects {
                add(counts.simple_ranges, &[Part::SimpleRange]);
                add(counts.sum_ranges, &[Part::SumRange]);
                add(counts.order_ranges, &[Part::OrderRange]);
                add(counts.distinct_ranges, &[Part::DistinctRange]);
            }
        }
        if self.writes() {
            add(counts.index_updates, &[Part::IndexUpdate]);
            add(counts.non_index_updates, &[Part::NonIndexUpdate]);
            add(counts.delete_inserts, &[Part::Delete, Part::Reinsert]);
        }
        match self {
            Self::PointSelect => add(1, &[Part::Point]),
            Self::UpdateIndex => add(counts.index_updates, &[Part::IndexUpdate]),
            Self::UpdateNonIndex => add(counts.non_index_updates, &[Part::NonIndexUpdate]),
            Self::Insert => add(1, &[Part::Insert]),
            Self::Delete => add(1, &[Part::Delete]),
            Self::ReadOnly | Self::ReadWrite | Self::WriteOnly => {}
        }
        (steps.len() <= MOST_STEPS).then_some(steps)
    }

    /// Whether an event is one transaction.
    pub(super) fn is_transaction(self, counts: &Counts) -> bool {
        (self.reads() || self.writes()) && !counts.skip_trx
    }
}

/// Limit of steps, which are numbered by a byte; `BEGIN`, `COMMIT` and `ROLLBACK` are added to them.
const MOST_STEPS: usize = 250;
