//! One value of a row: a 63-bit number, or absent.

/// A value as it travels from the sampling thread to the journal.
pub type Cell = u64;

/// "Not read, or the kernel did not say": never the same thing as zero.
///
/// No counter reaches it: the parsers refuse numbers above `i64::MAX`.
pub const ABSENT: Cell = u64::MAX;

/// The cell of a number that may be missing.
#[must_use]
pub fn from_option(value: Option<u64>) -> Cell {
    value.unwrap_or(ABSENT)
}

/// The number in a cell, or `None` where it is absent.
#[must_use]
pub fn to_option(cell: Cell) -> Option<u64> {
    (cell != ABSENT).then_some(cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_is_not_zero() {
        assert_eq!(to_option(ABSENT), None);
        assert_eq!(to_option(0), Some(0));
        assert_eq!(from_option(None), ABSENT);
        assert_eq!(from_option(Some(7)), 7);
    }
}
