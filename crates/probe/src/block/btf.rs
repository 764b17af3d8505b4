//! Offsets of struct members, from the kernel's type information (Documentation/bpf/btf.rst).
//!
//! The file has several megabytes, so it is read in one pass that keeps only the few types that are needed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read, Seek, SeekFrom};

const MAGIC: u16 = 0xeb9f;
const KIND_POINTER: u32 = 2;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_TYPEDEF: u32 = 8;
const KIND_FUNCTION: u32 = 13;

/// Depth to which unnamed structs in structs are followed.
const DEEPEST: usize = 4;

/// The requested types, the unnamed ones inside them, and what typedefs stand for.
pub(super) struct Btf {
    strings: BTreeMap<String, u32>,
    types: BTreeMap<u32, Type>,
}

/// A struct, union, typedef, pointer or function type. Types are numbered from 1.
struct Type {
    name: u32,
    kind: u32,
    /// The type that a typedef or a pointer names.
    target: u32,
    /// Number of members or parameters.
    count: usize,
    has_bitfields: bool,
    members: Vec<Member>,
}

#[derive(Clone, Copy)]
struct Member {
    name: u32,
    kind: u32,
    offset: u32,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    u32::from_le_bytes(word.unwrap_or_default())
}

fn strange() -> io::Error {
    io::Error::other("BTF of an unknown form")
}

/// Number of bytes after a type of this kind with so many members.
fn trailer(kind: u32, members: usize) -> io::Result<usize> {
    Ok(match kind {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,
        4 | 5 | 15 | 19 => members * 12,
        6 | 13 => members * 8,
        _ => return Err(strange()),
    })
}

/// A section of the file: its start and length.
#[derive(Clone, Copy)]
struct Section {
    start: u64,
    length: u64,
}

struct Sections {
    types: Section,
    strings: Section,
}

fn sections(file: &mut (impl Read + Seek)) -> io::Result<Sections> {
    let mut head = [0; 24];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut head)?;
    if word(&head, 0) & 0xffff != u32::from(MAGIC) {
        return Err(strange());
    }
    let section = |at| Section {
        start: u64::from(word(&head, 4)) + u64::from(word(&head, at)),
        length: u64::from(word(&head, at + 4)),
    };
    Ok(Sections { types: section(8), strings: section(16) })
}

impl Btf {
    /// Finds these structs and typedefs, with the offsets of these names.
    pub(super) fn find(file: &mut (impl Read + Seek), names: &[&str]) -> io::Result<Self> {
        let sections = sections(file)?;
        let strings = find_strings(file, sections.strings, names)?;
        let wanted: BTreeSet<u32> = strings.values().copied().collect();
        let mut btf = Self { strings, types: BTreeMap::new() };
        let asked_for = |_: u32, kind: u32, name: u32| {
            [KIND_STRUCT, KIND_TYPEDEF].contains(&kind) && wanted.contains(&name)
        };
        btf.collect(file, sections.types, asked_for)?;
        for _ in 0..DEEPEST {
            let inner = btf.unread();
            if inner.is_empty() {
                break;
            }
            btf.collect(file, sections.types, |number, _, _| inner.contains(&number))?;
        }
        Ok(btf)
    }

    /// Types of unnamed members, and of what typedefs and pointers name, that have not been read yet.
    fn unread(&self) -> BTreeSet<u32> {
        let members = self.types.values().flat_map(|known| &known.members);
        let unnamed = members.filter(|member| member.name == 0).map(|member| member.kind);
        let leads_on = |known: &&Type| [KIND_TYPEDEF, KIND_POINTER].contains(&known.kind);
        let targets = self.types.values().filter(leads_on).map(|known| known.target);
        unnamed.chain(targets).filter(|number| !self.types.contains_key(number)).collect()
    }

    /// Reads all types and keeps those that `wants` selects by number, kind and name.
    fn collect(
        &mut self,
        file: &mut (impl Read + Seek),
        section: Section,
        wants: impl Fn(u32, u32, u32) -> bool,
    ) -> io::Result<()> {
        file.seek(SeekFrom::Start(section.start))?;
        let mut source = BufReader::with_capacity(1 << 16, file.take(section.length));
        let (mut left, mut rest) = (section.length, Vec::new());
        for number in 1.. {
            if left == 0 {
                break;
            }
            let mut head = [0; 12];
            source.read_exact(&mut head)?;
            let (name, info, target) = (word(&head, 0), word(&head, 4), word(&head, 8));
            let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            rest.resize(trailer(kind, count)?, 0);
            source.read_exact(&mut rest)?;
            left = left.checked_sub((head.len() + rest.len()) as u64).ok_or_else(strange)?;
            if wants(number, kind, name) {
                let members = if [KIND_STRUCT, KIND_UNION].contains(&kind) {
                    members(&rest)
                } else {
                    Vec::new()
                };
                let has_bitfields = info >> 31 == 1;
                let found = Type { name, kind, target, count, has_bitfields, members };
                self.types.insert(number, found);
            }
        }
        Ok(())
    }

    /// Number of a typedef.
    pub(super) fn typedef(&self, name: &str) -> io::Result<u32> {
        self.number(name, KIND_TYPEDEF)
            .ok_or_else(|| io::Error::other(format!("this kernel has no {name}")))
    }

    /// Number of parameters of a typedef of a pointer to a function.
    pub(super) fn parameters(&self, name: &str) -> io::Result<usize> {
        let target = |number: u32| self.types.get(&number).map(|known| known.target);
        let function = target(self.typedef(name)?).and_then(target);
        function
            .and_then(|number| self.types.get(&number))
            .filter(|known| known.kind == KIND_FUNCTION)
            .map(|known| known.count)
            .ok_or_else(|| io::Error::other(format!("this kernel's {name} is no function")))
    }

    /// Offset in bytes of a member, which may be in an unnamed struct or union.
    pub(super) fn offset(&self, of: &str, member: &str) -> io::Result<i16> {
        self.number(of, KIND_STRUCT)
            .zip(self.strings.get(member))
            .and_then(|(number, wanted)| self.member_bits(number, *wanted, DEEPEST))
            .and_then(|bits| i16::try_from(bits / 8).ok())
            .ok_or_else(|| io::Error::other(format!("this kernel's struct {of} has no {member}")))
    }

    fn number(&self, name: &str, kind: u32) -> Option<u32> {
        let wanted = self.strings.get(name)?;
        self.types
            .iter()
            .find(|(_, known)| known.kind == kind && known.name == *wanted)
            .map(|(number, _)| *number)
    }

    fn member_bits(&self, number: u32, wanted: u32, depth: usize) -> Option<u32> {
        let of = self.types.get(&number)?;
        of.members.iter().find_map(|member| {
            let bits = if of.has_bitfields { member.offset & 0x00ff_ffff } else { member.offset };
            if member.name == wanted {
                return Some(bits);
            }
            let goes_deeper = member.name == 0 && depth > 0;
            let within =
                goes_deeper.then(|| self.member_bits(member.kind, wanted, depth - 1)).flatten();
            within.and_then(|within| bits.checked_add(within))
        })
    }
}

fn members(bytes: &[u8]) -> Vec<Member> {
    bytes
        .chunks_exact(12)
        .map(|member| Member {
            name: word(member, 0),
            kind: word(member, 4),
            offset: word(member, 8),
        })
        .collect()
}

/// Offsets of these words in the section of strings, which holds each word once.
fn find_strings(
    file: &mut (impl Read + Seek),
    section: Section,
    names: &[&str],
) -> io::Result<BTreeMap<String, u32>> {
    file.seek(SeekFrom::Start(section.start))?;
    let mut source = BufReader::with_capacity(1 << 16, file.take(section.length));
    let (mut found, mut string, mut offset) = (BTreeMap::new(), Vec::new(), 0);
    loop {
        string.clear();
        let length = io::BufRead::read_until(&mut source, 0, &mut string)?;
        if length == 0 {
            return Ok(found);
        }
        let text = string.strip_suffix(&[0]).unwrap_or(&string);
        if let Some(name) = names.iter().find(|name| name.as_bytes() == text) {
            found.insert((*name).to_owned(), offset);
        }
        offset += length as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    const NAMES: [&str; 7] = ["outer", "first", "b", "last", "alias", "call", "none"];

    /// `struct outer { u64 first; union { u32 a; u64 b; }; u32 last; }`, `typedef … alias`, and
    /// `typedef void (*call)(struct outer *, struct outer *)`.
    fn sample() -> Vec<u8> {
        let strings = b"\0outer\0first\0a\0b\0last\0alias\0call\0";
        let words: Vec<u32> = [
            // 1: union without a name, two members
            [0, 5 << 24 | 2, 8].as_slice(),
            &[13, 0, 0, 15, 0, 0],
            // 2: struct outer
            &[1, 4 << 24 | 3, 24],
            &[7, 0, 0, 0, 1, 64, 17, 0, 128],
            // 3: typedef alias
            &[22, 8 << 24, 2],
            // 4: typedef call, 5: a pointer to 6: a function of two parameters, 7: a pointer to outer
            &[28, 8 << 24, 5],
            &[0, 2 << 24, 6],
            &[0, 13 << 24 | 2, 0],
            &[0, 7, 0, 7],
            &[0, 2 << 24, 2],
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
        let btf = Btf::find(&mut Cursor::new(sample()), &NAMES).expect("well formed");
        assert_eq!(btf.offset("outer", "first").expect("there"), 0);
        assert_eq!(btf.offset("outer", "b").expect("there"), 8);
        assert_eq!(btf.offset("outer", "last").expect("there"), 16);
        assert!(btf.offset("outer", "none").is_err());
        assert_eq!(btf.typedef("alias").expect("there"), 3);
    }

    #[test]
    fn parameters_are_counted_behind_a_typedef_of_a_pointer() {
        let btf = Btf::find(&mut Cursor::new(sample()), &NAMES).expect("well formed");
        assert_eq!(btf.parameters("call").expect("a function"), 2);
        assert!(btf.parameters("alias").is_err());
        assert!(btf.parameters("none").is_err());
    }

    proptest! {
        #[test]
        fn no_damaged_types_make_it_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let mut bytes = sample();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(btf) = Btf::find(&mut Cursor::new(bytes), &NAMES) {
                for member in NAMES {
                    let _ = (btf.offset("outer", member), btf.parameters(member));
                }
            }
        }
    }

    #[test]
    fn what_is_no_btf_is_refused() {
        for bytes in [Vec::new(), vec![0; 64], sample()[..40].to_vec()] {
            assert!(Btf::find(&mut Cursor::new(bytes), &NAMES).is_err());
        }
    }
}
