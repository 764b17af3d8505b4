use proptest::prelude::*;

use super::super::command::Template;
use super::*;
use crate::protocol::Values;
use crate::protocol::statement::digest;

fn replies(pieces: &[&[u8]]) -> Result<Vec<Reply>, &'static str> {
    let mut decoder = Decoder::new(true);
    let mut rest: Vec<u8> = Vec::new();
    let mut replies = Vec::new();
    for piece in pieces {
        rest.extend_from_slice(piece);
        loop {
            let Decoded { consumed, reply } = decoder.take(&rest)?;
            rest.drain(..consumed);
            match reply {
                Some(reply) => replies.push(reply),
                None => break,
            }
        }
        assert!(rest.len() < crate::protocol::REST_LIMIT);
    }
    Ok(replies)
}

/// A command is built like a reply, but for the number of what it answers.
fn reply(slot: u16, text: &str, contents: &[&str]) -> Vec<u8> {
    let mut values = Values::default();
    for one in contents {
        values.text(|out| out.extend_from_slice(one.as_bytes()));
    }
    let mut out = Vec::new();
    Template::new(text, "d").expect("a document").encode(&values, 0, &mut out);
    out[8..12].copy_from_slice(&i32::from(slot).to_le_bytes());
    out
}

fn stream() -> Vec<u8> {
    let row = concat!(
        r#"{"_id": ?, "a": {"$binary": ?}, "n": null, "o": {"$oid": "56e1fc72e0c917e9c4714161"}, "#,
        r#""r": {"$regularExpression": {"pattern": "a", "options": ""}}, "b": {"$binary": ?}}"#
    );
    let rows = format!(r#"{{"cursor": {{"firstBatch": [{row}, {row}], "id": 0}}, "ok": 1}}"#);
    [
        reply(5, &rows, &["k1", "abc", "d", "k2", "", "e"]),
        reply(1, r#"{"cursor": {"firstBatch": [], "id": 0, "ns": "d.t"}, "ok": 1}"#, &[]),
        reply(2, r#"{"n": 1, "nModified": 0, "ok": 1}"#, &[]),
        reply(3, r#"{"ok": 0, "errmsg": "bad", "code": 59}"#, &[]),
        reply(
            4,
            r#"{"n": 0, "writeErrors": [{"index": 0, "code": 11000, "errmsg": "twice"}], "ok": 1}"#,
            &[],
        ),
    ]
    .concat()
}

#[test]
fn a_write_that_too_few_servers_confirmed_is_an_error() {
    let text =
        r#"{"n": 1, "writeConcernError": {"code": 64, "errmsg": "waiting timed out"}, "ok": 1}"#;
    let mut decoder = Decoder::new(true);
    let found = decoder.take(&reply(1, text, &[])).expect("well-formed").reply.expect("whole");
    assert_eq!(found.status, Status::Error(Label::number(64)));
    assert_eq!(decoder.message(), "waiting timed out");
}

#[test]
fn every_kind_of_reply() {
    let found = replies(&[&stream()]).expect("well-formed");
    let slots: Vec<u16> = found.iter().map(|reply| reply.slot).collect();
    assert_eq!(slots, [5, 1, 2, 3, 4]);
    let contents = [&b"abc"[..], b"d", b"", b"e"].map(digest);
    let sum = contents.iter().fold(0, |sum: u64, one| sum.wrapping_add(*one));
    assert_eq!((found[0].rows, found[0].bytes, found[0].contents), (2, 5, sum));
    assert_eq!(
        (found[1].status, found[2].status, found[2].rows),
        (Status::Missing, Status::Done, 1)
    );
    assert_eq!(found[3].status, Status::Error(Label::new(b"59")));
    assert_eq!(found[4].status, Status::Error(Label::new(b"11000")));
}

#[test]
fn the_message_of_an_error_is_kept() {
    let mut decoder = Decoder::new(false);
    decoder.take(&reply(0, r#"{"ok": 0, "errmsg": "bad"}"#, &[])).expect("well-formed");
    assert_eq!(decoder.message(), "bad");
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    let stream = stream();
    let whole = replies(&[&stream]);
    for at in 0..=stream.len() {
        assert_eq!(replies(&[&stream[..at], &stream[at..]]), whole, "cut at {at}");
    }
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(replies(&bytes), whole);
}

#[test]
fn what_is_no_reply_is_refused() {
    let good = reply(0, r#"{"ok": 1}"#, &[]);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    for bytes in [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        with(12, 1),
        with(16, 1),
        with(20, 1),
        with(0, 10),
        with(0, 200),
        with(21, 4),
        with(25, 0x66),
    ] {
        let more = [&bytes[..], &[0; 300]].concat();
        assert!(replies(&[&more]).is_err(), "{bytes:?}");
    }
    assert!(replies(&[&with(12, 1)]).is_err());
}

#[test]
fn a_long_value_takes_no_memory() {
    let mut decoder = Decoder::new(false);
    let mut start = reply(0, r#"{"cursor": {"firstBatch": [{"a": {"$binary": ?}}]}}"#, &[""]);
    let value = start.windows(3).position(|word| word == b"a\0\0").expect("the field") + 2;
    start.truncate(value);
    start.extend_from_slice(&(1_u32 << 30).to_le_bytes());
    start.push(0);
    start[0..4].copy_from_slice(&i32::MAX.to_le_bytes());
    assert_eq!(decoder.take(&start), Ok(Decoded { consumed: start.len(), reply: None }));
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        assert_eq!(decoder.take(&piece), Ok(Decoded { consumed: piece.len(), reply: None }));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = replies(&[&bytes]);
        let mut whole = reply(0, r#"{"ok": 1}"#, &[]);
        whole.truncate(25);
        whole.extend_from_slice(&bytes);
        let _ = replies(&[&whole]);
    }

    #[test]
    fn nearly_valid_bytes_neither(at in 0..500_usize, byte in any::<u8>(), cut in 0..500_usize) {
        let mut bytes = stream();
        let (at, cut) = (at % bytes.len(), cut % bytes.len());
        bytes[at] = byte;
        let whole = replies(&[&bytes]);
        prop_assert_eq!(replies(&[&bytes[..cut], &bytes[cut..]]).is_ok(), whole.is_ok());
    }
}
