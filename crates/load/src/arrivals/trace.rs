//! Recorded arrivals, with the kinds of their operations if they were recorded.

use std::path::Path;

use crate::error::LoadError;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Nanoseconds from the start, in order.
    pub times_ns: Vec<u64>,
    /// Kind of each arrival's operation, as an index into the workload's; empty: kinds are drawn.
    pub kinds: Vec<u8>,
}

/// Reads CSV whose first column is seconds, ascending; a first line without a number is the heading.
///
/// A column `operation`, if the heading names one, has the kind of each arrival's operation, one of `kinds`.
///
/// # Errors
/// A line cannot be read; the message names it.
pub fn read_trace(path: &Path, kinds: &[String]) -> Result<Trace, LoadError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| LoadError::File { path: path.to_owned(), source })?;
    let wrong = |line: usize, reason: &str| LoadError::Line {
        path: path.to_owned(),
        line,
        reason: reason.to_owned(),
    };
    let mut trace = Trace::default();
    let mut operations = None;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut cells = line.split(',').map(str::trim);
        let first = cells.next().unwrap_or_default();
        let seconds = match first.parse::<f64>() {
            Ok(seconds) if (0.0..1e9).contains(&seconds) => seconds,
            Err(_) if index == 0 => {
                operations = cells.position(|name| name.eq_ignore_ascii_case("operation"));
                continue;
            }
            _ => return Err(wrong(index + 1, &format!("`{first}` is no time in seconds"))),
        };
        let at_ns = (seconds * 1e9).round() as u64;
        if trace.times_ns.last().is_some_and(|&last| at_ns < last) {
            return Err(wrong(index + 1, "this arrival is before the one above"));
        }
        trace.times_ns.push(at_ns);
        if let Some(column) = operations {
            let name = cells.nth(column).unwrap_or_default();
            let kind = kinds.iter().position(|kind| kind == name).ok_or_else(|| {
                let known = kinds.join(", ");
                wrong(index + 1, &format!("`{name}` is none of the operations: {known}"))
            })?;
            trace.kinds.push(kind as u8);
        }
    }
    if trace.times_ns.is_empty() {
        return Err(wrong(1, "there is no arrival in this file"));
    }
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Trace, String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let kinds = ["read".to_owned(), "write".to_owned()];
        read_trace(file.path(), &kinds).map_err(|error| error.to_string())
    }

    fn times(text: &str) -> Vec<u64> {
        read(text).expect("a trace").times_ns
    }

    #[test]
    fn seconds_with_and_without_a_head() {
        assert_eq!(times("0\n0.5\n2\n"), [0, 500_000_000, 2_000_000_000]);
        assert_eq!(times("seconds,key\n1.5,read\n"), [1_500_000_000]);
        assert!(read("seconds,key\n1.5,read\n").expect("a trace").kinds.is_empty());
    }

    #[test]
    fn operations_are_those_of_their_column() {
        let trace = read("at,key,Operation\n0,k1,write\n1,k2, read\n1,,write\n").expect("a trace");
        assert_eq!(trace.kinds, [1, 0, 1]);
        assert_eq!(trace.times_ns.len(), 3);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = |text: &str| read(text).expect_err("refused");
        assert!(error("1\n0.5\n").contains("line 2: this arrival is before"));
        assert!(error("1\nx\n").contains("line 2: `x` is no time"));
        assert!(error("seconds\n").contains("no arrival"));
        let unknown = error("seconds,operation\n1,read\n2,scan\n");
        assert!(
            unknown.contains("line 3: `scan` is none of the operations: read, write"),
            "{unknown}"
        );
        assert!(error("seconds,operation\n1\n").contains("line 2: `` is none"));
    }
}
