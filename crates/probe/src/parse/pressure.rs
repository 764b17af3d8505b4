//! Pressure files: `some avg10=… total=N` and, but for a whole host's CPU in old kernels, `full …`.

use super::fields::{leading_number, lines};

/// Totals in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub some_us: Option<u64>,
    pub full_us: Option<u64>,
}

#[must_use]
pub fn totals(bytes: &[u8]) -> Totals {
    let mut totals = Totals::default();
    for line in lines(bytes) {
        let total = memchr::memmem::find(line, b"total=")
            .and_then(|at| leading_number(&line[at + b"total=".len()..]))
            .map(|(value, _)| value);
        if line.starts_with(b"some") {
            totals.some_us = total;
        } else if line.starts_with(b"full") {
            totals.full_us = total;
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_totals_are_read() {
        let text = include_bytes!("../../tests/data/host/pressure_io");
        assert_eq!(totals(text), Totals { some_us: Some(5_307_059), full_us: Some(5_028_400) });
    }

    #[test]
    fn a_missing_full_line_is_no_zero() {
        let text = b"some avg10=0.73 avg60=0.17 avg300=0.21 total=11761792\n";
        assert_eq!(totals(text), Totals { some_us: Some(11_761_792), full_us: None });
    }
}
