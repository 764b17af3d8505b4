use std::collections::BTreeMap;

use super::*;
use crate::protocol::{Rows, Value};

const SETTINGS: Settings =
    Settings { engine: Engine::Mysql, tables: 2, warehouses: 3, most_tries: 2, think: 0.0 };

/// A reply of one row.
fn row(texts: &[&str]) -> Rows {
    let mut rows = Rows::default();
    rows.put_row(texts);
    rows
}

/// Sends an operation to a server that says these rows to a statement that holds the word, and a row of 7 to others.
fn sent(
    of: &Tpcc,
    mut operation: Operation,
    answers: &[(&str, &[&str])],
    fails: Option<(&str, &[u8])>,
) -> (Vec<(String, Vec<String>)>, Next) {
    let (mut memory, mut sent) = (Memory::default(), Vec::new());
    let mut next = of.next(&mut operation, &mut memory, None);
    while next == Next::Request {
        let mut values = Values::default();
        let request = of.request_of(&mut operation, &mut memory, &mut values);
        let text = of.statements()[request.statement].text.clone();
        let shown = values.iter().map(|value| match value {
            Value::Integer(number) => number.to_string(),
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        });
        let known = answers.iter().find(|(word, _)| text.contains(word));
        let rows = known.map_or_else(
            || row(&["7"; 13]),
            |(_, texts)| if texts.is_empty() { Rows::default() } else { row(texts) },
        );
        let status = match fails {
            Some((word, code)) if text.contains(word) => Status::Error(Label::new(code)),
            _ => Status::Done,
        };
        assert_eq!(values.len(), of.statements()[request.statement].parameters.len(), "{text}");
        sent.push((text, shown.collect()));
        next = of.next(&mut operation, &mut memory, Some(Answer { status, rows: Some(&rows) }));
    }
    (sent, next)
}

fn operation(of: &Tpcc, kind: u8, holds: impl Fn(&Inputs) -> bool) -> (Operation, Inputs) {
    let mut stream = Stream::new(1, 0, 1);
    std::iter::repeat_with(|| of.draw_of(kind, &mut stream))
        .map(|operation| (operation, of.inputs(&operation)))
        .find(|(_, inputs)| holds(inputs))
        .expect("one is drawn")
}

fn count(sent: &[(String, Vec<String>)], word: &str) -> usize {
    sent.iter().filter(|(text, _)| text.contains(word)).count()
}

#[test]
fn kinds_come_as_the_standard_says() {
    let (tpcc, mut stream, mut counts) =
        (Tpcc::new(SETTINGS), Stream::new(1, 0, 1), BTreeMap::new());
    for _ in 0..10_000 {
        *counts.entry(tpcc.draw(&mut stream).kind).or_insert(0_u32) += 1;
    }
    for (kind, percent) in Kind::ALL.into_iter().zip([45, 43, 4, 4, 4]) {
        let found = counts[&(kind as u8)];
        assert!(found.abs_diff(percent * 100) < 200, "{kind:?}: {found}");
    }
}

#[test]
fn a_new_order_takes_its_number_and_prices_from_the_replies() {
    let tpcc = Tpcc::new(SETTINGS);
    let (operation, inputs) = operation(&tpcc, 0, |of| !of.fails && of.district == 4);
    let dist = ["50", "data", "1", "2", "3", "four", "5", "6", "7", "8", "9", "10"];
    let answers: [(&str, &[&str]); 3] = [
        ("d_next_o_id, d_tax", &["3001", "0.10"]),
        ("i_price", &["2.50"]),
        ("s_quantity, s_data", &dist),
    ];
    let (sent, end) = sent(&tpcc, operation, &answers, None);
    assert_eq!((end, sent.len()), (Next::End, 7 + 4 * inputs.lines));
    assert_eq!((sent[0].0.as_str(), sent[sent.len() - 1].0.as_str()), ("BEGIN", "COMMIT"));
    assert_eq!(sent[3].1[0], "3002");
    assert_eq!(sent[4].1[0], "3001");
    let line = inputs.line(0);
    assert_eq!(sent[8].1[0], (50 - line.quantity).to_string());
    assert_eq!(sent[9].1[7..], [(250 * line.quantity).to_string(), "four".to_owned()]);
    let table = format!("order_line{} ", inputs.table + 1);
    assert!(sent[9].0.contains(&table), "{}", sent[9].0);
}

#[test]
fn an_item_that_does_not_exist_rolls_back_as_meant() {
    let tpcc = Tpcc::new(SETTINGS);
    let (operation, inputs) = operation(&tpcc, 0, |of| of.fails);
    let mut sent_all = sent(&tpcc, operation, &[("i_price", &[])], None);
    assert_eq!(sent_all.1, Next::End);
    assert_eq!(sent_all.0.pop().expect("sent").0, "ROLLBACK");
    assert_eq!(inputs.line(inputs.lines - 1).item, -1);
    let mut of = operation;
    let mut memory = Memory { at: 6 + 4 * (inputs.lines - 1), ..Memory::default() };
    memory.data.resize(steps::SLOTS, Datum::Null);
    let request = tpcc.request_of(&mut of, &mut memory, &mut Values::default());
    assert!(request.expect.may_miss, "it is no fault of the server's");
}

#[test]
fn a_payment_by_name_goes_to_the_customer_in_the_middle_and_notes_bad_credit() {
    let tpcc = Tpcc::new(SETTINGS);
    let (by_name, inputs) = operation(&tpcc, 1, |of| of.by_name);
    let bad: [(&str, &[&str]); 3] =
        [("ORDER BY c_first", &["42"]), ("c_credit_lim", &["BC"]), ("c_data FROM", &["old"])];
    let (sent_bad, end) = sent(&tpcc, by_name, &bad, None);
    assert_eq!((end, sent_bad.len()), (Next::End, 11));
    let update = &sent_bad[8];
    assert!(update.1[2].starts_with("42 ") && update.1[2].ends_with(" old"), "{update:?}");
    assert_eq!(update.1[5], "42");
    assert_eq!(sent_bad[5].1[2], inputs::last_name(inputs.name));
    let (by_id, inputs) = operation(&tpcc, 1, |of| !of.by_name);
    let (sent_good, _) = sent(&tpcc, by_id, &[("c_credit_lim", &["GC"])], None);
    assert_eq!(sent_good.len(), 9);
    assert_eq!(sent_good[6].1[4], inputs.customer.to_string());
}

#[test]
fn a_delivery_skips_districts_without_a_new_order() {
    let tpcc = Tpcc::new(SETTINGS);
    let (delivery, _) = operation(&tpcc, 3, |_| true);
    let (all, _) = sent(&tpcc, delivery, &[("SUM", &["12.34"])], None);
    assert_eq!(all.len(), 72);
    let credit = all.iter().find(|(text, _)| text.contains("c_delivery_cnt")).expect("sent");
    assert_eq!(credit.1[0], "1234");
    let (none, end) = sent(&tpcc, delivery, &[("ORDER BY no_o_id", &[])], None);
    assert_eq!((none.len(), end), (12, Next::End));
}

#[test]
fn the_two_that_read_use_what_they_read() {
    let tpcc = Tpcc::new(SETTINGS);
    let (status, _) = operation(&tpcc, 2, |of| of.by_name);
    let (sent_status, _) = sent(&tpcc, status, &[("ORDER BY o_id DESC", &["99"])], None);
    assert_eq!((sent_status.len(), sent_status[4].1[2].as_str()), (6, "99"));
    let (level, _) = operation(&tpcc, 4, |_| true);
    let (sent_level, _) = sent(&tpcc, level, &[("SELECT d_next_o_id FROM", &["3001"])], None);
    assert_eq!(sent_level.len(), 4);
    assert_eq!(sent_level[2].1[2..4], ["3001", "2981"]);
}

#[test]
fn a_deadlock_is_rolled_back_and_tried_again_and_another_error_is_not() {
    let tpcc = Tpcc::new(SETTINGS);
    let (payment, _) = operation(&tpcc, 1, |_| true);
    for (code, end) in [(&b"1213"[..], Next::Again), (b"40001", Next::Again), (b"1146", Next::End)]
    {
        let (sent, found) = sent(&tpcc, payment, &[], Some(("UPDATE district", code)));
        assert_eq!((found, count(&sent, "ROLLBACK"), sent.len()), (end, 1, 5));
    }
}

#[test]
fn each_row_is_filled_once() {
    let fill = Fill::new(SETTINGS);
    let mut found = BTreeMap::new();
    for connection in 0..4 {
        let mut stream = Stream::new(1, connection, 4);
        for _ in 0..fill.operations().div_ceil(4) {
            let mut operation = fill.draw(&mut stream);
            if operation.key >= fill.operations() {
                continue;
            }
            loop {
                let mut values = Values::default();
                let request = fill.request(&mut operation, &mut values);
                let shown: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
                *found.entry((request.statement, shown)).or_insert(0) += 1;
                if request.last {
                    break;
                }
            }
        }
    }
    assert!(found.values().all(|&times| times == 1));
    // In two sets of tables: items, stock and districts of three warehouses.
    assert_eq!(found.len(), 2 * (10 + 3 * 10 + 3 * 10 * 5));
}

#[test]
fn keying_and_thinking_are_those_of_the_standard() {
    let tpcc = Tpcc::new(Settings { think: 1.0, ..SETTINGS });
    let mut stream = Stream::new(1, 0, 1);
    let times = (0..2_000).map(|_| tpcc.think(&tpcc.draw_of(0, &mut stream)).as_secs_f64());
    let mean = times.sum::<f64>() / 2_000.0;
    assert!((mean - 30.0).abs() < 1.0, "{mean}");
}
