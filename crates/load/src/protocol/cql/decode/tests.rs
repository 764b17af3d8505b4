use proptest::prelude::*;

use super::*;
use crate::protocol::REST_LIMIT;
use crate::protocol::statement::digest;

fn replies(pieces: &[&[u8]]) -> Result<Vec<Reply>, &'static str> {
    let mut decoder = Decoder::new(4, true);
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
        assert!(rest.len() < REST_LIMIT + 2);
    }
    Ok(replies)
}

fn frame(flags: u8, stream: u16, opcode: u8, body: &[u8]) -> Vec<u8> {
    frame_of(4, flags, stream, opcode, body)
}

fn frame_of(version: u8, flags: u8, stream: u16, opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0x80 | version, flags];
    out.extend_from_slice(&stream.to_be_bytes());
    out.push(opcode);
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// Two rows of two columns, one of them null: `EXECUTE` without metadata, by hand from the specification.
pub(in crate::protocol::cql) const ROWS: &[u8] = &[
    0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 2, // kind, flags, columns, rows
    0, 0, 0, 3, b'a', b'b', b'c', 0xff, 0xff, 0xff, 0xff, // abc, null
    0, 0, 0, 1, b'd', 0, 0, 0, 0, // d, empty
];

fn stream() -> Vec<u8> {
    stream_of(4)
}

/// One reply of each kind.
pub(in crate::protocol::cql) fn stream_of(version: u8) -> Vec<u8> {
    let frame = |flags, stream, opcode, body: &[u8]| frame_of(version, flags, stream, opcode, body);
    let none = [&ROWS[..12], &[0; 4]].concat();
    let warned = [&[0, 1, 0, 2, b'h', b'm'][..], ROWS].concat();
    let error = [&[0, 0, 0x22, 0, 0, 3, b'b', b'a', b'd'][..], &[9; 5]].concat();
    [
        frame(0, 7, opcode::RESULT, ROWS),
        frame(0, 3, opcode::RESULT, &[0, 0, 0, 1]),
        frame(0, 4, opcode::RESULT, &none),
        frame(8, 5, opcode::RESULT, &warned),
        frame(0, 6, opcode::ERROR, &error),
    ]
    .concat()
}

#[test]
fn every_kind_of_reply() {
    let found = replies(&[&stream()]).expect("well-formed");
    let slots: Vec<u16> = found.iter().map(|reply| reply.slot).collect();
    assert_eq!(slots, [7, 3, 4, 5, 6]);
    let contents = [&b"abc"[..], b"d", b""].map(digest);
    let sum = contents.iter().fold(0, |sum: u64, one| sum.wrapping_add(*one));
    assert_eq!((found[0].rows, found[0].bytes, found[0].contents), (2, 4, sum));
    assert_eq!((found[1].status, found[2].status), (Status::Done, Status::Missing));
    assert_eq!(found[3], Reply { slot: 5, ..found[0] }, "warnings change nothing");
    assert_eq!(found[4].status, Status::Error(Label::new(b"0x2200")));
}

/// A table that got a column since the statement was prepared: the server says a new id, and here no more.
#[test]
fn the_id_of_a_new_description_is_passed_over() {
    let rows = [&[0, 0, 0, 2, 0, 0, 0, 0x0c, 0, 0, 0, 2, 0, 3, 9, 9, 9][..], &ROWS[12..]].concat();
    let found = replies(&[&frame(0, 7, opcode::RESULT, &rows)]).expect("well-formed");
    assert_eq!(found, replies(&[&frame(0, 7, opcode::RESULT, ROWS)]).expect("well-formed"));
}

#[test]
fn the_message_of_an_error_is_kept() {
    let mut decoder = Decoder::new(4, false);
    let body = [0, 0, 0x22, 0, 0, 3, b'b', b'a', b'd'];
    decoder.take(&frame(0, 0, opcode::ERROR, &body)).expect("well-formed");
    assert_eq!(decoder.message(), "invalid: bad");
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
fn an_endless_cell_takes_no_memory() {
    let mut decoder = Decoder::new(4, false);
    let mut start = frame(0, 0, opcode::RESULT, &ROWS[..16]);
    start[5..9].copy_from_slice(&u32::MAX.to_be_bytes());
    start.extend_from_slice(&i32::MAX.to_be_bytes());
    assert_eq!(decoder.take(&start), Ok(Decoded { consumed: start.len(), reply: None }));
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        assert_eq!(decoder.take(&piece), Ok(Decoded { consumed: piece.len(), reply: None }));
    }
}

#[test]
fn what_is_no_reply_is_refused() {
    for bytes in [
        b"HTTP/1.1 400 Bad Request\r\n".to_vec(),
        frame(1, 0, opcode::RESULT, ROWS),
        frame(0, 0xffff, opcode::RESULT, ROWS),
        frame(0, 0, opcode::READY, &[]),
        frame(0, 0, opcode::RESULT, &[0, 0]),
        frame(0, 0, opcode::RESULT, &ROWS[..20]),
        frame(0, 0, opcode::RESULT, &[0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2]),
    ] {
        assert!(replies(&[&bytes]).is_err(), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = replies(&[&bytes]);
    }

    #[test]
    fn nearly_valid_bytes_neither(at in 0..160_usize, byte in any::<u8>(), cut in 0..160_usize) {
        let mut bytes = stream();
        let (at, cut) = (at % bytes.len(), cut % bytes.len());
        bytes[at] = byte;
        let whole = replies(&[&bytes]);
        prop_assert_eq!(replies(&[&bytes[..cut], &bytes[cut..]]).is_ok(), whole.is_ok());
    }
}

/// What `INSERT … IF NOT EXISTS` answers: `[applied]` and a row, with columns of types in types.
#[test]
fn a_conditional_statements_result_describes_its_columns() {
    let short = |text: &str| [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat();
    let kind = [0, 0x31, 0, 2, 0, 0x21, 0, 9, 0, 0x20, 0, 0x0d, 0, 0]; // tuple<map<int, list<text>>, custom>
    let user = [&[0, 0x30][..], &short("k"), &short("u"), &[0, 1], &short("f"), &[0, 2]].concat();
    for global in [true, false] {
        let table = [short("k"), short("t")].concat();
        let each = if global { Vec::new() } else { table.clone() };
        let body = [
            &[0, 0, 0, 2, 0, 0, 0, u8::from(global), 0, 0, 0, 3][..],
            if global { &table } else { &[] },
            &each,
            &short("[applied]"),
            &[0, 4],
            &each,
            &short("v"),
            &kind,
            &short("c"),
            &each,
            &short("w"),
            &user,
            &[0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, b'x', 0xff, 0xff, 0xff, 0xff],
        ]
        .concat();
        let all = [frame(0, 9, opcode::RESULT, &body), frame(0, 8, opcode::RESULT, ROWS)].concat();
        let pieces: Vec<&[u8]> = all.chunks(1).collect();
        for pieces in [&[all.as_slice()][..], &pieces] {
            let found = replies(pieces).expect("two replies");
            assert_eq!((found.len(), found[0].slot, found[0].rows, found[0].bytes), (2, 9, 1, 2));
            assert_eq!((found[1].slot, found[1].rows), (8, 2));
        }
        let cut = frame(0, 9, opcode::RESULT, &body[..30]);
        assert_eq!(replies(&[&cut]).unwrap_err(), ENDS_EARLY);
    }
    let deep = [&[0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &[0, 0x20].repeat(99)]
        .concat();
    assert!(replies(&[&frame(0, 9, opcode::RESULT, &deep)]).is_err());
}
