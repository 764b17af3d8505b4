//! Iteration over lines, and over the words of a line.

/// Number at the start of the bytes, and its length in bytes.
///
/// `None` without a digit, or above `i64::MAX`: a trace stores signed numbers.
#[must_use]
pub fn leading_number(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    let mut length = 0;
    for &byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        length += 1;
    }
    (length > 0 && i64::try_from(value).is_ok()).then_some((value, length))
}

/// Number in a file with only one number and a newline, such as `cpuacct.usage`.
#[must_use]
pub fn whole_number(bytes: &[u8]) -> Option<u64> {
    let (value, length) = leading_number(bytes)?;
    bytes[length..].iter().all(u8::is_ascii_whitespace).then_some(value)
}

/// Words of a line, separated by spaces.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    #[must_use]
    pub fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// Next word as a number; any other word is skipped and returned as `None`.
    pub fn number(&mut self) -> Option<u64> {
        self.skip_blanks();
        if let Some((value, length)) = leading_number(self.rest)
            && self.rest.get(length).is_none_or(u8::is_ascii_whitespace)
        {
            self.rest = &self.rest[length..];
            return Some(value);
        }
        self.word();
        None
    }

    /// Next word; empty at the end of the line.
    pub fn word(&mut self) -> &'a [u8] {
        self.skip_blanks();
        let end = self.rest.iter().position(u8::is_ascii_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn skip_blanks(&mut self) {
        let blanks = self.rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.rest = &self.rest[blanks..];
    }
}

/// Lines without their ends.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_ends_where_its_digits_end() {
        assert_eq!(leading_number(b"42 kB"), Some((42, 2)));
        assert_eq!(leading_number(b"kB"), None);
    }

    #[test]
    fn a_number_beyond_63_bits_is_missing() {
        assert_eq!(whole_number(b"9223372036854775807\n"), Some(i64::MAX as u64));
        assert_eq!(whole_number(b"9223372036854775808\n"), None);
        assert_eq!(whole_number(b"18446744073709551616\n"), None);
    }

    #[test]
    fn an_empty_file_is_no_zero() {
        assert_eq!(whole_number(b""), None);
        assert_eq!(whole_number(b"\n"), None);
        assert_eq!(whole_number(b"max\n"), None);
    }

    #[test]
    fn a_word_that_is_no_number_is_passed_over() {
        let mut words = Words::new(b"  7 max -3 9");
        let numbers = [words.number(), words.number(), words.number(), words.number()];
        assert_eq!(numbers, [Some(7), None, None, Some(9)]);
        assert_eq!(words.number(), None);
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let all: Vec<&[u8]> = lines(b"a\n\nb").collect();
        assert_eq!(all, [b"a".as_slice(), b"", b"b"]);
    }
}
