//! Expressions of pgbench's script language.

use crate::random::Random;
use crate::workload::Datum;
use crate::workload::numbers::Zipfian;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Value(Datum),
    Variable(usize),
    Call(Function, Vec<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    Differ,
    Less,
    LessOrEqual,
    And,
    Or,
    Not,
    Abs,
    Greatest,
    Least,
    Int,
    Double,
    Sqrt,
    Random,
    RandomGaussian,
    RandomExponential,
    RandomZipfian,
}

impl Function {
    /// By its name in a script, with the fewest and most values that it takes.
    pub(super) fn named(name: &str) -> Option<(Self, usize, usize)> {
        Some(match name {
            "abs" => (Self::Abs, 1, 1),
            "greatest" => (Self::Greatest, 1, 16),
            "least" => (Self::Least, 1, 16),
            "int" => (Self::Int, 1, 1),
            "double" => (Self::Double, 1, 1),
            "mod" => (Self::Modulo, 2, 2),
            "sqrt" => (Self::Sqrt, 1, 1),
            "random" => (Self::Random, 2, 2),
            "random_gaussian" => (Self::RandomGaussian, 3, 3),
            "random_exponential" => (Self::RandomExponential, 3, 3),
            "random_zipfian" => (Self::RandomZipfian, 3, 3),
            _ => return None,
        })
    }
}

/// The random numbers of one line of a script.
pub(super) struct Draws(pub(super) Random);

const RANGE: &str = "a number is beyond 64 bits";
const KIND: &str = "a value is no number";

/// # Errors
/// It has no value, and why.
pub(super) fn evaluate(
    expression: &Expression,
    data: &[Datum],
    draws: &mut Draws,
) -> Result<Datum, &'static str> {
    let (function, values) = match expression {
        Expression::Value(value) => return Ok(value.clone()),
        Expression::Variable(variable) => return Ok(data[*variable].clone()),
        Expression::Call(function, values) => (*function, values),
    };
    let values: Vec<Datum> =
        values.iter().map(|value| evaluate(value, data, draws)).collect::<Result<_, _>>()?;
    // As in SQL, except where one side decides.
    let is = |value: &Datum| !matches!(value, Datum::Null | Datum::Integer(0));
    match (function, values.as_slice()) {
        (Function::And, [a, b]) => return Ok(truth(is(a) && is(b))),
        (Function::Or, [a, b]) => return Ok(truth(is(a) || is(b))),
        (Function::Not, [Datum::Null]) => return Ok(Datum::Null),
        (Function::Not, [a]) => return Ok(truth(!is(a))),
        (_, values) if values.contains(&Datum::Null) => return Ok(Datum::Null),
        _ => {}
    }
    if let Some(whole) = values.iter().map(whole).collect::<Option<Vec<i64>>>() {
        return of_whole(function, &whole, draws);
    }
    let doubles: Vec<f64> = values.iter().map(double).collect::<Option<_>>().ok_or(KIND)?;
    of_doubles(function, &doubles, &values, draws)
}

fn truth(it: bool) -> Datum {
    Datum::Integer(it.into())
}

fn whole(value: &Datum) -> Option<i64> {
    if let Datum::Integer(number) = value { Some(*number) } else { None }
}

#[allow(clippy::cast_precision_loss)] // as in the server
fn double(value: &Datum) -> Option<f64> {
    match value {
        Datum::Integer(number) => Some(*number as f64),
        Datum::Double(number) => Some(*number),
        _ => None,
    }
}

fn of_whole(function: Function, values: &[i64], draws: &mut Draws) -> Result<Datum, &'static str> {
    let first = values.first().copied().unwrap_or_default();
    let second = values.get(1).copied().unwrap_or_default();
    let zero = "a division by zero";
    let number = match function {
        Function::Add => first.checked_add(second).ok_or(RANGE)?,
        Function::Subtract => first.checked_sub(second).ok_or(RANGE)?,
        Function::Multiply => first.checked_mul(second).ok_or(RANGE)?,
        Function::Divide | Function::Modulo if second == 0 => return Err(zero),
        Function::Divide => first.checked_div(second).ok_or(RANGE)?,
        Function::Modulo => first.checked_rem(second).unwrap_or(0),
        Function::Equal => (first == second).into(),
        Function::Differ => (first != second).into(),
        Function::Less => (first < second).into(),
        Function::LessOrEqual => (first <= second).into(),
        Function::Abs => first.checked_abs().ok_or(RANGE)?,
        Function::Greatest => values.iter().copied().max().unwrap_or_default(),
        Function::Least => values.iter().copied().min().unwrap_or_default(),
        Function::Int => first,
        Function::Random => draws.between(first, second, Random::below)?,
        _ => {
            #[allow(clippy::cast_precision_loss)] // as in the server
            let doubles: Vec<f64> = values.iter().map(|&number| number as f64).collect();
            let values: Vec<Datum> = values.iter().map(|&number| Datum::Integer(number)).collect();
            return of_doubles(function, &doubles, &values, draws);
        }
    };
    Ok(Datum::Integer(number))
}

fn of_doubles(
    function: Function,
    doubles: &[f64],
    values: &[Datum],
    draws: &mut Draws,
) -> Result<Datum, &'static str> {
    let first = doubles.first().copied().unwrap_or_default();
    let second = doubles.get(1).copied().unwrap_or_default();
    let parameter = doubles.get(2).copied().unwrap_or_default();
    let range = || match values {
        [Datum::Integer(from), Datum::Integer(to), ..] => Ok((*from, *to)),
        _ => Err("a random number needs whole numbers as its range"),
    };
    #[allow(clippy::float_cmp)] // as the script says
    Ok(match function {
        Function::Add => Datum::Double(first + second),
        Function::Subtract => Datum::Double(first - second),
        Function::Multiply => Datum::Double(first * second),
        Function::Divide => Datum::Double(first / second),
        Function::Equal => truth(first == second),
        Function::Differ => truth(first != second),
        Function::Less => truth(first < second),
        Function::LessOrEqual => truth(first <= second),
        Function::Abs => Datum::Double(first.abs()),
        Function::Greatest => Datum::Double(doubles.iter().copied().fold(first, f64::max)),
        Function::Least => Datum::Double(doubles.iter().copied().fold(first, f64::min)),
        #[allow(clippy::cast_precision_loss)] // the greatest is refused
        Function::Int if first.is_nan() || first.abs() >= i64::MAX as f64 => return Err(RANGE),
        Function::Int => Datum::Integer(first.round() as i64),
        Function::Double => Datum::Double(first),
        Function::Sqrt => Datum::Double(first.sqrt()),
        Function::RandomGaussian if parameter >= 2.0 => {
            let (from, to) = range()?;
            let number = draws
                .between(from, to, |random, items| spread(items, gaussian(random, parameter)))?;
            Datum::Integer(number)
        }
        Function::RandomExponential if parameter > 0.0 => {
            let (from, to) = range()?;
            let number = draws.between(from, to, |random, items| {
                let cut = (-parameter).exp();
                let share = -(cut + (1.0 - cut) * (1.0 - random.unit())).ln() / parameter;
                spread(items, share)
            })?;
            Datum::Integer(number)
        }
        Function::RandomZipfian if (1.001..=1000.0).contains(&parameter) => {
            let (from, to) = range()?;
            let number = draws.between(from, to, |random, items| {
                Zipfian::new(items, parameter).draw(random) - 1
            })?;
            Datum::Integer(number)
        }
        Function::RandomGaussian | Function::RandomExponential | Function::RandomZipfian => {
            return Err("the parameter of a random number is out of its range");
        }
        _ => return Err(KIND),
    })
}

impl Draws {
    fn between(
        &mut self,
        from: i64,
        to: i64,
        of: impl Fn(&mut Random, u64) -> u64,
    ) -> Result<i64, &'static str> {
        let items = to.checked_sub(from).and_then(|items| u64::try_from(items).ok());
        let items = items.ok_or("a random number needs a range, from the least to the greatest")?;
        Ok(from.wrapping_add_unsigned(of(&mut self.0, items.saturating_add(1))))
    }
}

/// The item that lies at a share of all.
#[allow(clippy::cast_precision_loss)] // beyond 2^53 neighbours are drawn together
fn spread(items: u64, share: f64) -> u64 {
    ((items as f64 * share) as u64).min(items - 1)
}

/// From 0 to 1, normal around the middle, cut at so many standard deviations (Box and Muller 1958).
fn gaussian(random: &mut Random, cut: f64) -> f64 {
    loop {
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
        let at = radius * (2.0 * std::f64::consts::PI * random.unit()).sin();
        if (-cut..cut).contains(&at) {
            return (at + cut) / (2.0 * cut);
        }
    }
}
