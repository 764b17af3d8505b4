//! Random choice of records, and their keys, as in YCSB.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::random::Random;
use crate::workload::numbers::{Numbers, Zipfian};

/// The exponent of every Zipf distribution in YCSB.
pub(super) const EXPONENT: f64 = 0.99;

/// YCSB's hash of a number: FNV-1a over its eight bytes, lowest first, and `Math.abs` of that, which
/// leaves `Long.MIN_VALUE` as it is.
pub(super) fn hash(number: u64) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for octet in number.to_le_bytes() {
        hash = (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash.cast_signed().wrapping_abs()
}

/// How keys are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyNames {
    /// From hashes of the records' numbers; otherwise from the numbers.
    pub(super) hashed: bool,
    /// Fewest digits.
    pub(super) padding: usize,
}

/// Most digits of a key.
pub(super) const MOST_DIGITS: usize = 124;

/// A record's key.
pub(super) struct Key {
    bytes: [u8; 4 + MOST_DIGITS],
    length: usize,
}

impl Key {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl KeyNames {
    pub(super) fn key(self, number: u64) -> Key {
        let number = if self.hashed { hash(number) } else { number.cast_signed() };
        let padding = self.padding.min(MOST_DIGITS);
        let mut bytes = [0; 4 + MOST_DIGITS];
        let mut left = &mut bytes[..];
        // A number has 20 letters at most, so that there is room.
        let _ = write!(left, "user{number:0>padding$}");
        let left = left.len();
        Key { length: bytes.len() - left, bytes }
    }
}

/// The existing records: loaded ones, and inserted ones up to the first without a reply.
#[derive(Debug)]
pub(super) struct Inserted {
    next: AtomicU64,
    /// Number after the newest record that may be requested.
    there: AtomicU64,
    /// Inserted records after one without a reply yet.
    early: Mutex<BinaryHeap<Reverse<u64>>>,
}

impl Inserted {
    pub(super) fn new(loaded: u64) -> Self {
        let early = Mutex::new(BinaryHeap::new());
        Self { next: AtomicU64::new(loaded), there: AtomicU64::new(loaded), early }
    }

    pub(super) fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn acknowledge(&self, number: u64) {
        let mut early = self.early.lock().expect("no panic");
        early.push(Reverse(number));
        let mut there = self.there.load(Ordering::Relaxed);
        while early.peek() == Some(&Reverse(there)) {
            early.pop();
            there += 1;
        }
        self.there.store(there, Ordering::Relaxed);
    }

    pub(super) fn there(&self) -> u64 {
        self.there.load(Ordering::Relaxed)
    }
}

/// YCSB's `requestdistribution`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Chooser {
    /// `numbers` over the records from `from` on.
    Plain { from: u64, numbers: Numbers },
    /// Zipf's law, with ranks spread over the key space: rank `r` is record `r × stride mod items`.
    Zipfian { from: u64, items: u64, stride: u64, zipfian: Zipfian },
    /// As YCSB draws "zipfian": see [`Scrambled`].
    YcsbCompat { from: u64, items: u64, scrambled: Scrambled },
    /// Zipf's law for the distance from the newest record.
    Latest,
    /// An exponential distribution with this mean, for that distance.
    Exponential { mean: f64 },
    /// In order; each connection has its share.
    Sequential { from: u64, items: u64 },
}

impl Chooser {
    pub(super) fn zipfian(from: u64, items: u64) -> Self {
        Self::Zipfian { from, items, stride: stride(items), zipfian: Zipfian::new(items, EXPONENT) }
    }

    /// A record of those numbered below `there`, drawn again where it is not. `turn` counts the draws of
    /// all connections.
    pub(super) fn choose(&self, random: &mut Random, turn: u64, there: u64) -> u64 {
        let mut number = self.draw(random, turn, there);
        while number >= there {
            number = self.draw(random, turn, there);
        }
        number
    }

    fn draw(&self, random: &mut Random, turn: u64, there: u64) -> u64 {
        match self {
            Self::Plain { from, numbers } => from + numbers.draw(random),
            Self::Zipfian { from, items, stride, zipfian } => {
                let rank = u128::from(zipfian.draw(random) - 1);
                from + (rank * u128::from(*stride) % u128::from(*items)) as u64
            }
            Self::YcsbCompat { from, items, scrambled } => {
                from + hash(scrambled.draw(random)).unsigned_abs() % items
            }
            Self::Latest => there - Zipfian::new(there, EXPONENT).draw(random),
            Self::Exponential { mean } => {
                there - 1 - Numbers::Exponential { items: there, mean: *mean }.draw(random)
            }
            Self::Sequential { from, items } => from + turn % items,
        }
    }
}

/// About the golden section of `items`, without a common factor, so that each rank has one record and
/// neighbouring ranks are far apart.
fn stride(items: u64) -> u64 {
    #[allow(clippy::cast_precision_loss)] // any number near it will do
    let golden = (items as f64 * 0.618_033_988_749_895) as u64;
    (golden.max(1)..=items).find(|&stride| gcd(stride, items) == 1).unwrap_or(1)
}

const fn gcd(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// YCSB's `ScrambledZipfianGenerator`: Gray's approximation over 10¹⁰ + 1 items (SIGMOD 1994), with the
/// sum that it has built in; which record that is says a hash. Far from Zipf's law over the records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scrambled {
    eta: f64,
}

impl Scrambled {
    const ITEMS: f64 = 10_000_000_001.0;
    const SUM: f64 = 26.469_028_201_783_02;

    pub(super) fn new() -> Self {
        let sum_of_two = 1.0 + 0.5_f64.powf(EXPONENT);
        let power = (2.0 / Self::ITEMS).powf(1.0 - EXPONENT);
        Self { eta: (1.0 - power) / (1.0 - sum_of_two / Self::SUM) }
    }

    fn draw(self, random: &mut Random) -> u64 {
        let unit = random.unit();
        let of_sum = unit * Self::SUM;
        if of_sum < 1.0 {
            0
        } else if of_sum < 1.0 + 0.5_f64.powf(EXPONENT) {
            1
        } else {
            let power = (self.eta * unit - self.eta + 1.0).powf(1.0 / (1.0 - EXPONENT));
            (Self::ITEMS * power) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 500_000;

    fn counts(chooser: Chooser, records: u64) -> Vec<u32> {
        let mut random = Random::new(5);
        let mut counts = vec![0; records as usize];
        for turn in 0..DRAWS {
            counts[chooser.choose(&mut random, turn.into(), records) as usize] += 1;
        }
        counts
    }

    fn top_share(counts: &[u32]) -> f64 {
        f64::from(*counts.iter().max().expect("some")) / f64::from(DRAWS)
    }

    /// Pearson's statistic; its mean is the number of classes less one, its variance twice that.
    fn chi_square(counts: &[u32], shares: &[f64]) -> f64 {
        let of = |(&count, share): (&u32, &f64)| {
            let expected = share * f64::from(DRAWS);
            (f64::from(count) - expected).powi(2) / expected
        };
        counts.iter().zip(shares).map(of).sum()
    }

    fn assert_fits(counts: &[u32], shares: &[f64]) {
        let freedom = f64::from(counts.len() as u32 - 1);
        let found = chi_square(counts, shares);
        assert!(found < freedom + 4.0 * (2.0 * freedom).sqrt(), "{found} of {freedom}");
    }

    fn zipf(items: u32) -> Vec<f64> {
        let weight = |item: u32| f64::from(item).powf(-EXPONENT);
        let sum: f64 = (1..=items).map(weight).sum();
        (1..=items).map(|item| weight(item) / sum).collect()
    }

    #[test]
    fn hashes_are_ycsbs() {
        // By Java, with the code of YCSB 0.17's Utils.fnvhash64.
        let known = [
            (0, 6_284_781_860_667_377_211),
            (1, 8_517_097_267_634_966_620),
            (999, 2_071_219_101_098_386_137),
            (2_147_483_647, 627_943_977_067_101_855),
        ];
        for (number, expected) in known {
            assert_eq!(hash(number), expected, "{number}");
        }
    }

    #[test]
    fn keys_are_called_as_ycsb_calls_them() {
        let name = |hashed, padding, number| {
            let key = KeyNames { hashed, padding }.key(number);
            String::from_utf8(key.as_bytes().to_vec()).expect("text")
        };
        assert_eq!(name(true, 1, 0), "user6284781860667377211");
        assert_eq!(name(false, 8, 42), "user00000042");
        assert_eq!(name(false, 1, 42), "user42");
    }

    #[test]
    fn zipfian_is_exact_and_strewn() {
        let found = counts(Chooser::zipfian(0, 1_000), 1_000);
        assert!((top_share(&found) - 0.1294).abs() < 0.002, "{}", top_share(&found));
        let mut in_ranks = vec![0; 1_000];
        for rank in 0..1_000_u64 {
            in_ranks[rank as usize] = found[(rank * stride(1_000) % 1_000) as usize];
        }
        assert_fits(&in_ranks, &zipf(1_000));
        let top: Vec<usize> = (0..4).map(|rank| (rank * stride(1_000) % 1_000) as usize).collect();
        let near = top.windows(2).any(|pair| pair[0].abs_diff(pair[1]) < 100);
        assert!(!near, "neighbours in rank are no neighbours: {top:?}");
    }

    #[test]
    fn a_stride_reaches_every_record() {
        for items in [1, 2, 10, 97, 1_000] {
            let mut found: Vec<u64> = (0..items).map(|rank| rank * stride(items) % items).collect();
            found.sort_unstable();
            assert_eq!(found, (0..items).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_top_of_ycsbs_own_zipfian() {
        let (from, scrambled) = (0, Scrambled::new());
        let found = counts(Chooser::YcsbCompat { from, items: 1_001, scrambled }, 1_000);
        assert!((top_share(&found) - 0.0385).abs() < 0.001, "{}", top_share(&found));
        let top = found.iter().position(|count| Some(count) == found.iter().max());
        assert_eq!(top, Some((hash(0) % 1_001) as usize), "the first item of all, hashed");
    }

    #[test]
    fn latest_is_zipfs_from_the_newest_on() {
        let mut found = counts(Chooser::Latest, 1_000);
        found.reverse();
        assert_fits(&found, &zipf(1_000));
    }

    #[test]
    fn the_others_fit_their_laws() {
        let uniform = Chooser::Plain { from: 0, numbers: Numbers::Uniform { items: 100 } };
        assert_fits(&counts(uniform, 100), &[0.01; 100]);
        let hotspot = Numbers::Hotspot { items: 100, data: 0.2, operations: 0.8 };
        let shares: Vec<f64> = (0..100).map(|item| if item < 20 { 0.04 } else { 0.0025 }).collect();
        assert_fits(&counts(Chooser::Plain { from: 0, numbers: hotspot }, 100), &shares);
        let mut found = counts(Chooser::Exponential { mean: 20.0 }, 100);
        found.reverse();
        let weight = |item: u32| (-f64::from(item) / 20.0).exp();
        let sum: f64 = (0..100).map(weight).sum();
        let shares: Vec<f64> = (0..100).map(|item| weight(item) / sum).collect();
        assert_fits(&found, &shares);
        let sequential = counts(Chooser::Sequential { from: 0, items: 100 }, 100);
        assert!(sequential.iter().all(|&count| count == 5_000));
    }

    #[test]
    fn no_record_is_asked_for_before_all_up_to_it_are_there() {
        let inserted = Inserted::new(10);
        let drawn: Vec<u64> = (0..3).map(|_| inserted.next()).collect();
        assert_eq!(drawn, [10, 11, 12]);
        inserted.acknowledge(11);
        inserted.acknowledge(12);
        assert_eq!(inserted.there(), 10);
        inserted.acknowledge(10);
        assert_eq!(inserted.there(), 13);
    }

    #[test]
    fn records_that_are_not_yet_there_are_not_asked_for() {
        let mut random = Random::new(1);
        let scrambled = Scrambled::new();
        for chooser in [
            Chooser::zipfian(0, 100),
            Chooser::YcsbCompat { from: 0, items: 100, scrambled },
            Chooser::Latest,
            Chooser::Exponential { mean: 60.0 },
        ] {
            assert!((0..10_000).all(|turn| chooser.choose(&mut random, turn, 50) < 50));
        }
    }
}
