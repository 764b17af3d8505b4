use proptest::prelude::*;

use super::Status::Done;
use super::*;
use crate::protocol::REST_LIMIT;
use crate::protocol::statement::digest;

fn decoder(check_contents: bool, without_eof: bool) -> Decoder {
    let access = Access { check_contents, keeps_rows: true, ..Access::default() };
    Decoder::new(&access, without_eof)
}

/// What a decoder says of bytes that arrive in pieces, as a connection gives them to it.
fn replies(pieces: &[&[u8]], without_eof: bool) -> Result<Vec<Reply>, &'static str> {
    let mut decoder = decoder(true, without_eof);
    decoder.pending = 1_000;
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
        assert!(rest.len() < REST_LIMIT);
    }
    Ok(replies)
}

/// Sent by `MariaDB` 10.11.19: two rows of an int, a char, a decimal, a datetime, a double and a blob; an
/// `UPDATE` of two rows; no row; a duplicate key.
const STREAM: &[u8] =
    b"\x01\0\0\x01\x06 \0\0\x02\x03def\x04test\x01t\x01t\x02id\x02id\x0c?\0\x0b\0\0\0\x03\x03P\0\
    \0\0\x1e\0\0\x03\x03def\x04test\x01t\x01t\x01c\x01c\x0c-\0\xe0\x01\0\0\xfe\0\0\0\0\0\x1e\0\
    \0\x04\x03def\x04test\x01t\x01t\x01n\x01n\x0c?\0\x0c\0\0\0\xf6\0\0\x02\0\0\x1e\0\0\x05\x03\
    def\x04test\x01t\x01t\x01d\x01d\x0c?\0\x13\0\0\0\x0c\x80\0\0\0\0\x1e\0\0\x06\x03def\x04te\
    st\x01t\x01t\x01f\x01f\x0c?\0\x16\0\0\0\x05\0\0\x1f\0\0\x1e\0\0\x07\x03def\x04test\x01t\x01\
    t\x01b\x01b\x0c?\0\xff\xff\0\0\xfc\x90\0\0\0\0\x1f\0\0\x08\0\x80\x01\0\0\0\x03abc\x041.50\
    \x07\xe8\x07\x01\x02\x03\x04\x05\0\0\0\0\0\0\x04@\x17\0\0\x09\0 \x02\0\0\0\0\x042.50\0\0\0\
    \0\0\0\x04@\x02xy\x07\0\0\x0a\xfe\0\0\x22\0\0\x000\0\0\x01\0\x02\0\x22\0\0\0(Rows matched: \
    2  Changed: 0  Warnings: 0\x01\0\0\x01\x01\x1e\0\0\x02\x03def\x04test\x01t\x01t\x01c\x01c\
    \x0c-\0\xe0\x01\0\0\xfe\0\0\0\0\0\x07\0\0\x03\xfe\0\0\x02\0\0\0.\0\0\x01\xff&\x04#23000Du\
    plicate entry '1' for key 'PRIMARY'";
/// The same to a client that wants `EOF`.
const WITH_EOF: &[u8] =
    b"\x01\0\0\x01\x06 \0\0\x02\x03def\x04test\x01t\x01t\x02id\x02id\x0c?\0\x0b\0\0\0\x03\x03P\0\
    \0\0\x1e\0\0\x03\x03def\x04test\x01t\x01t\x01c\x01c\x0c-\0\xe0\x01\0\0\xfe\0\0\0\0\0\x1e\0\
    \0\x04\x03def\x04test\x01t\x01t\x01n\x01n\x0c?\0\x0c\0\0\0\xf6\0\0\x02\0\0\x1e\0\0\x05\x03\
    def\x04test\x01t\x01t\x01d\x01d\x0c?\0\x13\0\0\0\x0c\x80\0\0\0\0\x1e\0\0\x06\x03def\x04te\
    st\x01t\x01t\x01f\x01f\x0c?\0\x16\0\0\0\x05\0\0\x1f\0\0\x1e\0\0\x07\x03def\x04test\x01t\x01\
    t\x01b\x01b\x0c?\0\xff\xff\0\0\xfc\x90\0\0\0\0\x05\0\0\x08\xfe\0\0\x22\0\x1f\0\0\x09\0\x80\
    \x01\0\0\0\x03abc\x041.50\x07\xe8\x07\x01\x02\x03\x04\x05\0\0\0\0\0\0\x04@\x17\0\0\x0a\0 \
    \x02\0\0\0\0\x042.50\0\0\0\0\0\0\x04@\x02xy\x05\0\0\x0b\xfe\0\0\x22\x000\0\0\x01\0\x02\0\x22\
    \0\0\0(Rows matched: 2  Changed: 0  Warnings: 0\x01\0\0\x01\x01\x1e\0\0\x02\x03def\x04tes\
    t\x01t\x01t\x01c\x01c\x0c-\0\xe0\x01\0\0\xfe\0\0\0\0\0\x05\0\0\x03\xfe\0\0\x02\0\x05\0\0\x04\
    \xfe\0\0\x02\0.\0\0\x01\xff&\x04#23000Duplicate entry '1' for key 'PRIMARY'";

#[test]
fn rows_touched_rows_and_errors() {
    for (stream, without_eof) in [(STREAM, true), (WITH_EOF, false)] {
        let found = replies(&[stream], without_eof).expect("well-formed");
        let duplicate = Status::Error(Label::new(b"1062"));
        let statuses: Vec<Status> = found.iter().map(|reply| reply.status).collect();
        assert_eq!(statuses, [Done, Done, Status::Missing, duplicate], "a SELECT without a row");
        let rows: Vec<u32> = found.iter().map(|reply| reply.rows).collect();
        assert_eq!(rows, [2, 2, 0, 0]);
        // Each 4 of an int, 4 of a decimal and 8 of a double.
        assert_eq!(found[0].bytes, 2 * (4 + 4 + 8) + 3 + 7 + 2);
        let texts = [b"abc" as &[u8], b"", b"xy", b"1.50", b"2.50"].map(digest);
        let numbers = [1_i32, 2].map(|number| digest(&number.to_le_bytes()));
        let doubles = [2.5_f64; 2].map(|number| digest(&number.to_le_bytes()));
        let date = digest(b"\xe8\x07\x01\x02\x03\x04\x05");
        let all = texts.iter().chain(&numbers).chain(&doubles).chain([&date]);
        assert_eq!(found[0].contents, all.fold(0_u64, |sum, one| sum.wrapping_add(*one)));
    }
}

#[test]
fn the_rows_of_a_reply_are_kept_with_their_numbers_written_out() {
    let mut decoder = decoder(false, true);
    decoder.pending = 2;
    let taken = decoder.take(STREAM).expect("well-formed");
    let rows = decoder.rows().expect("kept");
    let found: Vec<_> = [0, 1, 2, 5].iter().map(|&column| rows.text(0, column)).collect();
    assert_eq!(found, [Some(&b"1"[..]), Some(b"abc"), Some(b"1.50"), None]);
    assert_eq!((rows.len(), rows.digits(1, 2), rows.text(1, 1)), (2, Some(250), Some(&b""[..])));
    decoder.take(&STREAM[taken.consumed..]).expect("well-formed");
    assert!(decoder.rows().expect("kept").is_empty(), "an UPDATE has none");
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    for (stream, without_eof) in [(STREAM, true), (WITH_EOF, false)] {
        let whole = replies(&[stream], without_eof);
        for at in 0..=stream.len() {
            let cut = replies(&[&stream[..at], &stream[at..]], without_eof);
            assert_eq!(cut, whole, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(replies(&bytes, without_eof), whole);
    }
}

#[test]
fn a_write_that_touches_no_row_is_not_missing() {
    let found = replies(&[&packet(1, &[0, 0, 0, 2, 0, 0, 0])], true).expect("well-formed");
    assert_eq!((found[0].status, found[0].rows), (Done, 0));
}

fn packet(count: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_le_bytes();
    [&length[..3], &[count], body].concat()
}

/// One column of a type, then what follows.
fn result(column: u8, rows: &[&[u8]]) -> Vec<u8> {
    let mut definition = vec![3, b'd', b'e', b'f', 0, 0, 0, 0, 0, 12, 33, 0, 0, 0, 0, 0];
    definition.extend_from_slice(&[column, 0, 0, 0, 0, 0]);
    [packet(1, &[1]), packet(2, &definition), rows.concat()].concat()
}

#[test]
fn a_value_longer_than_a_packet_takes_no_memory() {
    // 0xfe: eight bytes of length.
    let first = [&[0xff, 0xff, 0xff, 3, 0, 0, 0xfe][..], &(1_u64 << 30).to_le_bytes()].concat();
    let mut decoder = decoder(false, true);
    decoder.expect();
    let start = result(252, &[&first]);
    assert_eq!(decoder.take(&start), Ok(Decoded { consumed: start.len(), reply: None }));
    let piece = vec![b'x'; LONGEST as usize - 11];
    assert_eq!(decoder.take(&piece), Ok(Decoded { consumed: piece.len(), reply: None }));
    for count in 4..60 {
        let piece = packet(count, &vec![b'x'; LONGEST as usize]);
        assert_eq!(decoder.take(&piece), Ok(Decoded { consumed: piece.len(), reply: None }));
    }
}

#[test]
fn a_row_of_just_one_packet_is_followed_by_an_empty_one() {
    let value = vec![b'x'; LONGEST as usize - 6];
    let length = (value.len() as u32).to_le_bytes();
    let row = packet(3, &[&[0, 0, 0xfd][..], &length[..3], &value].concat());
    let end = packet(5, &[0xfe, 0, 0, 2, 0, 0, 0]);
    let stream = result(252, &[&row, &packet(4, &[]), &end]);
    let found = replies_of_any_length(&stream).expect("well-formed");
    assert_eq!((found.rows, found.bytes), (1, value.len() as u64));
    assert!(replies_of_any_length(&result(252, &[&row, &end])).is_err());
}

fn replies_of_any_length(stream: &[u8]) -> Result<Reply, &'static str> {
    let mut decoder = decoder(false, true);
    decoder.expect();
    decoder.take(stream)?.reply.ok_or("it goes on")
}

#[test]
fn what_the_server_said_before_it_closed_is_kept() {
    let last = packet(0, b"\xff\x87\x07#70100Connection was killed");
    let mut decoder = decoder(false, true);
    let taken = decoder.take(&last).expect("well-formed");
    assert_eq!(taken, Decoded { consumed: last.len(), reply: None });
    assert_eq!(decoder.farewell(), Some("Connection was killed"));
}

#[test]
fn what_is_not_mysql_is_refused() {
    let row = |row: &[u8]| result(253, &[&packet(3, row)]);
    for bytes in [
        b"HTTP/1.1 400 Bad Request\r\n".to_vec(),
        packet(1, &[]),
        packet(1, &[0, 1]),
        packet(1, &[0xfb, b'/']),
        packet(1, &[0xff, 1]),
        packet(1, &[0xfc, 0xff, 0xff]),
        packet(1, &[0xfe]),
        row(&[5, b'h']),
        row(&[0, 0]),
        row(&[0, 0, 2, b'a']),
        row(&[0, 0, 1, b'a', b'b']),
        row(&[0]),
    ] {
        assert!(replies(&[&bytes], true).is_err(), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), eof in any::<bool>()) {
        let _ = replies(&[&bytes], eof);
    }

    #[test]
    fn nearly_valid_bytes_neither(
        at in 0..STREAM.len(), byte in any::<u8>(), cut in 0..STREAM.len(),
    ) {
        let mut bytes = STREAM.to_vec();
        bytes[at] = byte;
        let whole = replies(&[&bytes], true);
        prop_assert_eq!(replies(&[&bytes[..cut], &bytes[cut..]], true).is_ok(), whole.is_ok());
    }
}
