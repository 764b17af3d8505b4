//! Statements that are known in advance, and the values that each request puts into them.

/// A command or an SQL statement; `?` stands for a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    pub text: String,
    pub parameters: Vec<Type>,
    /// Request to send for each value of its reply, in turn, with the value in place of `?`.
    pub each: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Integer,
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Integer(i64),
    Text(&'a [u8]),
}

#[derive(Clone, Copy, Debug)]
enum Stored {
    Integer(i64),
    Text { start: u32, end: u32 },
}

/// The values of one request; their memory is reused for the next.
#[derive(Clone, Debug, Default)]
pub struct Values {
    stored: Vec<Stored>,
    bytes: Vec<u8>,
}

impl Values {
    pub fn clear(&mut self) {
        self.stored.clear();
        self.bytes.clear();
    }

    pub fn integer(&mut self, value: i64) {
        self.stored.push(Stored::Integer(value));
    }

    /// Adds a text, which `write` appends to the given bytes.
    pub fn text(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len() as u32;
        write(&mut self.bytes);
        self.stored.push(Stored::Text { start, end: self.bytes.len() as u32 });
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.stored.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Value<'_>> {
        self.stored.iter().map(|stored| match *stored {
            Stored::Integer(value) => Value::Integer(value),
            Stored::Text { start, end } => Value::Text(&self.bytes[start as usize..end as usize]),
        })
    }
}

/// A server's error code, such as `WRONGTYPE`, `1146` or `42P01`; longer ones are cut.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label([u8; 16]);

impl Label {
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let mut label = [0; 16];
        let length = text.len().min(label.len());
        label[..length].copy_from_slice(&text[..length]);
        Self(label)
    }

    #[must_use]
    pub fn number(number: u32) -> Self {
        let mut digits = Vec::with_capacity(10);
        decimal(&mut digits, u64::from(number));
        Self::new(&digits)
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        formatter.pad(&String::from_utf8_lossy(&self.0[..end]))
    }
}

impl std::fmt::Debug for Label {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Label({self})")
    }
}

/// Appends a number in decimal digits.
pub fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends a signed number in decimal digits.
pub fn signed_decimal(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    decimal(out, number.unsigned_abs());
}

/// A value's contribution to the sum of a reply's contents (FNV-1a, then a finalizer).
///
/// Digests are summed, as the server may return the fields of a hash in any order.
#[must_use]
pub fn digest(value: &[u8]) -> u64 {
    let mut digest = Digest::default();
    digest.add(value);
    digest.finish()
}

/// [`digest`] of a value that arrives in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub fn add(&mut self, piece: &[u8]) {
        for &byte in piece {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    #[must_use]
    pub fn finish(self) -> u64 {
        crate::random::Random::new(self.0).next_u64()
    }
}

/// Days from 1970 on to a day such as `2026-11-30`.
#[must_use]
pub fn days(text: &str) -> Option<i64> {
    let mut parts = text.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let exists = (1..=12).contains(&month) && (1..=31).contains(&day) && year.abs() < 1_000_000;
    if !exists || parts.next().is_some() {
        return None;
    }
    // Years from March on, so that a leap day is the last one (Hinnant, chrono-Compatible Low-Level Date Algorithms).
    let year = year - i64::from(month <= 2);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(365 * year + leap_days + of_year - 719_468)
}

/// JSON in turn outside of strings and a string with its quotation marks; `None`: one is not closed.
#[must_use]
pub fn json_parts(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(start) = rest.find('"') {
        let mut escaped = false;
        let end = rest[start + 1..].find(|letter| {
            let ends = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        })?;
        let (string, behind) = rest[start..].split_at(end + 2);
        parts.extend([&rest[..start], string]);
        rest = behind;
    }
    parts.push(rest);
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_numbers() {
        for number in [0, 1, 9, 10, 12_345, u64::MAX] {
            let mut out = Vec::new();
            decimal(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
        let mut out = Vec::new();
        signed_decimal(&mut out, i64::MIN);
        assert_eq!(out, i64::MIN.to_string().into_bytes());
    }

    #[test]
    fn a_long_code_is_cut() {
        assert_eq!(Label::new(b"ERR").to_string(), "ERR");
        assert_eq!(Label::new(&[b'x'; 40]).to_string(), "x".repeat(16));
    }

    #[test]
    fn strings_of_json_end_at_their_own_mark() {
        let parts = ["{", r#""a\"b""#, ": ?, ", r#""c\\""#, ": 1}"];
        assert_eq!(json_parts(&parts.concat()).as_deref(), Some(&parts[..]));
        assert_eq!(json_parts(r#"{"a\"}"#), None);
    }

    #[test]
    fn a_digest_does_not_depend_on_the_pieces() {
        let mut digest_in_pieces = Digest::default();
        digest_in_pieces.add(b"ab");
        digest_in_pieces.add(b"c");
        assert_eq!(digest_in_pieces.finish(), digest(b"abc"));
    }
}
