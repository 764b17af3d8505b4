//! The transactions, step by step: what each asks for, and what it learns from the reply.

use super::inputs::{Inputs, last_name};
use super::query::Query;
use super::{DISTRICTS, ROLL_BACK_TO_END};
use crate::protocol::{Rows, Values};
use crate::workload::{Datum, Expect, Memory, Next};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::NewOrder, Self::Payment, Self::OrderStatus, Self::Delivery, Self::StockLevel];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new-order",
            Self::Payment => "payment",
            Self::OrderStatus => "order-status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock-level",
        }
    }

    /// Share of all transactions (clause 5.2.3).
    pub(super) fn percent(self) -> u64 {
        match self {
            Self::NewOrder => 45,
            Self::Payment => 43,
            Self::OrderStatus | Self::Delivery | Self::StockLevel => 4,
        }
    }

    /// Keying time and mean think time (clauses 5.2.5.2 and 5.2.5.4).
    pub(super) fn times_s(self) -> (f64, f64) {
        match self {
            Self::NewOrder => (18.0, 12.0),
            Self::Payment => (3.0, 12.0),
            Self::OrderStatus => (2.0, 10.0),
            Self::Delivery | Self::StockLevel => (2.0, 5.0),
        }
    }
}

pub(super) enum Step {
    Begin,
    Commit,
    Ask(Query, Expect),
}

/// What an operation remembers: of the last order or customer, and of the line or district that it is at.
pub(super) const SLOTS: usize = 4;
const ORDER: usize = 0;
const CUSTOMER: usize = 1;
/// A price, a sum, or whether a customer's credit is bad.
const FIGURE: usize = 2;
/// A text, or the quantity in stock before it.
const TEXT: usize = 3;

/// Steps of a line of a new order from [`LINES`] on, and of a district of a delivery from [`FIRST`] on.
const LINES: usize = 6;
const OF_LINE: usize = 4;
const FIRST: usize = 1;
const OF_DISTRICT: usize = 7;

fn number(memory: &Memory, slot: usize) -> i64 {
    if let Datum::Integer(number) = memory.data[slot] { number } else { 0 }
}

fn text(memory: &Memory, slot: usize) -> &[u8] {
    if let Datum::Text(text) = &memory.data[slot] { text } else { &[] }
}

fn put(values: &mut Values, numbers: &[i64]) {
    for &number in numbers {
        values.integer(number);
    }
}

fn put_text(values: &mut Values, text: &[u8]) {
    values.text(|out| out.extend_from_slice(text));
}

/// It must have or touch so many rows.
fn rows(query: Query, rows: u32) -> Step {
    Step::Ask(query, Expect { rows, ..Expect::default() })
}

fn may_miss(query: Query) -> Step {
    Step::Ask(query, Expect { may_miss: true, ..Expect::default() })
}

/// Where a new order's or a delivery's step lies: number of line or district, and step in it.
fn place(at: usize, first: usize, each: usize, count: usize) -> Option<(usize, usize)> {
    let behind = at.checked_sub(first)?;
    (behind < each * count).then_some((behind / each, behind % each))
}

/// The request of the step that the operation is at.
pub(super) fn ask(kind: Kind, of: &Inputs, memory: &Memory, values: &mut Values) -> Step {
    if memory.at == 0 {
        return Step::Begin;
    }
    match kind {
        Kind::NewOrder => new_order(of, memory, values),
        Kind::Payment => payment(of, memory, values),
        Kind::OrderStatus => order_status(of, memory, values),
        Kind::Delivery => delivery(of, memory, values),
        Kind::StockLevel => stock_level(of, memory, values),
    }
}

fn new_order(of: &Inputs, memory: &Memory, values: &mut Values) -> Step {
    let (w, d, order) = (of.warehouse, of.district, number(memory, ORDER));
    if let Some((line, step)) = place(memory.at, LINES, OF_LINE, of.lines) {
        return order_line(of, memory, values, line, step);
    }
    match memory.at {
        1 => {
            put(values, &[w, d, of.customer]);
            rows(Query::Discount, 1)
        }
        2 => {
            put(values, &[w, d]);
            rows(Query::District, 1)
        }
        3 => {
            put(values, &[order + 1, w, d]);
            rows(Query::NextOrder, 1)
        }
        4 => {
            put(values, &[order, d, w, of.customer, of.lines as i64, of.is_local().into()]);
            rows(Query::Order, 1)
        }
        5 => {
            put(values, &[order, d, w]);
            rows(Query::NewOrder, 1)
        }
        _ => Step::Commit,
    }
}

fn order_line(
    of: &Inputs,
    memory: &Memory,
    values: &mut Values,
    number_of_line: usize,
    step: usize,
) -> Step {
    let line = of.line(number_of_line);
    match step {
        0 => {
            put(values, &[line.item]);
            if line.item < 0 { may_miss(Query::Item) } else { rows(Query::Item, 1) }
        }
        1 => {
            put(values, &[line.item, line.supplier]);
            rows(Query::Stock, 1)
        }
        2 => {
            let left = number(memory, CUSTOMER) - line.quantity;
            let left = if left >= 10 { left } else { left + 91 };
            let remote = line.supplier != of.warehouse;
            put(values, &[left, line.quantity, remote.into(), line.item, line.supplier]);
            rows(Query::TakeStock, 1)
        }
        _ => {
            let (w, d) = (of.warehouse, of.district);
            let amount = number(memory, FIGURE) * line.quantity;
            let place = number_of_line as i64 + 1;
            let order = number(memory, ORDER);
            put(values, &[order, d, w, place, line.item, line.supplier, line.quantity, amount]);
            put_text(values, text(memory, TEXT));
            rows(Query::Line, 1)
        }
    }
}

fn payment(of: &Inputs, memory: &Memory, values: &mut Values) -> Step {
    let (w, d, amount, (c_w, c_d)) = (of.warehouse, of.district, of.amount, of.of_customer);
    let customer = number(memory, CUSTOMER);
    match memory.at {
        1 => {
            put(values, &[amount, w]);
            rows(Query::PayWarehouse, 1)
        }
        2 => {
            put(values, &[w]);
            rows(Query::Warehouse, 1)
        }
        3 => {
            put(values, &[amount, w, d]);
            rows(Query::PayDistrict, 1)
        }
        4 => {
            put(values, &[w, d]);
            rows(Query::DistrictName, 1)
        }
        5 => {
            put(values, &[c_w, c_d]);
            put_text(values, last_name(of.name).as_bytes());
            rows(Query::ByName, 1)
        }
        6 => {
            put(values, &[c_w, c_d, customer]);
            rows(Query::Payer, 1)
        }
        7 => {
            put(values, &[c_w, c_d, customer]);
            rows(Query::PayerData, 1)
        }
        8 => {
            put(values, &[amount, amount]);
            let is_bad = number(memory, FIGURE) == 1;
            if is_bad {
                let mut data = format!("{customer} {c_d} {c_w} {d} {w} {amount} ").into_bytes();
                data.extend_from_slice(text(memory, TEXT));
                data.truncate(500);
                put_text(values, &data);
            }
            put(values, &[c_w, c_d, customer]);
            rows(if is_bad { Query::PayBad } else { Query::Pay }, 1)
        }
        9 => {
            put(values, &[c_d, c_w, customer, d, w, amount]);
            put_text(values, b"warehouse    district");
            rows(Query::History, 1)
        }
        _ => Step::Commit,
    }
}

fn order_status(of: &Inputs, memory: &Memory, values: &mut Values) -> Step {
    let (w, d, customer) = (of.warehouse, of.district, number(memory, CUSTOMER));
    match memory.at {
        1 => {
            put(values, &[w, d]);
            put_text(values, last_name(of.name).as_bytes());
            rows(Query::ByName, 1)
        }
        2 => {
            put(values, &[w, d, customer]);
            rows(Query::Customer, 1)
        }
        3 => {
            put(values, &[w, d, customer]);
            rows(Query::LastOrder, 1)
        }
        4 => {
            put(values, &[w, d, number(memory, ORDER)]);
            rows(Query::Lines, 5)
        }
        _ => Step::Commit,
    }
}

fn delivery(of: &Inputs, memory: &Memory, values: &mut Values) -> Step {
    let Some((district, step)) = place(memory.at, FIRST, OF_DISTRICT, DISTRICTS as usize) else {
        return Step::Commit;
    };
    let (w, d, order) = (of.warehouse, district as i64 + 1, number(memory, ORDER));
    match step {
        0 => {
            put(values, &[w, d]);
            return may_miss(Query::Oldest);
        }
        3 => put(values, &[of.carrier, w, d, order]),
        6 => put(values, &[number(memory, FIGURE), w, d, number(memory, CUSTOMER)]),
        _ => put(values, &[w, d, order]),
    }
    match step {
        1 => rows(Query::Deliver, 1),
        2 => rows(Query::Orderer, 1),
        3 => rows(Query::Carrier, 1),
        4 => rows(Query::Delivered, 5),
        5 => rows(Query::Sum, 1),
        _ => rows(Query::Credit, 1),
    }
}

fn stock_level(of: &Inputs, memory: &Memory, values: &mut Values) -> Step {
    let (w, d, next) = (of.warehouse, of.district, number(memory, ORDER));
    match memory.at {
        1 => {
            put(values, &[w, d]);
            rows(Query::LastNumber, 1)
        }
        2 => {
            put(values, &[w, d, next, next - 20, of.threshold]);
            rows(Query::LowStock, 1)
        }
        _ => Step::Commit,
    }
}

/// Takes what is needed from the reply to the step, and goes to the next one.
pub(super) fn learn(kind: Kind, of: &Inputs, memory: &mut Memory, rows: &Rows) -> Next {
    let at = memory.at;
    let digits = |column: usize| rows.digits(0, column).map_or(Datum::Null, Datum::Integer);
    let kept =
        |column: usize| rows.text(0, column).map_or(Datum::Null, |text| Datum::Text(text.to_vec()));
    let named = || {
        // The one in the middle, counted from 1 and rounded up (clause 2.5.2.2).
        let found = rows.digits(rows.len().saturating_sub(1) / 2, 0);
        found.map_or(Datum::Null, Datum::Integer)
    };
    memory.at += 1;
    let last = match kind {
        Kind::NewOrder => {
            match (at, place(at, LINES, OF_LINE, of.lines)) {
                (2, _) => memory.data[ORDER] = digits(0),
                (_, Some((_, 0))) if rows.is_empty() => {
                    memory.at = ROLL_BACK_TO_END; // as meant, of one in a hundred
                    return Next::Request;
                }
                (_, Some((_, 0))) => memory.data[FIGURE] = digits(0),
                (_, Some((_, 1))) => {
                    memory.data[CUSTOMER] = digits(0);
                    memory.data[TEXT] = kept(1 + of.district as usize);
                }
                _ => {}
            }
            LINES + OF_LINE * of.lines
        }
        Kind::Payment => {
            match at {
                4 if !of.by_name => {
                    memory.data[CUSTOMER] = Datum::Integer(of.customer);
                    memory.at = 6;
                }
                5 => memory.data[CUSTOMER] = named(),
                6 => {
                    let is_bad = rows.text(0, 0) == Some(b"BC");
                    memory.data[FIGURE] = Datum::Integer(is_bad.into());
                    memory.at = if is_bad { 7 } else { 8 };
                }
                7 => memory.data[TEXT] = kept(0),
                _ => {}
            }
            10
        }
        Kind::OrderStatus => {
            match at {
                0 if !of.by_name => {
                    memory.data[CUSTOMER] = Datum::Integer(of.customer);
                    memory.at = 2;
                }
                1 => memory.data[CUSTOMER] = named(),
                3 => memory.data[ORDER] = digits(0),
                _ => {}
            }
            5
        }
        Kind::Delivery => {
            match place(at, FIRST, OF_DISTRICT, DISTRICTS as usize) {
                // Nothing to deliver in this district.
                Some((_, 0)) if rows.is_empty() => memory.at = at + OF_DISTRICT,
                Some((_, 0)) => memory.data[ORDER] = digits(0),
                Some((_, 2)) => memory.data[CUSTOMER] = digits(0),
                Some((_, 5)) => memory.data[FIGURE] = digits(0),
                _ => {}
            }
            FIRST + OF_DISTRICT * DISTRICTS as usize
        }
        Kind::StockLevel => {
            if at == 1 {
                memory.data[ORDER] = digits(0);
            }
            3
        }
    };
    if at == last { Next::End } else { Next::Request }
}
