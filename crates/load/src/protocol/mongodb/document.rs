//! One whole document, looked at by name: what a server answers before the first request.

/// Elements of the topmost level; what is malformed is not there.
#[derive(Debug)]
pub(super) struct Document(Vec<u8>);

struct Element<'a> {
    kind: u8,
    name: &'a [u8],
    value: &'a [u8],
    /// What follows it.
    rest: &'a [u8],
}

impl Document {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        match self.find(name)? {
            (0x01, value) => Some(f64::from_le_bytes(value.try_into().ok()?) as i64),
            (0x10, value) => Some(i32::from_le_bytes(value.try_into().ok()?).into()),
            (0x12, value) => Some(i64::from_le_bytes(value.try_into().ok()?)),
            _ => None,
        }
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.find(name).filter(|(kind, _)| *kind == 0x08).map(|(_, value)| value == [1])
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        let (_, value) = self.find(name).filter(|(kind, _)| *kind == 0x02)?;
        let text = value.get(4..value.len() - 1)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// Of an array of nothing else.
    pub(super) fn texts(&self, name: &str) -> Option<Vec<&str>> {
        let (_, value) = self.find(name).filter(|(kind, _)| *kind == 0x04)?;
        let mut rest = value.get(4..)?;
        let mut found = Vec::new();
        while let Some(element) = element(rest).filter(|element| element.kind == 0x02) {
            let text = element.value.get(4..element.value.len() - 1)?;
            found.push(std::str::from_utf8(text).ok()?);
            rest = element.rest;
        }
        (rest == [0]).then_some(found)
    }

    pub(super) fn binary(&self, name: &str) -> Option<&[u8]> {
        let (_, value) = self.find(name).filter(|(kind, _)| *kind == 0x05)?;
        value.get(5..)
    }

    /// An element's kind and value.
    fn find(&self, name: &str) -> Option<(u8, &[u8])> {
        let mut rest = self.0.get(4..)?;
        loop {
            let element = element(rest)?;
            if element.name == name.as_bytes() {
                return Some((element.kind, element.value));
            }
            rest = element.rest;
        }
    }
}

/// The first one; `None`: none is left.
fn element(input: &[u8]) -> Option<Element<'_>> {
    let (&kind, behind) = input.split_first()?;
    let end = behind.iter().position(|&byte| byte == 0)?;
    let value = &behind[end + 1..];
    let (value, rest) = value.split_at_checked(size(kind, value)?)?;
    Some(Element { kind, name: &behind[..end], value, rest })
}

/// How many bytes a value of this kind takes.
fn size(kind: u8, value: &[u8]) -> Option<usize> {
    let length = || Some(u32::from_le_bytes(*value.first_chunk()?) as usize);
    match kind {
        0x01 | 0x09 | 0x11 | 0x12 => Some(8),
        0x10 => Some(4),
        0x08 => Some(1),
        0x07 => Some(12),
        0x13 => Some(16),
        0x06 | 0x0a | 0x7f | 0xff => Some(0),
        0x02 | 0x0d | 0x0e => length().filter(|&length| length > 0)?.checked_add(4),
        0x03 | 0x04 => length(),
        0x05 => length()?.checked_add(5),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::HEADER_BYTES;
    use super::super::command::Template;
    use super::*;
    use crate::protocol::Values;

    fn document() -> Vec<u8> {
        let text = r#"{"a": [1, {"b": "c"}], "n": {"$numberInt": ?}, "payload": {"$binary": ?}, "done": true, "errmsg": "bad", "m": ["x", "y"], "ok": 1}"#;
        let mut values = Values::default();
        values.integer(7);
        values.text(|out| out.extend_from_slice(b"xyz"));
        let mut out = Vec::new();
        Template::new(text, "d").expect("a document").encode(&values, 0, &mut out);
        out.split_off(HEADER_BYTES + 5)
    }

    #[test]
    fn elements_are_found_by_name() {
        let found = Document::new(document());
        assert_eq!((found.number("n"), found.number("ok")), (Some(7), Some(1)));
        assert_eq!(found.binary("payload"), Some(&b"xyz"[..]));
        assert_eq!(found.flag("done"), Some(true));
        assert_eq!((found.texts("m"), found.texts("a")), (Some(vec!["x", "y"]), None));
        assert_eq!(found.text("errmsg").as_deref(), Some("bad"));
        assert_eq!((found.number("b"), found.number("done"), found.text("n")), (None, None, None));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0..200_usize, byte in any::<u8>(), cut in 0..200_usize) {
            let mut bytes = document();
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(cut);
            let found = Document::new(bytes);
            for name in ["n", "payload", "done", "errmsg", "ok", "none"] {
                let _ = (found.number(name), found.binary(name), found.flag(name), found.text(name));
                let _ = found.texts(name);
            }
        }
    }
}
