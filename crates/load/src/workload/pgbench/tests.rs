use super::*;
use crate::protocol::Value;

fn file(text: &str, most_tries: u32) -> Result<Pgbench, String> {
    let name = "f".to_owned();
    let scripts = vec![Chosen { name, built_in: None, text: text.to_owned(), weight: 1.0 }];
    let variables = BTreeMap::from([("n".to_owned(), 3.0)]);
    Pgbench::new(&Settings { scripts, scale: 2, variables, most_tries })
}

fn built_in(chosen: BuiltIn, most_tries: u32) -> Pgbench {
    let (name, text) = (chosen.name().to_owned(), String::new());
    let scripts = vec![Chosen { name, built_in: Some(chosen), text, weight: 1.0 }];
    Pgbench::new(&Settings { scripts, scale: 2, variables: BTreeMap::new(), most_tries })
        .expect("built in")
}

/// What is sent, with values in place of marks, if each request is answered in this way; pauses too.
fn sent(of: &Pgbench, seed: u64, answer: impl Fn(&str) -> Status) -> (Vec<String>, Next) {
    let mut operation = of.draw(&mut Stream::new(seed, 7, 8));
    let (mut memory, mut sent) = (Memory::default(), Vec::new());
    let mut next = of.next(&mut operation, &mut memory, None);
    loop {
        match next {
            Next::Request => {
                let mut values = Values::default();
                let request = of.request_of(&mut operation, &mut memory, &mut values);
                let mut text = of.statements()[request.statement].text.clone();
                for value in values.iter() {
                    let value = match value {
                        Value::Integer(number) => number.to_string(),
                        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    };
                    text = text.replacen('?', &value, 1);
                }
                let status = answer(&text);
                sent.push(text);
                let answer = Some(Answer { status, rows: None });
                next = of.next(&mut operation, &mut memory, answer);
            }
            Next::Pause(time) => {
                sent.push(format!("{time:?}"));
                next = of.next(&mut operation, &mut memory, None);
            }
            Next::Again => {
                memory = Memory { retries: memory.retries + 1, ..Memory::default() };
                next = of.next(&mut operation, &mut memory, None);
            }
            Next::End | Next::Fail(_) => return (sent, next),
        }
    }
}

fn texts(text: &str) -> Vec<String> {
    let (sent, end) = sent(&file(text, 1).expect("a script"), 1, |_| Status::Done);
    assert_eq!(end, Next::End);
    sent
}

#[test]
fn built_in_scripts_are_those_of_pgbench() {
    for (script, length) in
        [(BuiltIn::TpcbLike, 7), (BuiltIn::SimpleUpdate, 5), (BuiltIn::SelectOnly, 1)]
    {
        let (sent, end) = sent(&built_in(script, 1), 1, |_| Status::Done);
        assert_eq!((sent.len(), end), (length, Next::End), "{sent:?}");
    }
    let (sent, _) = sent(&built_in(BuiltIn::TpcbLike, 1), 5, |_| Status::Done);
    let number = |text: &str| text.rsplit(' ').next().and_then(|word| word.parse::<u32>().ok());
    assert!((1..=200_000).contains(&number(&sent[1]).expect("aid")));
    assert_eq!(number(&sent[1]), number(&sent[2]), "one account");
    assert!((1..=20).contains(&number(&sent[3]).expect("tid")));
    assert!((1..=2).contains(&number(&sent[4]).expect("bid")));
}

#[test]
fn expressions_have_the_values_of_pgbench() {
    for (expression, value) in [
        ("1 + 2 * 3 - 4 / 3", "6"),
        ("-7 % 4", "-3"),
        ("(1 + 2) * :n", "9"),
        ("5 / 2.0", "2.5"),
        ("greatest(1, :n, 2) + least(4, 5) + abs(-6)", "13"),
        ("int(2.5) + mod(7, 4)", "6"),
        ("1 < 2 and not 2 >= 3 or false", "1"),
        ("1 <> 1", "0"),
        (":scale * 10 + :client_id", "27"),
        ("random(4, 4)", "4"),
    ] {
        assert_eq!(
            texts(&format!("\\set a {expression}\nSELECT :a;")),
            [format!("SELECT {value}")]
        );
    }
}

#[test]
fn branches_pauses_casts_and_quotes_are_read() {
    let text = "\\if :n > 3\n SELECT 1;\n\\elif :n = 3\n\\sleep 5 ms\n SELECT ':n', :n::int -- :n\n ;\n\\else\nSELECT 3;\n\\endif\nSELECT 4; SELECT 5";
    assert_eq!(texts(text), ["5ms", "SELECT ':n', 3::int", "SELECT 4", "SELECT 5"]);
    assert_eq!(texts("\\if 0\nSELECT 1;\n\\endif\n\\sleep 2"), ["2s"]);
}

#[test]
fn random_numbers_fall_as_their_functions_say() {
    let share = |function: &str, first: i64| {
        let script = file(&format!("\\set a {function}\nSELECT :a;"), 1).expect("a script");
        let below = (0..4000).filter(|&seed| {
            let (texts, _) = sent(&script, seed, |_| Status::Done);
            let number: i64 = texts[0][7..].parse().expect("a number");
            assert!((1..=100).contains(&number), "{function}: {number}");
            number <= first
        });
        f64::from(u32::try_from(below.count()).expect("few")) / 4000.0
    };
    for (function, first, expected) in [
        ("random(1, 100)", 25, 0.25),
        ("random_exponential(1, 100, 2)", 25, 0.455),
        ("random_gaussian(1, 100, 4)", 25, 0.0227),
        ("random_zipfian(1, 100, 1.5)", 1, 0.4144),
    ] {
        let found = share(function, first);
        assert!((found - expected).abs() < 0.03, "{function}: {found}");
    }
}

#[test]
fn a_transaction_that_others_stop_is_rolled_back_and_tried_again_with_the_same_values() {
    let stopped = |text: &str| {
        if text.starts_with("UPDATE pgbench_tellers") {
            Status::Error(Label::new(b"40P01"))
        } else {
            Status::Done
        }
    };
    let (once, _) = sent(&built_in(BuiltIn::TpcbLike, 1), 1, stopped);
    assert_eq!((once.len(), once[4].as_str()), (5, "ROLLBACK"));
    let (twice, _) = sent(&built_in(BuiltIn::TpcbLike, 2), 1, stopped);
    assert_eq!(twice, [once.clone(), once].concat());
    let refused = |_: &str| Status::Error(Label::new(b"42P01"));
    let (sent, end) = sent(&built_in(BuiltIn::TpcbLike, 9), 1, refused);
    assert_eq!((sent.len(), end), (2, Next::End), "no other try would succeed");
}

#[test]
fn what_a_script_cannot_do_ends_its_operation() {
    for text in [
        "\\set a 1 / 0\nSELECT :a;",
        "\\set a random(2, 1)\nSELECT :a;",
        "\\set a null\nSELECT :a;",
    ] {
        let (sent, end) = sent(&file(text, 1).expect("a script"), 1, |_| Status::Done);
        assert!(sent.is_empty() && matches!(end, Next::Fail(_)), "{text}: {end:?}");
    }
}

#[test]
fn what_is_no_script_is_refused_with_its_line() {
    for (text, why) in [
        ("SELECT 1;\n\\gset\n", "line 2: tare-load has \\set"),
        ("SELECT :m;", "nothing sets :m"),
        ("\\set a hash(1)\nSELECT 1;", "line 1: tare-load has no function `hash`"),
        ("\\set a 1 +\nSELECT 1;", "cut short"),
        ("\\if 1\nSELECT 1;", "no \\endif"),
        ("\\endif\nSELECT 1;", "without \\if"),
        ("SELECT 1\n\\set a 1\n", "line 2: a statement must end with ;"),
        ("\\set a 1", "there is no statement"),
        ("\\sleep 1 h\nSELECT 1;", "the unit"),
    ] {
        let error = file(text, 1).err().expect(text);
        assert!(error.contains(why), "{text}: {error}");
    }
}
