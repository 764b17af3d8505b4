//! A recorded list of arrivals.

use std::path::Path;

use crate::error::LoadError;

/// Nanoseconds from the start, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub times_ns: Vec<u64>,
}

/// Reads CSV whose first column is seconds, rising; a first line without a number is its head.
///
/// # Errors
/// Names the line that cannot be read.
pub fn read_trace(path: &Path) -> Result<Trace, LoadError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| LoadError::File { path: path.to_owned(), source })?;
    let wrong =
        |line: usize, reason: String| LoadError::Line { path: path.to_owned(), line, reason };
    let mut times_ns: Vec<u64> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let first = line.split(',').next().unwrap_or(line).trim();
        let seconds = match first.parse::<f64>() {
            Ok(seconds) if (0.0..1e9).contains(&seconds) => seconds,
            Err(_) if index == 0 => continue,
            _ => return Err(wrong(index + 1, format!("`{first}` is no time in seconds"))),
        };
        let at_ns = (seconds * 1e9).round() as u64;
        if times_ns.last().is_some_and(|&last| at_ns < last) {
            return Err(wrong(index + 1, "this arrival is before the one above".to_owned()));
        }
        times_ns.push(at_ns);
    }
    if times_ns.is_empty() {
        return Err(wrong(1, "there is no arrival in this file".to_owned()));
    }
    Ok(Trace { times_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<u64>, String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let trace = read_trace(file.path()).map_err(|error| error.to_string())?;
        Ok(trace.times_ns)
    }

    #[test]
    fn seconds_with_and_without_a_head() {
        assert_eq!(read("0\n0.5\n2\n"), Ok(vec![0, 500_000_000, 2_000_000_000]));
        assert_eq!(read("seconds,operation\n1.5,read\n"), Ok(vec![1_500_000_000]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        assert!(read("1\n0.5\n").expect_err("falls").contains("line 2: this arrival is before"));
        assert!(read("1\nx\n").expect_err("no number").contains("line 2: `x` is no time"));
        assert!(read("seconds\n").expect_err("empty").contains("no arrival"));
    }
}
