use proptest::prelude::*;

use super::Status::Done;
use super::*;
use crate::protocol::REST_LIMIT;
use crate::protocol::statement::digest;

fn decoder(check_contents: bool) -> Decoder {
    Decoder::new(&Access { check_contents, keeps_rows: true, ..Access::default() })
}

/// What a decoder says of bytes that arrive in pieces, as a connection gives them to it.
fn replies(pieces: &[&[u8]]) -> Result<Vec<Reply>, &'static str> {
    let mut decoder = decoder(true);
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

/// Sent by PostgreSQL 15.18: `SELECT 7, 'abc', NULL, ''`, an `UPDATE` of three rows, a division by zero.
const STREAM: &[u8] =
    b"2\0\0\0\x04D\0\0\0\x1a\0\x04\0\0\0\x017\0\0\0\x03abc\xff\xff\xff\xff\0\0\0\0\
    C\0\0\0\rSELECT 1\0Z\0\0\0\x05I\
    2\0\0\0\x04C\0\0\0\rUPDATE 3\0Z\0\0\0\x05I\
    2\0\0\0\x04E\0\0\0\x41SERROR\0VERROR\0C22012\0Mdivision by zero\0\
    Fint.c\0L869\0Rint4div\0\0Z\0\0\0\x05I";

#[test]
fn rows_touched_rows_and_errors() {
    let found = replies(&[STREAM]).expect("well-formed");
    let zero = Status::Error(Label::new(b"22012"));
    let statuses: Vec<Status> = found.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses, [Done, Done, zero]);
    let rows: Vec<u32> = found.iter().map(|reply| reply.rows).collect();
    assert_eq!(rows, [1, 3, 0]);
    assert_eq!(found[0].bytes, 4, "a NULL has none");
    let contents = [b"7" as &[u8], b"abc", b""].map(digest);
    assert_eq!(found[0].contents, contents.into_iter().fold(0, u64::wrapping_add));
}

#[test]
fn the_rows_of_a_reply_are_kept_until_the_next() {
    let mut decoder = decoder(false);
    let taken = decoder.take(STREAM).expect("well-formed");
    let rows = decoder.rows().expect("kept");
    let found: Vec<_> = (0..5).map(|column| rows.text(0, column)).collect();
    assert_eq!(found, [Some(&b"7"[..]), Some(b"abc"), None, Some(b""), None]);
    decoder.take(&STREAM[taken.consumed..]).expect("well-formed");
    assert!(decoder.rows().expect("kept").is_empty(), "an UPDATE has none");
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    let whole = replies(&[STREAM]);
    for at in 0..=STREAM.len() {
        assert_eq!(replies(&[&STREAM[..at], &STREAM[at..]]), whole, "cut at {at}");
    }
    let bytes: Vec<&[u8]> = STREAM.chunks(1).collect();
    assert_eq!(replies(&bytes), whole);
}

#[test]
fn a_read_without_a_row_is_missing_and_a_write_that_touches_none_is_not() {
    let statuses = |tag: &[u8]| {
        let length = (4 + tag.len() as u32 + 1).to_be_bytes();
        let bytes = [b"C", &length[..], tag, b"\0Z\0\0\0\x05I"].concat();
        let found = replies(&[&bytes]).expect("well-formed");
        found.iter().map(|reply| reply.status).collect::<Vec<_>>()
    };
    assert_eq!(statuses(b"SELECT 0"), [Status::Missing]);
    assert_eq!(statuses(b"FETCH 0"), [Status::Missing]);
    assert_eq!(statuses(b"SELECT 3"), [Done], "of CREATE TABLE AS");
    for tag in [&b"UPDATE 0"[..], b"DELETE 0", b"INSERT 0 0", b"BEGIN", b"COMMIT"] {
        assert_eq!(statuses(tag), [Done], "{}", String::from_utf8_lossy(tag));
    }
}

#[test]
fn a_gigabyte_in_one_value_takes_no_memory() {
    let mut decoder = decoder(false);
    let start = b"D\x3f\xff\xff\xff\0\x01\x3f\xff\xff\xf5";
    assert_eq!(decoder.take(start), Ok(Decoded { consumed: start.len(), reply: None }));
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        assert_eq!(decoder.take(&piece), Ok(Decoded { consumed: piece.len(), reply: None }));
    }
}

#[test]
fn what_the_server_said_before_it_closed_is_kept() {
    let mut decoder = decoder(false);
    assert_eq!(decoder.farewell(), None);
    let last = b"E\0\0\0\x74SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\
        Fpostgres.c\0L3211\0RProcessInterrupts\0\0";
    let taken = decoder.take(last).expect("well-formed");
    assert_eq!(taken, Decoded { consumed: last.len(), reply: None });
    assert_eq!(decoder.farewell(), Some("terminating connection due to administrator command"));
}

#[test]
fn a_long_error_is_cut() {
    let mut bytes = b"E\0\x01\0\x04C22001\0M".to_vec();
    bytes.resize(HEADER + (1 << 16), b'x');
    bytes.extend_from_slice(b"Z\0\0\0\x05I");
    let mut decoder = decoder(false);
    let taken = decoder.take(&bytes).expect("well-formed");
    assert_eq!(taken.consumed, bytes.len());
    let status = taken.reply.map(|reply| reply.status);
    assert_eq!(status, Some(Status::Error(Label::new(b"22001"))));
    assert_eq!(decoder.message().len(), 512);
}

#[test]
fn what_is_not_postgresql_is_refused() {
    for bytes in [
        &b"HTTP/1.1 400 Bad Request\r\n"[..],
        b"D\0\0\0\x05\0",
        b"D\0\0\0\x07\0\0x",
        b"D\0\0\0\x0a\0\x01\0\0\0\x05",
        b"D\0\0\0\x08\0\x01\0\0",
        b"D\0\0\0\x0a\0\x01\xff\xff\xff\xfe",
        b"Z\0\0\0\x06II",
        b"2\0\0\0\x03",
        b"2\x7f\xff\xff\xff",
        b"G\0\0\0\x08\0\0\0\0",
    ] {
        assert!(replies(&[bytes]).is_err(), "{:?}", String::from_utf8_lossy(bytes));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = replies(&[&bytes]);
    }

    #[test]
    fn nearly_valid_bytes_neither(
        at in 0..STREAM.len(), byte in any::<u8>(), cut in 0..STREAM.len(),
    ) {
        let mut bytes = STREAM.to_vec();
        bytes[at] = byte;
        let whole = replies(&[&bytes]);
        prop_assert_eq!(replies(&[&bytes[..cut], &bytes[cut..]]).is_ok(), whole.is_ok());
    }
}
