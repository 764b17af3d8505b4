//! Bytes as text: two hexadecimal digits each.

use crate::Failure;

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let pairs = bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    pairs.map(char::from).collect()
}

/// # Errors
/// The text is not an even number of hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Result<Vec<u8>, Failure> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return Err("not an even number of hexadecimal digits".into());
    }
    (0..text.len()).step_by(2).map(|at| Ok(u8::from_str_radix(&text[at..at + 2], 16)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&all)).ok(), Some(all));
    }

    #[test]
    fn half_a_byte_is_refused() {
        assert!(from_hex("abc").is_err());
        assert!(from_hex("zz").is_err());
        assert!(from_hex("é").is_err());
    }
}
