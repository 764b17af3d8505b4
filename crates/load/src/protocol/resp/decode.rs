//! Replies, consumed as they come in: no content is kept, however long it is.

use super::each::Kept;
use crate::protocol::statement::Digest;
use crate::protocol::{Access, Decoded, Label, REST_LIMIT, Reply, Rows, Status};

/// A reply taken apart up to some point.
#[derive(Debug)]
pub(super) struct Decoder {
    check_contents: bool,
    /// Values still to come in this reply: 1 before it starts.
    to_come: u64,
    /// Bytes still to come of a bulk string, and of the line end behind it.
    bulk: Option<u64>,
    digest: Digest,
    reply: Reply,
    /// The reply is a list, whose elements may all be nil.
    list: bool,
    /// It answers nothing: the server sent it unasked (a push of RESP 3).
    push: bool,
    /// Values of the last reply, in one row.
    rows: Option<Rows>,
    message: String,
}

const FRESH: Reply =
    Reply { slot: 0, status: Status::Done, rows: 0, bytes: 0, contents: 0, number: 0 };
const LINE_END: u64 = 2;

impl Decoder {
    pub(super) fn new(access: &Access) -> Self {
        Self {
            check_contents: access.check_contents,
            to_come: 1,
            bulk: None,
            digest: Digest::default(),
            reply: FRESH,
            list: false,
            push: false,
            rows: access.keeps_rows.then(Rows::default),
            message: String::new(),
        }
    }

    pub(super) fn rows(&self) -> Option<&Rows> {
        self.rows.as_ref()
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Bulk strings are added to `kept`, where there is one.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        mut kept: Option<&mut Kept>,
    ) -> Result<Decoded, &'static str> {
        let mut at = 0;
        loop {
            if let Some(left) = self.bulk {
                let kept = kept.as_deref_mut().filter(|_| !self.push);
                at += self.content(left, &input[at..], kept)?;
                if self.bulk.is_some() {
                    return Ok(Decoded { consumed: at, reply: None });
                }
            } else {
                let Some((line, length)) = line(&input[at..])? else {
                    return Ok(Decoded { consumed: at, reply: None });
                };
                self.value(line)?;
                at += length;
            }
            if self.to_come == 0 && self.push {
                (self.push, self.list, self.to_come, self.reply) = (false, false, 1, FRESH);
            } else if self.to_come == 0 {
                return Ok(Decoded { consumed: at, reply: Some(self.finished()) });
            }
        }
    }

    fn finished(&mut self) -> Reply {
        let mut reply = std::mem::replace(&mut self.reply, FRESH);
        if reply.status == Status::Done && self.list && reply.rows == 0 {
            reply.status = Status::Missing;
        }
        self.to_come = 1;
        self.list = false;
        if let Some(rows) = &mut self.rows {
            if reply.rows > 0 {
                rows.end_row();
            }
            rows.finish();
        }
        reply
    }

    /// The first line of a value, without its end.
    fn value(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let (&kind, text) = line.split_first().ok_or("an empty line")?;
        match kind {
            b':' => {
                self.reply.number = length(text).ok().flatten().unwrap_or(0);
                self.scalar(text);
            }
            b'+' | b',' | b'#' | b'(' => self.scalar(text),
            b'-' => self.error(text),
            b'$' | b'=' | b'!' => match length(text)? {
                None => self.nil(),
                Some(length) => {
                    self.bulk = Some(length.checked_add(LINE_END).ok_or("a length beyond 2^64")?);
                    self.reply.bytes = self.reply.bytes.saturating_add(length);
                    if kind == b'!' {
                        self.error(b"ERR");
                        self.to_come += 1; // its text follows
                    }
                }
            },
            b'_' => self.nil(),
            b'*' | b'~' => self.elements(length(text)?, 1)?,
            b'>' => {
                self.push = self.to_come == 1 && !self.list; // one comes between replies only
                self.elements(length(text)?, 1)?;
            }
            b'%' => self.elements(length(text)?, 2)?,
            _ => return Err("a value of unknown kind"),
        }
        Ok(())
    }

    fn elements(&mut self, length: Option<u64>, each: u64) -> Result<(), &'static str> {
        self.list = true;
        self.to_come -= 1;
        let more = length.unwrap_or(0).checked_mul(each);
        let to_come = more.and_then(|more| self.to_come.checked_add(more));
        self.to_come = to_come.ok_or("a list with more than 2^64 elements")?;
        Ok(())
    }

    fn nil(&mut self) {
        self.list = true; // a lone nil is Missing, like a list of nothing else
        if let Some(rows) = &mut self.rows {
            rows.null();
        }
        self.to_come -= 1;
    }

    fn scalar(&mut self, text: &[u8]) {
        self.to_come -= 1;
        self.reply.rows = self.reply.rows.saturating_add(1);
        self.reply.bytes = self.reply.bytes.saturating_add(text.len() as u64);
        if let Some(rows) = &mut self.rows {
            rows.add(text);
            rows.end_value();
        }
        if self.check_contents {
            self.reply.contents =
                self.reply.contents.wrapping_add(crate::protocol::statement::digest(text));
        }
    }

    fn error(&mut self, text: &[u8]) {
        self.to_come -= 1;
        let code = text.split(|&byte| byte == b' ').next().unwrap_or(text);
        self.reply.status = Status::Error(Label::new(code));
        self.message.clear();
        self.message.push_str(&String::from_utf8_lossy(&text[..text.len().min(512)]));
    }

    /// What is there of a bulk string; returns how much that is.
    fn content(
        &mut self,
        left: u64,
        input: &[u8],
        kept: Option<&mut Kept>,
    ) -> Result<usize, &'static str> {
        let there = left.min(input.len() as u64);
        let text = there.min(left.saturating_sub(LINE_END)) as usize;
        if self.check_contents {
            self.digest.add(&input[..text]);
        }
        if let Some(rows) = &mut self.rows {
            rows.add(&input[..text]);
            if there == left {
                rows.end_value();
            }
        }
        if let Some(kept) = kept {
            kept.add(&input[..text])?;
            if there == left {
                kept.end();
            }
        }
        let end = &input[text..there as usize];
        let expected = &b"\r\n"[(LINE_END - left.min(LINE_END)) as usize..];
        if !end.is_empty() && end != &expected[..end.len()] {
            return Err("a string that is longer than its length");
        }
        if there < left {
            self.bulk = Some(left - there);
        } else {
            self.bulk = None;
            self.to_come -= 1;
            self.reply.rows = self.reply.rows.saturating_add(1);
            let digest = std::mem::take(&mut self.digest);
            if self.check_contents {
                self.reply.contents = self.reply.contents.wrapping_add(digest.finish());
            }
        }
        Ok(there as usize)
    }
}

/// The first line and how long it is with its end.
fn line(input: &[u8]) -> Result<Option<(&[u8], usize)>, &'static str> {
    let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
        return if input.len() >= REST_LIMIT { Err("a line without an end") } else { Ok(None) };
    };
    match input[..end].strip_suffix(b"\r") {
        Some(line) => Ok(Some((line, end + 1))),
        None => Err("a line that ends without a carriage return"),
    }
}

/// `None`: nil, which RESP 2 writes as -1.
fn length(text: &[u8]) -> Result<Option<u64>, &'static str> {
    if text == b"-1" {
        return Ok(None);
    }
    if text.is_empty() || text.len() > 19 {
        return Err("a length that is no number");
    }
    let mut length = 0_u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err("a length that is no number");
        }
        length = length * 10 + u64::from(digit);
    }
    Ok(Some(length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Status::{Done, Missing};
    use super::*;
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
                let Decoded { consumed, reply } = decoder.take(&rest, None)?;
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

    const STREAM: &[u8] = b"+OK\r\n:1\r\n$5\r\nhello\r\n$-1\r\n*2\r\n$1\r\na\r\n$-1\r\n\
        *0\r\n*-1\r\n-WRONGTYPE Operation against a key\r\n*2\r\n*1\r\n:5\r\n$0\r\n\r\n%1\r\n+k\r\n_\r\n";

    #[test]
    fn every_kind_of_reply() {
        let found = replies(&[STREAM]).expect("well-formed");
        let statuses: Vec<Status> = found.iter().map(|reply| reply.status).collect();
        let wrong_type = Status::Error(Label::new(b"WRONGTYPE"));
        assert_eq!(
            statuses,
            [Done, Done, Done, Missing, Done, Missing, Missing, wrong_type, Done, Done]
        );
        assert_eq!(found[2].bytes, 5);
        assert_eq!(found[2].contents, digest(b"hello"));
        assert_eq!(found[4].rows, 1, "a nil is no row");
        assert_eq!(found[8].contents, digest(b"5").wrapping_add(digest(b"")));
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
    fn the_values_of_a_reply_are_kept() {
        let mut decoder = decoder(false);
        for (bytes, expected) in [
            (&b"$3\r\nabc\r\n"[..], [Some(&b"abc"[..]), None]),
            (b":7\r\n", [Some(b"7"), None]),
            (b"*2\r\n$-1\r\n+b\r\n", [None, Some(b"b")]),
            (b"$-1\r\n", [None, None]),
        ] {
            decoder.take(bytes, None).expect("RESP");
            let rows = decoder.rows().expect("kept");
            assert_eq!([rows.text(0, 0), rows.text(0, 1)], expected);
        }
    }

    #[test]
    fn a_push_is_no_reply() {
        let stream = b"+OK\r\n>2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n>0\r\n$1\r\nv\r\n";
        let found = replies(&[stream]).expect("well-formed");
        assert_eq!(
            found.iter().map(|reply| (reply.rows, reply.bytes)).collect::<Vec<_>>(),
            [(1, 2), (1, 1)]
        );
        for at in 0..=stream.len() {
            assert_eq!(
                replies(&[&stream[..at], &stream[at..]]).expect("well-formed"),
                found,
                "cut at {at}"
            );
        }
    }

    #[test]
    fn an_endless_string_takes_no_memory() {
        let mut decoder = decoder(false);
        let start = b"$9000000000000000000\r\n";
        assert_eq!(decoder.take(start, None), Ok(Decoded { consumed: start.len(), reply: None }));
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            assert_eq!(
                decoder.take(&piece, None),
                Ok(Decoded { consumed: piece.len(), reply: None })
            );
        }
    }

    #[test]
    fn what_is_not_resp_is_refused() {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"\r\n",
            b"$5x\r\n",
            b"$99999999999999999999\r\n",
            b"$3\r\nabcd\r\n",
            b"+OK\n",
            b"*18446744073709551615\r\n*18446744073709551615\r\n",
        ] {
            assert!(replies(&[bytes]).is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
        assert!(decoder(false).take(&vec![b'+'; REST_LIMIT], None).is_err());
    }

    #[test]
    fn the_message_of_an_error_is_kept() {
        let mut decoder = decoder(false);
        decoder.take(b"-ERR unknown command\r\n", None).expect("well-formed");
        assert_eq!(decoder.message(), "ERR unknown command");
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
