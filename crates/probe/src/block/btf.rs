//! Reads the kernel's type information (Documentation/bpf/btf.rst) for the offsets of struct members.

use std::io;

const MAGIC: u16 = 0xeb9f;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_TYPEDEF: u32 = 8;

/// Types of the running kernel; type 0 is `void` and not in the list.
pub(super) struct Btf<'a> {
    types: Vec<Type<'a>>,
    strings: &'a [u8],
}

#[derive(Clone, Copy)]
struct Type<'a> {
    name: u32,
    kind: u32,
    has_bitfields: bool,
    members: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Bytes that follow a type of this kind with so many members.
fn trailer(kind: u32, members: usize) -> Option<usize> {
    Some(match kind {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,
        4 | 5 | 15 | 19 => members * 12,
        6 | 13 => members * 8,
        _ => return None,
    })
}

impl<'a> Btf<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> io::Result<Self> {
        Self::parse_all(bytes).ok_or_else(|| io::Error::other("BTF of an unknown form"))
    }

    fn parse_all(bytes: &'a [u8]) -> Option<Self> {
        if u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let head = word(bytes, 4)? as usize;
        let section = |offset_at, length_at| {
            let start = head + word(bytes, offset_at)? as usize;
            bytes.get(start..start + word(bytes, length_at)? as usize)
        };
        let mut rest: &[u8] = section(8, 12)?;
        let strings = section(16, 20)?;
        let mut types = Vec::new();
        while !rest.is_empty() {
            let info = word(rest, 4)?;
            let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            let end = 12 + trailer(kind, count)?;
            types.push(Type {
                name: word(rest, 0)?,
                kind,
                has_bitfields: info >> 31 == 1,
                members: rest.get(12..end)?,
            });
            rest = &rest[end..];
        }
        Some(Self { types, strings })
    }

    fn name(&self, offset: u32) -> &[u8] {
        let rest = self.strings.get(offset as usize..).unwrap_or_default();
        &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())]
    }

    /// Number of a typedef.
    pub(super) fn typedef(&self, name: &str) -> io::Result<u32> {
        self.position(name, KIND_TYPEDEF)
            .map(|at| at as u32 + 1)
            .ok_or_else(|| io::Error::other(format!("this kernel has no {name}")))
    }

    /// Offset in bytes of a member, looked for in unnamed structs and unions too.
    pub(super) fn offset(&self, of: &str, member: &str) -> io::Result<i16> {
        self.position(of, KIND_STRUCT)
            .and_then(|at| self.member_bits(self.types[at], member.as_bytes()))
            .and_then(|bits| i16::try_from(bits / 8).ok())
            .ok_or_else(|| io::Error::other(format!("this kernel's struct {of} has no {member}")))
    }

    fn position(&self, name: &str, kind: u32) -> Option<usize> {
        self.types
            .iter()
            .position(|known| known.kind == kind && self.name(known.name) == name.as_bytes())
    }

    fn member_bits(&self, of: Type<'_>, wanted: &[u8]) -> Option<u32> {
        for member in of.members.chunks_exact(12) {
            let (name, inner, raw) = (word(member, 0)?, word(member, 4)?, word(member, 8)?);
            let bits = if of.has_bitfields { raw & 0x00ff_ffff } else { raw };
            if self.name(name) == wanted {
                return Some(bits);
            }
            let unnamed = (name == 0).then(|| self.types.get(inner as usize - 1)).flatten();
            if let Some(inner) =
                unnamed.filter(|inner| [KIND_STRUCT, KIND_UNION].contains(&inner.kind))
                && let Some(within) = self.member_bits(*inner, wanted)
            {
                return Some(bits + within);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct outer { u64 first; union { u32 a; u64 b; }; u32 last; }` and `typedef … alias`.
    fn sample() -> Vec<u8> {
        let strings = b"\0outer\0first\0a\0b\0last\0alias\0";
        let words: Vec<u32> = [
            // 1: union without a name, two members
            [0, 5 << 24 | 2, 8].as_slice(),
            &[13, 0, 0, 15, 0, 0],
            // 2: struct outer
            &[1, 4 << 24 | 3, 24],
            &[7, 0, 0, 0, 1, 64, 17, 0, 128],
            // 3: typedef alias
            &[22, 8 << 24, 2],
        ]
        .concat();
        let types: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, types.len() as u32, types.len() as u32, strings.len() as u32] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&types);
        bytes.extend_from_slice(strings);
        bytes
    }

    #[test]
    fn members_are_found_in_unnamed_unions() {
        let bytes = sample();
        let btf = Btf::parse(&bytes).expect("well formed");
        assert_eq!(btf.offset("outer", "first").expect("there"), 0);
        assert_eq!(btf.offset("outer", "b").expect("there"), 8);
        assert_eq!(btf.offset("outer", "last").expect("there"), 16);
        assert!(btf.offset("outer", "none").is_err());
        assert_eq!(btf.typedef("alias").expect("there"), 3);
    }

    #[test]
    fn what_is_no_btf_is_refused() {
        assert!(Btf::parse(b"").is_err());
        assert!(Btf::parse(&[0; 64]).is_err());
        let bytes = sample();
        assert!(Btf::parse(&bytes[..40]).is_err());
    }
}
