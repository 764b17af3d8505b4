//! Values of fields, with YCSB's lengths and characters.

use crate::protocol::statement::{Digest, digest, signed_decimal};
use crate::random::Random;
use crate::workload::numbers::Zipfian;

/// Distribution of the lengths of fields.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Lengths {
    Constant(u32),
    Uniform {
        from: u32,
        to: u32,
    },
    Zipfian {
        from: u32,
        zipfian: Zipfian,
    },
    /// Counts of blocks of `block` bytes, from a file.
    Histogram {
        block: u32,
        counts: Vec<u64>,
    },
}

impl Lengths {
    fn draw(&self, random: &mut Random) -> usize {
        let length = match self {
            Self::Constant(length) => *length,
            Self::Uniform { from, to } => from + random.below(u64::from(to - from) + 1) as u32,
            Self::Zipfian { from, zipfian } => from + (zipfian.draw(random) - 1) as u32,
            Self::Histogram { block, counts } => {
                // As YCSB does it: a count reaches one further than its share, and the last block is
                // as long as the one before it.
                let mut left = random.below(counts.iter().sum()).cast_signed();
                let last = counts.len() - 1;
                let found = counts[..last].iter().position(|&count| {
                    left -= count.cast_signed();
                    left <= 0
                });
                found.map_or(last as u32, |index| index as u32 + 1) * block
            }
        };
        length as usize
    }

    /// Shortest length.
    pub(super) fn least(&self) -> u32 {
        match self {
            Self::Constant(length) => *length,
            Self::Uniform { from, .. } | Self::Zipfian { from, .. } => *from,
            Self::Histogram { .. } => 0,
        }
    }

    /// A histogram as YCSB writes it: `BlockSize`, a tab and a number; then block and count on each line.
    pub(super) fn histogram(text: &str) -> Result<Self, &'static str> {
        const NO_HISTOGRAM: &str = "the file's first line must be `BlockSize`, a tab and a number";
        let mut lines = text.lines().map(|line| line.split_once('\t').unwrap_or((line, "")));
        let block = match lines.next() {
            Some(("BlockSize", block)) => block.trim().parse().map_err(|_| NO_HISTOGRAM)?,
            _ => return Err(NO_HISTOGRAM),
        };
        let mut counts = Vec::new();
        for (number, count) in lines {
            let index: usize = number.trim().parse().map_err(|_| "a block that is no number")?;
            if index != counts.len() {
                return Err("the file's blocks must be numbered 0, 1, 2, …");
            }
            counts
                .push(count.trim().parse::<u32>().map_err(|_| "a count that is no number")?.into());
        }
        let longest = u64::from(block) * counts.len() as u64;
        match counts.iter().sum::<u64>() {
            0 => Err("the file counts no field"),
            _ if longest > u64::from(MOST_BYTES) => Err("a field may have 16 MiB at most"),
            _ => Ok(Self::Histogram { block, counts }),
        }
    }
}

/// Most bytes of one field.
pub(super) const MOST_BYTES: u32 = 1 << 24;

/// The fields of every record.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    pub(super) names: Vec<String>,
    pub(super) lengths: Lengths,
    /// Whether values are computed from key and field, so that the contents of replies are known.
    pub(super) known: bool,
}

impl Fields {
    /// Appends the value of a field; `random` is the operation's.
    pub(super) fn write(&self, key: &[u8], field: usize, random: Random, out: &mut Vec<u8>) {
        let mut random = random.apart(field as u64);
        let length = self.lengths.draw(&mut random);
        if self.known {
            deterministic(key, self.names[field].as_bytes(), length, out);
        } else {
            letters(&mut random, length, out);
        }
    }

    /// Sum of the digests of some fields' values, if they are known.
    pub(super) fn contents(&self, key: &[u8], fields: std::ops::Range<usize>) -> Option<u64> {
        self.known.then(|| {
            let mut value = Vec::new();
            fields.fold(0, |sum: u64, field| {
                value.clear();
                self.write(key, field, Random::new(0), &mut value);
                sum.wrapping_add(digest(&value))
            })
        })
    }

    /// Sum of the digests of all fields' names.
    pub(super) fn contents_of_names(&self) -> u64 {
        self.names.iter().fold(0, |sum, name| {
            let mut digest = Digest::default();
            digest.add(name.as_bytes());
            sum.wrapping_add(digest.finish())
        })
    }

    pub(super) fn bytes_of_names(&self) -> u32 {
        self.names.iter().map(|name| name.len() as u32).sum()
    }
}

/// Letters as YCSB's `RandomByteIterator` takes them: of each six, three from 32, 64 and 64 of ASCII's
/// printable ones, twice. A compressing server finds as much to do.
fn letters(random: &mut Random, length: usize, out: &mut Vec<u8>) {
    const KINDS: [(u32, u8); 6] = [(0, 31), (5, 63), (10, 95), (15, 31), (20, 63), (25, 95)];
    let end = out.len() + length;
    out.reserve(length + 12);
    while out.len() < end {
        let bits = random.next_u64();
        for half in [bits as u32, (bits >> 32) as u32] {
            out.extend(KINDS.map(|(shift, mask)| ((half >> shift) as u8 & mask) + b' '));
        }
    }
    out.truncate(end);
}

/// YCSB's value with `dataintegrity`: key and field, then hashes of everything before.
fn deterministic(key: &[u8], field: &[u8], length: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(key);
    out.push(b':');
    out.extend_from_slice(field);
    let mut hash = JavaHash::default();
    let mut hashed = start;
    while out.len() - start < length {
        out.push(b':');
        hash.add(&out[hashed..]);
        hashed = out.len();
        signed_decimal(out, hash.0.into());
    }
    out.truncate(start + length);
}

/// `java.lang.String.hashCode`, of ASCII.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JavaHash(pub(super) i32);

impl JavaHash {
    pub(super) fn add(&mut self, text: &[u8]) {
        for &byte in text {
            self.0 = self.0.wrapping_mul(31).wrapping_add(byte.into());
        }
    }

    pub(super) fn of(text: &[u8]) -> i32 {
        let mut hash = Self::default();
        hash.add(text);
        hash.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_strings_are_javas() {
        assert_eq!(JavaHash::of(b""), 0);
        assert_eq!(JavaHash::of(b"hello"), 99_162_322);
        assert_eq!(JavaHash::of(b"user6284781860667377211"), REDIS_SCORE);
    }

    /// `"user6284781860667377211".hashCode()`, by Java.
    const REDIS_SCORE: i32 = -594_971_599;

    #[test]
    fn known_values_are_ycsbs() {
        let mut out = Vec::new();
        deterministic(b"user6284781860667377211", b"field0", 100, &mut out);
        // By Java, with the code of CoreWorkload.buildDeterministicValue of YCSB 0.17.
        let expected = "user6284781860667377211:field0:-56807877:2032869390:-165488160:1762371712:\
            -169193395:-1039977118:-10";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
        let mut short = Vec::new();
        deterministic(b"user6284781860667377211", b"field0", 8, &mut short);
        assert_eq!(short, b"user6284");
    }

    #[test]
    fn letters_are_those_of_ycsb() {
        let mut out = Vec::new();
        letters(&mut Random::new(1), 60_000, &mut out);
        assert_eq!(out.len(), 60_000);
        for (place, kind) in [(0, 32), (1, 64), (2, 64), (3, 32), (4, 64), (5, 64)] {
            let seen: std::collections::BTreeSet<&u8> = out.iter().skip(place).step_by(6).collect();
            assert_eq!(seen.len(), kind, "at place {place}");
        }
        assert!(out.iter().all(|&letter| (b' '..=127).contains(&letter)));
    }

    #[test]
    fn lengths_keep_their_bounds() {
        let mut random = Random::new(3);
        let zipfian = Zipfian::new(91, 0.99);
        for lengths in [
            Lengths::Constant(10),
            Lengths::Uniform { from: 10, to: 100 },
            Lengths::Zipfian { from: 10, zipfian },
        ] {
            assert_eq!(lengths.least(), 10);
            let drawn: Vec<usize> = (0..10_000).map(|_| lengths.draw(&mut random)).collect();
            assert!(drawn.iter().all(|length| (10..=100).contains(length)));
            assert_eq!(drawn.contains(&100), !matches!(lengths, Lengths::Constant(_)));
        }
    }

    #[test]
    fn a_histogram_is_drawn_as_ycsb_does() {
        let lengths = Lengths::histogram("BlockSize\t10\n0\t1\n1\t0\n2\t3\n").expect("a histogram");
        let mut random = Random::new(3);
        let mut counts = [0_u32; 4];
        for _ in 0..40_000 {
            counts[lengths.draw(&mut random) / 10] += 1;
        }
        assert_eq!(counts[0] + counts[3], 0);
        assert!((19_000..21_000).contains(&counts[1]), "0 and 1 of 4 are in the first: {counts:?}");
        assert!(Lengths::histogram("0\t1\n").is_err());
        assert!(Lengths::histogram("BlockSize\t10\n").is_err());
        assert!(Lengths::histogram("BlockSize\t10\n1\t1\n").is_err());
    }
}
