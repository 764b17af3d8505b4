//! Packets of a reply, consumed as they come in: no row is kept, however long it is.

use super::packet::{HEADER, LONGEST, Reader};
use super::row::Row;
use crate::protocol::{Decoded, Label, Reply, Status};

/// A reply taken apart up to some point: `OK`, an error, or result sets.
#[derive(Debug)]
pub(super) struct Decoder {
    check_contents: bool,
    /// The server ends columns with `OK` and no packet of their own (`CLIENT_DEPRECATE_EOF`).
    without_eof: bool,
    stage: Stage,
    /// Requests that were sent and not yet answered: what comes without one is a farewell.
    asked: u64,
    row: Row,
    reply: Reply,
    message: String,
    dismissed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// `OK`, an error, or the number of columns.
    Start,
    Columns {
        left: u16,
    },
    ColumnsEnd,
    /// A row, or what ends them.
    Rows,
    /// Within a row.
    Row,
}

const FRESH: Reply =
    Reply { slot: 0, status: Status::Done, rows: 0, bytes: 0, contents: 0, number: 0 };
/// Packets other than rows are looked at as a whole; none of them is longer.
const WHOLE: u32 = 16 * 1024;
const MOST_COLUMNS: u64 = 4096;
const MORE_RESULTS: u16 = 8;

impl Decoder {
    pub(super) fn new(check_contents: bool, without_eof: bool) -> Self {
        Self {
            check_contents,
            without_eof,
            stage: Stage::Start,
            asked: 0,
            row: Row::default(),
            reply: FRESH,
            message: String::new(),
            dismissed: false,
        }
    }

    /// A request was sent.
    pub(super) fn expect(&mut self) {
        self.asked += 1;
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// What the server said, unasked, before it closed the connection.
    pub(super) fn farewell(&self) -> Option<&str> {
        self.dismissed.then_some(&self.message)
    }

    pub(super) fn take(&mut self, input: &[u8]) -> Result<Decoded, &'static str> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            if self.stage == Stage::Row {
                let Some(consumed) = self.row.take(rest, self.check_contents, &mut self.reply)?
                else {
                    return Ok(Decoded { consumed: at, reply: None });
                };
                at += consumed;
                if self.row.is_over() {
                    self.stage = Stage::Rows;
                }
                continue;
            }
            let Some((header, body)) = rest.split_first_chunk::<HEADER>() else {
                return Ok(Decoded { consumed: at, reply: None });
            };
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
            if self.stage == Stage::Rows {
                let Some(&first) = body.first() else {
                    return Ok(Decoded { consumed: at, reply: None });
                };
                // What ends rows starts with 254, too long a row with the length of its first value.
                let ends = first == 0xff || (first == 0xfe && length < LONGEST);
                if !ends {
                    self.row.begin(first, length)?;
                    self.stage = Stage::Row;
                    at += HEADER + 1;
                    continue;
                }
            }
            if length == 0 || length > WHOLE {
                return Err("a packet of a length that it cannot have");
            }
            let Some(body) = body.get(..length as usize) else {
                return Ok(Decoded { consumed: at, reply: None });
            };
            at += HEADER + body.len();
            if self.whole(body)? {
                let reply = std::mem::replace(&mut self.reply, FRESH);
                return Ok(Decoded { consumed: at, reply: Some(reply) });
            }
        }
    }

    /// A packet that is no row; returns whether the reply is over.
    fn whole(&mut self, body: &[u8]) -> Result<bool, &'static str> {
        let first = body[0];
        if first == 0xff {
            return self.error(body);
        }
        match self.stage {
            Stage::Start if self.asked == 0 => Err("a reply that nobody asked for"),
            Stage::Start if first == 0 => self.ok(body),
            Stage::Start if first == 0xfb => Err("it asks for a local file, which is not sent"),
            Stage::Start => {
                let columns = Reader::new(body).number().ok_or("a number of columns cut short")?;
                if columns == 0 || columns > MOST_COLUMNS {
                    return Err("more columns than a table can have");
                }
                self.row.columns.clear();
                self.stage = Stage::Columns { left: columns as u16 };
                Ok(false)
            }
            Stage::Columns { left } => {
                self.row.columns.push(column_type(body)?);
                self.stage = match left - 1 {
                    0 if self.without_eof => Stage::Rows,
                    0 => Stage::ColumnsEnd,
                    left => Stage::Columns { left },
                };
                Ok(false)
            }
            Stage::ColumnsEnd if first == 0xfe => {
                self.stage = Stage::Rows;
                Ok(false)
            }
            Stage::ColumnsEnd => Err("columns without an end"),
            Stage::Rows | Stage::Row if self.without_eof => self.ok(body),
            Stage::Rows | Stage::Row => {
                let status = body.get(3..5).ok_or("an end of rows cut short")?;
                Ok(self.ended(u16::from_le_bytes([status[0], status[1]])))
            }
        }
    }

    fn ok(&mut self, body: &[u8]) -> Result<bool, &'static str> {
        let mut reader = Reader::new(&body[1..]);
        let parts = (reader.number(), reader.number(), reader.u16());
        let (Some(affected), Some(_), Some(status)) = parts else {
            return Err("an OK cut short");
        };
        if self.stage == Stage::Start {
            let affected = u32::try_from(affected).unwrap_or(u32::MAX);
            self.reply.rows = self.reply.rows.saturating_add(affected);
        }
        Ok(self.ended(status))
    }

    /// A result is over; the reply is, too, unless a procedure has more of them.
    fn ended(&mut self, status: u16) -> bool {
        self.stage = Stage::Start;
        let over = status & MORE_RESULTS == 0;
        if over {
            self.asked = self.asked.saturating_sub(1);
        }
        over
    }

    fn error(&mut self, body: &[u8]) -> Result<bool, &'static str> {
        let code = body.get(1..3).ok_or("an error without a number")?;
        let code = u16::from_le_bytes([code[0], code[1]]);
        let text = &body[3..];
        // The SQLSTATE: `#` and five letters.
        let text =
            if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
        self.message.clear();
        self.message.push_str(&String::from_utf8_lossy(&text[..text.len().min(512)]));
        self.stage = Stage::Start;
        if self.asked == 0 {
            self.dismissed = true;
            return Ok(false);
        }
        self.asked -= 1;
        self.reply.status = Status::Error(Label::number(code.into()));
        Ok(true)
    }
}

/// It stands six bytes before the end, behind names of any length.
fn column_type(body: &[u8]) -> Result<u8, &'static str> {
    if body.len() < 22 {
        return Err("a column that is no definition");
    }
    Ok(body[body.len() - 6])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Status::Done;
    use super::*;
    use crate::protocol::REST_LIMIT;
    use crate::protocol::statement::digest;

    /// What a decoder says of bytes that arrive in pieces, as a connection gives them to it.
    fn replies(pieces: &[&[u8]], without_eof: bool) -> Result<Vec<Reply>, &'static str> {
        let mut decoder = Decoder::new(true, without_eof);
        decoder.asked = 1_000;
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
    const STREAM: &[u8] = b"\x01\0\0\x01\x06 \0\0\x02\x03def\x04test\x01t\x01t\x02id\x02id\x0c?\0\x0b\0\0\0\x03\x03P\0\
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
    const WITH_EOF: &[u8] = b"\x01\0\0\x01\x06 \0\0\x02\x03def\x04test\x01t\x01t\x02id\x02id\x0c?\0\x0b\0\0\0\x03\x03P\0\
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
            assert_eq!(statuses, [Done, Done, Done, duplicate]);
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
        let mut decoder = Decoder::new(false, true);
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
        let mut decoder = Decoder::new(false, true);
        decoder.expect();
        decoder.take(stream)?.reply.ok_or("it goes on")
    }

    #[test]
    fn what_the_server_said_before_it_closed_is_kept() {
        let last = packet(0, b"\xff\x87\x07#70100Connection was killed");
        let mut decoder = Decoder::new(false, true);
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
}
