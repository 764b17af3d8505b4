//! One value of a row: a 63-bit number, or absent.

/// A value as it travels from the sampling thread to the journal.
pub type Cell = u64;

/// Not read, or not reported by the kernel; different from zero.
///
/// No counter reaches this value: the parsers refuse numbers above `i64::MAX`.
pub const ABSENT: Cell = u64::MAX;

/// Cell for a number that may be missing.
#[must_use]
pub fn from_option(value: Option<u64>) -> Cell {
    value.unwrap_or(ABSENT)
}

/// Number in a cell; `None` if it is absent.
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
