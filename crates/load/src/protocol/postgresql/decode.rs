//! Messages of a reply, consumed as they come in: no row is kept, however long it is.

use crate::protocol::statement::Digest;
use crate::protocol::{Decoded, Label, Reply, Status};

/// A reply taken apart up to some point: it ends with `ReadyForQuery`.
#[derive(Debug)]
pub(super) struct Decoder {
    check_contents: bool,
    state: State,
    digest: Digest,
    reply: Reply,
    /// Rows that a statement without a result set says it touched.
    affected: u32,
    /// The statement has a result set.
    reads: bool,
    message: String,
    /// The last error ended the session.
    fatal: bool,
}

/// `left` counts the bytes of the message that are still to come.
#[derive(Clone, Copy, Debug)]
enum State {
    Header,
    Row { left: u32, columns: u16 },
    Value { left: u32, columns: u16, value: u32 },
    Skip { left: u32 },
}

const FRESH: Reply =
    Reply { slot: 0, status: Status::Done, rows: 0, bytes: 0, contents: 0, number: 0 };
const HEADER: usize = 5;
/// No message of the server is longer (`MaxAllocSize`).
const LONGEST: u32 = 1 << 30;
/// Of an error, so much is looked at.
const ERROR: u32 = 8 * 1024;
/// A command tag is some words.
const TAG: u32 = 256;

impl Decoder {
    pub(super) fn new(check_contents: bool) -> Self {
        Self {
            check_contents,
            state: State::Header,
            digest: Digest::default(),
            reply: FRESH,
            affected: 0,
            reads: false,
            message: String::new(),
            fatal: false,
        }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// What the server said before it closed the connection.
    pub(super) fn farewell(&self) -> Option<&str> {
        self.fatal.then_some(&self.message)
    }

    pub(super) fn take(&mut self, input: &[u8]) -> Result<Decoded, &'static str> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            let consumed = match self.state {
                State::Header => match self.header(rest)? {
                    Some(Head::Taken(consumed)) => Some(consumed),
                    Some(Head::Ready(consumed)) => {
                        let reply = Some(self.finished());
                        return Ok(Decoded { consumed: at + consumed, reply });
                    }
                    None => None,
                },
                State::Row { left, columns } => self.column(left, columns, rest)?,
                State::Value { left, columns, value } => self.value(left, columns, value, rest)?,
                State::Skip { left } => {
                    let there = (left as usize).min(rest.len());
                    self.skip(left - there as u32);
                    (there > 0).then_some(there)
                }
            };
            match consumed {
                Some(consumed) => at += consumed,
                None => return Ok(Decoded { consumed: at, reply: None }),
            }
        }
    }

    fn finished(&mut self) -> Reply {
        let mut reply = std::mem::replace(&mut self.reply, FRESH);
        if reply.rows == 0 {
            reply.rows = self.affected;
        }
        if reply.status == Status::Done && reply.rows == 0 && self.reads {
            reply.status = Status::Missing;
        }
        (self.affected, self.reads) = (0, false);
        reply
    }

    fn skip(&mut self, left: u32) {
        self.state = if left == 0 { State::Header } else { State::Skip { left } };
    }

    /// The start of a message, with as much of its body as is needed; `None` where that is not there yet.
    fn header(&mut self, input: &[u8]) -> Result<Option<Head>, &'static str> {
        let Some((header, body)) = input.split_at_checked(HEADER) else { return Ok(None) };
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        let length = length.checked_sub(4).ok_or("a message shorter than its own length")?;
        if length > LONGEST {
            return Err("a message of more than 1 GiB");
        }
        let needed = match header[0] {
            b'D' if length < 2 => return Err("a row without columns"),
            b'D' => 2,
            b'C' if length > TAG => return Err("a command tag that is too long"),
            b'Z' if length != 1 => return Err("a state of the transaction that is no letter"),
            b'C' | b'Z' => length,
            b'E' => length.min(ERROR),
            // Notices, settings, and what Parse, Bind, Describe and Close are answered with.
            b'1' | b'2' | b'3' | b'A' | b'I' | b'K' | b'N' | b'S' | b'T' | b'n' | b's' | b't' => 0,
            b'G' | b'H' | b'W' => return Err("it asks for a COPY, which is not supported"),
            _ => return Err("a message of unknown kind"),
        };
        let Some(body) = body.get(..needed as usize) else { return Ok(None) };
        let consumed = HEADER + needed as usize;
        self.skip(length - needed);
        match header[0] {
            b'D' => {
                let columns = u16::from_be_bytes([body[0], body[1]]);
                self.row(length - needed, columns)?;
            }
            b'C' => self.complete(body),
            b'E' => self.error(body),
            b'Z' => return Ok(Some(Head::Ready(consumed))),
            _ => {}
        }
        Ok(Some(Head::Taken(consumed)))
    }

    fn row(&mut self, left: u32, columns: u16) -> Result<(), &'static str> {
        if columns > 0 {
            self.state = State::Row { left, columns };
            return Ok(());
        }
        if left > 0 {
            return Err("a row that is longer than its columns");
        }
        self.reply.rows = self.reply.rows.saturating_add(1);
        self.state = State::Header;
        Ok(())
    }

    /// The length of a column's value.
    fn column(
        &mut self,
        left: u32,
        columns: u16,
        input: &[u8],
    ) -> Result<Option<usize>, &'static str> {
        let left = left.checked_sub(4).ok_or("a row that is shorter than its columns")?;
        let Some(length) = input.first_chunk::<4>() else { return Ok(None) };
        match u32::from_be_bytes(*length) {
            u32::MAX => self.row(left, columns - 1)?, // NULL
            value if value > left => return Err("a value that is longer than its row"),
            value => {
                self.reply.bytes = self.reply.bytes.saturating_add(value.into());
                if value > 0 {
                    self.state = State::Value { left, columns, value };
                } else {
                    self.value_ended(left, columns)?;
                }
            }
        }
        Ok(Some(4))
    }

    /// What is there of a value; `None` where nothing is.
    fn value(
        &mut self,
        left: u32,
        columns: u16,
        value: u32,
        input: &[u8],
    ) -> Result<Option<usize>, &'static str> {
        let there = (value as usize).min(input.len());
        if there == 0 {
            return Ok(None);
        }
        if self.check_contents {
            self.digest.add(&input[..there]);
        }
        let (left, value) = (left - there as u32, value - there as u32);
        if value > 0 {
            self.state = State::Value { left, columns, value };
        } else {
            self.value_ended(left, columns)?;
        }
        Ok(Some(there))
    }

    fn value_ended(&mut self, left: u32, columns: u16) -> Result<(), &'static str> {
        let digest = std::mem::take(&mut self.digest);
        if self.check_contents {
            self.reply.contents = self.reply.contents.wrapping_add(digest.finish());
        }
        self.row(left, columns - 1)
    }

    /// `SELECT 5`, `INSERT 0 1`, `UPDATE 3`: the last word counts rows.
    fn complete(&mut self, tag: &[u8]) {
        let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
        let number = tag.rsplit(|&byte| byte == b' ').next();
        let number = number.and_then(|word| std::str::from_utf8(word).ok()?.parse::<u64>().ok());
        self.affected = number.map_or(0, |rows| u32::try_from(rows).unwrap_or(u32::MAX));
        self.reads = tag.starts_with(b"SELECT ") || tag.starts_with(b"FETCH ");
    }

    /// Fields of one letter and a text each; a cut one may be the last.
    fn error(&mut self, body: &[u8]) {
        let field = |name: u8| {
            let mut fields = body.split(|&byte| byte == 0);
            fields.find_map(|field| field.strip_prefix(&[name])).unwrap_or_default()
        };
        self.reply.status = Status::Error(Label::new(field(b'C')));
        let text = field(b'M');
        self.message.clear();
        self.message.push_str(&String::from_utf8_lossy(&text[..text.len().min(512)]));
        self.fatal = matches!(field(b'V'), b"FATAL" | b"PANIC");
    }
}

enum Head {
    Taken(usize),
    /// The reply is over.
    Ready(usize),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Status::Done;
    use super::*;
    use crate::protocol::REST_LIMIT;
    use crate::protocol::statement::digest;

    /// What a decoder says of bytes that arrive in pieces, as a connection gives them to it.
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
        let mut decoder = Decoder::new(false);
        let start = b"D\x3f\xff\xff\xff\0\x01\x3f\xff\xff\xf5";
        assert_eq!(decoder.take(start), Ok(Decoded { consumed: start.len(), reply: None }));
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            assert_eq!(decoder.take(&piece), Ok(Decoded { consumed: piece.len(), reply: None }));
        }
    }

    #[test]
    fn what_the_server_said_before_it_closed_is_kept() {
        let mut decoder = Decoder::new(false);
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
        let mut decoder = Decoder::new(false);
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
}
