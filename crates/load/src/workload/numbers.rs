//! Random choice of one of N items.

use crate::random::Random;

/// A distribution over `0..items`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Numbers {
    Uniform {
        items: u64,
    },
    Zipfian(Zipfian),
    /// The share `operations` of draws is uniform over the first share `data` of items, the others over the rest.
    Hotspot {
        items: u64,
        data: f64,
        operations: f64,
    },
    /// With mean `mean`, cut at the last item.
    Exponential {
        items: u64,
        mean: f64,
    },
}

impl Numbers {
    pub fn draw(&self, random: &mut Random) -> u64 {
        match *self {
            Self::Uniform { items } => random.below(items),
            Self::Zipfian(zipfian) => zipfian.draw(random) - 1,
            Self::Hotspot { items, data, operations } => {
                #[allow(clippy::cast_precision_loss)] // a share of the items
                let hot = ((items as f64 * data) as u64).clamp(1, items);
                if hot == items || random.unit() < operations {
                    random.below(hot)
                } else {
                    hot + random.below(items - hot)
                }
            }
            #[allow(clippy::cast_precision_loss)] // 2^53 items
            Self::Exponential { items, mean } => {
                // The inverse of the cut distribution, which beyond such a mean is uniform to 15 digits.
                let mean = mean.min(items as f64 * 1e15);
                let within = -(-(items as f64) / mean).exp_m1();
                let item = -mean * (-random.unit() * within).ln_1p();
                (item as u64).min(items.saturating_sub(1))
            }
        }
    }
}

/// Item `k` of `1..=items` with a probability proportional to `k^-exponent`, exactly, in constant
/// time and memory: rejection-inversion (Hörmann and Derflinger 1996, ACM TOMACS 6(3)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zipfian {
    items: f64,
    exponent: f64,
    /// The integral of the hat from before the first item, and to behind the last one.
    from: f64,
    to: f64,
    /// Distance to an item within which nothing is rejected.
    certain: f64,
}

impl Zipfian {
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // items beyond 2^53 differ by nothing that could be seen
    pub fn new(items: u64, exponent: f64) -> Self {
        let mut zipfian =
            Self { items: items.max(1) as f64, exponent, from: 0.0, to: 0.0, certain: 0.0 };
        zipfian.from = zipfian.integral(1.5) - 1.0;
        zipfian.to = zipfian.integral(zipfian.items + 0.5);
        zipfian.certain = 2.0 - zipfian.inverse(zipfian.integral(2.5) - zipfian.weight(2.0));
        zipfian
    }

    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let at = self.to + random.unit() * (self.from - self.to);
            let exact = self.inverse(at);
            let item = exact.round().clamp(1.0, self.items);
            if item - exact <= self.certain || at >= self.integral(item + 0.5) - self.weight(item) {
                return item as u64;
            }
        }
    }

    fn weight(&self, item: f64) -> f64 {
        (-self.exponent * item.ln()).exp()
    }

    /// Integral of `x^-exponent` from 1; the exponential form is valid near an exponent of 1, too.
    fn integral(&self, item: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-12 { item.ln() } else { (power * item.ln()).exp_m1() / power }
    }

    fn inverse(&self, integral: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-12 {
            integral.exp()
        } else {
            ((integral * power).max(-1.0).ln_1p() / power).exp()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(numbers: Numbers, items: usize) -> Vec<f64> {
        const DRAWS: u32 = 400_000;
        let mut random = Random::new(11);
        let mut counts = vec![0_u32; items];
        for _ in 0..DRAWS {
            counts[numbers.draw(&mut random) as usize] += 1;
        }
        counts.iter().map(|&count| f64::from(count) / f64::from(DRAWS)).collect()
    }

    #[test]
    fn an_exponential_distribution_is_cut_at_the_last_item_whatever_its_mean() {
        for mean in [1e9, 1e300, f64::INFINITY] {
            for share in shares(Numbers::Exponential { items: 4, mean }, 4) {
                assert!((share - 0.25).abs() < 0.005, "{mean}: {share}");
            }
        }
        // (1 - e^-1) / (1 - e^-2) of all draws are below the mean.
        let found = shares(Numbers::Exponential { items: 20, mean: 10.0 }, 20);
        assert!((found[..10].iter().sum::<f64>() - 0.731_06).abs() < 0.005);
    }

    #[test]
    fn zipfian_is_exact() {
        for exponent in [0.5, 0.99, 1.0, 1.5] {
            let found = shares(Numbers::Zipfian(Zipfian::new(1_000, exponent)), 1_000);
            let sum: f64 = (1..=1_000).map(|item| f64::from(item).powf(-exponent)).sum();
            for item in [1_u32, 2, 3, 10, 100] {
                let expected = f64::from(item).powf(-exponent) / sum;
                let error = (expected / 400_000.0).sqrt() * 5.0;
                let share = found[item as usize - 1];
                assert!((share - expected).abs() < error, "{exponent} {item}: {share} {expected}");
            }
        }
    }

    #[test]
    fn the_top_of_zipf_099_over_1000_items() {
        let found = shares(Numbers::Zipfian(Zipfian::new(1_000, 0.99)), 1_000);
        assert!((found[0] - 0.1294).abs() < 0.003, "{}", found[0]);
    }

    #[test]
    fn hotspot_and_exponential() {
        let hot = Numbers::Hotspot { items: 1_000, data: 0.2, operations: 0.8 };
        let hot: f64 = shares(hot, 1_000)[..200].iter().sum();
        assert!((hot - 0.8).abs() < 0.005, "{hot}");
        let found = shares(Numbers::Exponential { items: 1_000, mean: 50.0 }, 1_000);
        let first: f64 = found[..50].iter().sum();
        assert!((first - (1.0 - (-1.0_f64).exp())).abs() < 0.005, "{first}");
    }

    #[test]
    fn one_item_is_always_the_one() {
        let mut random = Random::new(1);
        for numbers in [Numbers::Uniform { items: 1 }, Numbers::Zipfian(Zipfian::new(1, 0.99))] {
            assert!((0..100).all(|_| numbers.draw(&mut random) == 0));
        }
    }
}
