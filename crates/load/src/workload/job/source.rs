//! Sources of values.

use serde::Deserialize;

use crate::random::Random;
use crate::workload::numbers::{Numbers, Zipfian};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) enum Generator {
    Uniform {
        from: i64,
        to: i64,
    },
    Zipfian {
        from: i64,
        to: i64,
        exponent: f64,
    },
    Hotspot {
        from: i64,
        to: i64,
        data: f64,
        operations: f64,
    },
    Exponential {
        from: i64,
        to: i64,
        mean: f64,
    },
    /// Counts up over all connections, and starts again at `from` after `to`.
    Sequential {
        from: i64,
        to: i64,
    },
    /// So many random letters and digits.
    Text {
        length: u32,
    },
    Choice(Vec<String>),
}

pub(super) enum Source {
    Number {
        from: i64,
        numbers: Numbers,
    },
    Sequential {
        from: i64,
        items: u64,
    },
    Text {
        length: u32,
    },
    Choice(Vec<String>),
    /// A value of an earlier reply.
    Kept(usize),
}

impl Source {
    pub(super) fn new(generator: &Generator) -> Result<Self, String> {
        let items = |from: i64, to: i64| {
            let items = to.checked_sub(from).and_then(|items| u64::try_from(items).ok());
            items.map(|items| items + 1).ok_or_else(|| "`to` is below `from`".to_owned())
        };
        let share = |share: f64, name: &str| {
            let inside = (0.0..=1.0).contains(&share);
            inside.then_some(share).ok_or_else(|| format!("`{name}` must be from 0 to 1"))
        };
        Ok(match generator {
            Generator::Uniform { from, to } => Self::Number {
                from: *from,
                numbers: Numbers::Uniform { items: items(*from, *to)? },
            },
            Generator::Zipfian { from, to, exponent } => {
                if !(0.0..=10.0).contains(exponent) {
                    return Err("`exponent` must be from 0 to 10".to_owned());
                }
                let zipfian = Zipfian::new(items(*from, *to)?, *exponent);
                Self::Number { from: *from, numbers: Numbers::Zipfian(zipfian) }
            }
            Generator::Hotspot { from, to, data, operations } => {
                let items = items(*from, *to)?;
                let (data, operations) = (share(*data, "data")?, share(*operations, "operations")?);
                Self::Number { from: *from, numbers: Numbers::Hotspot { items, data, operations } }
            }
            Generator::Exponential { from, to, mean } => {
                if !mean.is_finite() || *mean <= 0.0 {
                    return Err("`mean` must be a number above 0".to_owned());
                }
                let numbers = Numbers::Exponential { items: items(*from, *to)?, mean: *mean };
                Self::Number { from: *from, numbers }
            }
            Generator::Sequential { from, to } => {
                Self::Sequential { from: *from, items: items(*from, *to)? }
            }
            Generator::Text { length } if *length > 1 << 24 => {
                return Err("a text may have 16 MiB at most".to_owned());
            }
            Generator::Text { length } => Self::Text { length: *length },
            Generator::Choice(words) if words.is_empty() => {
                return Err("there is nothing to choose from".to_owned());
            }
            Generator::Choice(words) => Self::Choice(words.clone()),
        })
    }
}

/// Random letters, digits, `-` and `_`, ten of each draw.
pub(super) fn letters(random: &mut Random, length: usize, out: &mut Vec<u8>) {
    const LETTERS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    let mut left = length;
    while left > 0 {
        let mut bits = random.next_u64();
        for _ in 0..left.min(10) {
            out.push(LETTERS[(bits & 63) as usize]);
            bits >>= 6;
        }
        left -= left.min(10);
    }
}
