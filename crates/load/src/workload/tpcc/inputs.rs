//! What a transaction is about, drawn as the standard says (TPC-C 5.11, clauses 2.1.6 and 2.4 to 2.8).

use super::{CUSTOMERS, DISTRICTS, ITEMS};
use crate::random::Random;

/// Parts of an operation's random numbers.
const OF_ALL: u64 = 0;
pub(super) const OF_THINKING: u64 = 1;
const OF_LINES: u64 = 100;

/// Constants of `NURand`: of loaded and of asked names they differ as clause 2.1.6.1 wants.
pub(super) const C_LOADED_NAME: u64 = 100;
const C_NAME: u64 = 200;
const C_CUSTOMER: u64 = 259;
const C_ITEM: u64 = 7_911;

/// The same in all steps and tries of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inputs {
    random: Random,
    warehouses: u32,
    /// Of the set of tables, from 0.
    pub(super) table: u32,
    pub(super) warehouse: i64,
    pub(super) district: i64,
    pub(super) customer: i64,
    /// A customer is looked up by name.
    pub(super) by_name: bool,
    /// Number of the last name.
    pub(super) name: u64,
    pub(super) lines: usize,
    /// The last item does not exist.
    pub(super) fails: bool,
    /// In cents.
    pub(super) amount: i64,
    pub(super) carrier: i64,
    pub(super) threshold: i64,
    /// Of a payment: where its customer is.
    pub(super) of_customer: (i64, i64),
}

/// One line of a new order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) item: i64,
    pub(super) supplier: i64,
    pub(super) quantity: i64,
}

fn between(random: &mut Random, from: u64, to: u64) -> u64 {
    from + random.below(to - from + 1)
}

/// Not uniform, as in clause 2.1.6.
fn nu_rand(random: &mut Random, a: u64, c: u64, from: u64, to: u64) -> u64 {
    let both = between(random, 0, a) | between(random, from, to);
    (both + c) % (to - from + 1) + from
}

impl Inputs {
    pub(super) fn new(random: Random, warehouses: u32, tables: u32) -> Self {
        let mut draws = random.apart(OF_ALL);
        let of = &mut draws;
        let table = of.below(tables.into()) as u32;
        let warehouse = between(of, 1, warehouses.into()) as i64;
        let district = between(of, 1, DISTRICTS.into()) as i64;
        let here = warehouses == 1 || of.below(100) >= 15;
        let (elsewhere, there) =
            (other(of, warehouse, warehouses), between(of, 1, DISTRICTS.into()));
        Self {
            random,
            warehouses,
            table,
            warehouse,
            district,
            customer: nu_rand(of, 1_023, C_CUSTOMER, 1, CUSTOMERS.into()) as i64,
            by_name: of.below(100) < 60,
            name: nu_rand(of, 255, C_NAME, 0, 999),
            lines: between(of, 5, 15) as usize,
            fails: of.below(100) == 0,
            amount: between(of, 100, 500_000) as i64,
            carrier: between(of, 1, 10) as i64,
            threshold: between(of, 10, 20) as i64,
            of_customer: if here { (warehouse, district) } else { (elsewhere, there as i64) },
        }
    }

    pub(super) fn line(&self, number: usize) -> Line {
        let mut draws = self.random.apart(OF_LINES + number as u64);
        let of = &mut draws;
        let item = nu_rand(of, 8_191, C_ITEM, 1, ITEMS.into()) as i64;
        let remote = self.warehouses > 1 && of.below(100) == 0;
        let elsewhere = other(of, self.warehouse, self.warehouses);
        Line {
            item: if self.fails && number + 1 == self.lines { -1 } else { item },
            supplier: if remote { elsewhere } else { self.warehouse },
            quantity: between(of, 1, 10) as i64,
        }
    }

    pub(super) fn is_local(&self) -> bool {
        (0..self.lines).all(|number| self.line(number).supplier == self.warehouse)
    }
}

/// Any other warehouse, if there is one.
fn other(random: &mut Random, than: i64, warehouses: u32) -> i64 {
    let drawn = random.below(u64::from(warehouses).saturating_sub(1).max(1)) as i64 + 1;
    if warehouses > 1 && drawn >= than { drawn + 1 } else { drawn }
}

/// Syllables of last names, by the digits of their number (clause 4.3.2.3); each has five places.
pub(super) const SYLLABLES: &str = "BAR  OUGHTABLE PRI  PRES ESE  ANTI CALLYATIONEING ";

pub(super) fn last_name(number: u64) -> String {
    let syllable = |digit: u64| {
        let start = (digit % 10) as usize * 5;
        SYLLABLES[start..start + 5].trim_end()
    };
    [syllable(number / 100), syllable(number / 10), syllable(number)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_three_syllables() {
        assert_eq!(
            [last_name(0), last_name(371), last_name(999)],
            ["BARBARBAR", "PRICALLYOUGHT", "EINGEINGEING"]
        );
    }

    #[test]
    fn inputs_are_drawn_as_the_standard_says() {
        let (mut local, mut by_name, mut failing, mut remote) = (0, 0, 0, 0);
        for seed in 0..10_000 {
            let inputs = Inputs::new(Random::of(seed, 0, 1), 4, 2);
            assert!((1..=4).contains(&inputs.warehouse) && inputs.table < 2);
            assert!((1..=3_000).contains(&inputs.customer) && (5..=15).contains(&inputs.lines));
            local += u32::from(inputs.of_customer.0 == inputs.warehouse);
            by_name += u32::from(inputs.by_name);
            failing += u32::from(inputs.line(inputs.lines - 1).item == -1);
            let line = inputs.line(0);
            assert!((1..=4).contains(&line.supplier) && (1..=10).contains(&line.quantity));
            remote += u32::from(line.supplier != inputs.warehouse);
        }
        assert!((8_350..8_650).contains(&local), "{local}");
        assert!((5_850..6_150).contains(&by_name), "{by_name}");
        assert!((60..140).contains(&failing) && (60..140).contains(&remote), "{failing} {remote}");
    }
}
