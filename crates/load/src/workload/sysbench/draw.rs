//! Random choice of rows as in sysbench 1.0.20 (`--rand-type`; zipfian as in 1.1).

use crate::random::Random;
use crate::workload::numbers::Zipfian;

/// A distribution over the ids `1..=rows`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    Uniform,
    /// `values` percent of draws are in a narrow band in the middle, the others nearly normal around it.
    Special {
        rounds: u32,
        /// Width of the band, in percent of all rows.
        width: f64,
        values: f64,
    },
    /// The mean of `rounds` uniform draws.
    Gaussian {
        rounds: u32,
    },
    Pareto {
        power: f64,
    },
    Zipfian(Zipfian),
}

impl Draw {
    /// By sysbench's parameter `h`, from 0 to 1.
    #[must_use]
    pub fn pareto(h: f64) -> Self {
        Self::Pareto { power: h.ln() / (1.0 - h).ln() }
    }

    #[allow(clippy::cast_precision_loss)] // an id is an INTEGER of SQL
    pub fn id(&self, rows: u64, random: &mut Random) -> u64 {
        let all = rows as f64;
        let from_zero = match *self {
            Self::Uniform => random.below(rows),
            Self::Special { rounds, width, values } => {
                let span = all - 1.0;
                let at = random.unit();
                if at < 1.0 - values / 100.0 {
                    (mean(rounds, random) * span) as u64
                } else {
                    let band = span * width / 100.0;
                    (at * (band + 1.0) + span / 2.0 - band / 2.0) as u64
                }
            }
            Self::Gaussian { rounds } => (mean(rounds, random) * all) as u64,
            Self::Pareto { power } => (all * random.unit().powf(power)) as u64,
            Self::Zipfian(zipfian) => zipfian.draw(random) - 1,
        };
        from_zero.min(rows.saturating_sub(1)) + 1
    }
}

/// Of uniform draws from `[0, 1)`.
fn mean(rounds: u32, random: &mut Random) -> f64 {
    (0..rounds).map(|_| random.unit()).sum::<f64>() / f64::from(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: u64 = 1_000;

    /// How often each id comes.
    fn shares(draw: Draw) -> Vec<f64> {
        const DRAWS: u32 = 1_000_000;
        let mut random = Random::new(5);
        let mut counts = vec![0_u32; ROWS as usize];
        for _ in 0..DRAWS {
            counts[draw.id(ROWS, &mut random) as usize - 1] += 1;
        }
        counts.iter().map(|&count| f64::from(count) / f64::from(DRAWS)).collect()
    }

    fn assert_tenths(draw: Draw, expected: [f64; 10]) {
        let tenths: Vec<f64> = shares(draw).chunks(100).map(|tenth| tenth.iter().sum()).collect();
        for (found, expected) in tenths.iter().zip(expected) {
            assert!((found - expected).abs() < 0.003, "{draw:?}: {tenths:?}");
        }
    }

    /// Counted of a million draws from 1 to 1,000 of Debian's sysbench 1.0.20, with its defaults.
    #[test]
    fn tenths_are_those_of_sysbench() {
        let special = Draw::Special { rounds: 12, width: 1.0, values: 75.0 };
        assert_tenths(
            special,
            [0.0, 0.0, 0.0018, 0.0272, 0.3464, 0.5956, 0.0271, 0.0019, 0.0, 0.0],
        );
        let gaussian = Draw::Gaussian { rounds: 12 };
        assert_tenths(
            gaussian,
            [0.0, 0.0001, 0.0076, 0.1098, 0.3824, 0.3838, 0.1087, 0.0076, 0.0001, 0.0],
        );
        assert_tenths(
            Draw::pareto(0.2),
            [0.7272, 0.0728, 0.0467, 0.0344, 0.0275, 0.0232, 0.02, 0.0179, 0.0159, 0.0144],
        );
        assert_tenths(Draw::Uniform, [0.1; 10]);
    }

    #[test]
    fn single_ids_come_as_often_as_in_sysbench() {
        let special = shares(Draw::Special { rounds: 12, width: 1.0, values: 75.0 });
        for (id, expected) in [(495, 0.0012), (496, 0.0012), (505, 0.0924), (506, 0.0461)] {
            let found = special[id - 1];
            assert!((found - expected).abs() < 0.001, "{id}: {found}");
        }
        assert!((shares(Draw::pareto(0.2))[0] - 0.3837).abs() < 0.002);
        let zipfian = shares(Draw::Zipfian(Zipfian::new(ROWS, 0.8)));
        assert!(zipfian[0] > 5.0 * zipfian[9] && zipfian[999] > 0.0);
    }

    #[test]
    fn every_id_is_one_of_the_table() {
        let mut random = Random::new(1);
        for draw in [
            Draw::Uniform,
            Draw::Special { rounds: 12, width: 100.0, values: 100.0 },
            Draw::Gaussian { rounds: 1 },
            Draw::pareto(0.2),
        ] {
            for rows in [1, 2, 1_000] {
                assert!((0..1_000).all(|_| (1..=rows).contains(&draw.id(rows, &mut random))));
            }
        }
    }
}
