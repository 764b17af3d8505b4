//! Requests of RESP, which are arrays of bulk strings, in the input so far.

/// Most words of one request, and most bytes of each.
const MOST_WORDS: usize = 16;
const MOST_BYTES: usize = 1 << 20;
/// Longest count or length, with its sign and line end.
const LONGEST_LINE: usize = 24;

/// Start of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// A whole request, and its length in bytes.
    Whole { words: Vec<&'a [u8]>, consumed: usize },
    /// Not whole yet.
    Partial,
}

/// First request of `input`. The error says what the client did wrong; nothing after it can be read.
pub(super) fn next(input: &[u8]) -> Result<Next<'_>, &'static str> {
    let mut at = 0;
    let Some(count) = number(input, &mut at, b'*')? else { return Ok(Next::Partial) };
    if count == 0 || count > MOST_WORDS {
        return Err("a request has 1 to 16 words");
    }
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let Some(length) = number(input, &mut at, b'$')? else { return Ok(Next::Partial) };
        if length > MOST_BYTES {
            return Err("a word has 1 MiB at most");
        }
        let Some(rest) = input.get(at..at + length + 2) else { return Ok(Next::Partial) };
        let (word, end) = rest.split_at(length);
        if end != b"\r\n" {
            return Err("a word is not as long as announced");
        }
        words.push(word);
        at += length + 2;
    }
    Ok(Next::Whole { words, consumed: at })
}

/// Number on a line that begins with `kind`; `None` if the line has no end yet.
fn number(input: &[u8], at: &mut usize, kind: u8) -> Result<Option<usize>, &'static str> {
    let rest = &input[*at..];
    let Some(&first) = rest.first() else { return Ok(None) };
    if first != kind {
        return Err("requests are arrays of bulk strings");
    }
    let Some(end) = rest.iter().take(LONGEST_LINE).position(|&byte| byte == b'\n') else {
        return if rest.len() < LONGEST_LINE { Ok(None) } else { Err("a line is too long") };
    };
    let line = rest[1..end].strip_suffix(b"\r").ok_or("a line ends with CR LF")?;
    let parsed = decimal(line).ok_or("a count is not a number")?;
    *at += end + 1;
    Ok(Some(parsed))
}

/// Parses a whole number without a sign.
pub(super) fn decimal(text: &[u8]) -> Option<usize> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_is_taken_with_the_bytes_that_it_has() {
        let input = b"*2\r\n$3\r\nGET\r\n$2\r\n10\r\n*1\r\n";
        let found = next(input).expect("it is whole");
        assert_eq!(found, Next::Whole { words: vec![b"GET", b"10"], consumed: input.len() - 4 });
    }

    #[test]
    fn what_is_cut_anywhere_waits_for_more() {
        let input = b"*2\r\n$3\r\nGET\r\n$2\r\n10\r\n";
        for end in 0..input.len() {
            assert_eq!(next(&input[..end]), Ok(Next::Partial), "cut after {end}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for bad in [
            &b"GET 10\r\n"[..],
            b"*0\r\n",
            b"*17\r\n",
            b"*-1\r\n",
            b"*1\n",
            b"*1\r\n$2\r\nabc\r\n",
            b"*1\r\n$99999999\r\n",
            b"*99999999999999999999999999999",
        ] {
            assert!(next(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(input in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = next(&input);
        }
    }
}
