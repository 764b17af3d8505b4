//! Messages of a reply, consumed as they come in: no row is kept, however long it is.

use crate::protocol::statement::Digest;
use crate::protocol::{Access, Decoded, Label, Reply, Rows, Status};

/// A reply taken apart up to some point: it ends with `ReadyForQuery`.
#[derive(Debug)]
pub(super) struct Decoder {
    check_contents: bool,
    state: State,
    digest: Digest,
    rows: Option<Rows>,
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
    pub(super) fn new(access: &Access) -> Self {
        Self {
            check_contents: access.check_contents,
            rows: access.keeps_rows.then(Rows::default),
            state: State::Header,
            digest: Digest::default(),
            reply: FRESH,
            affected: 0,
            reads: false,
            message: String::new(),
            fatal: false,
        }
    }

    pub(super) fn rows(&self) -> Option<&Rows> {
        self.rows.as_ref()
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
        if let Some(rows) = &mut self.rows {
            rows.finish();
        }
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
        if let Some(rows) = &mut self.rows {
            rows.end_row();
        }
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
            u32::MAX => {
                if let Some(rows) = &mut self.rows {
                    rows.null();
                }
                self.row(left, columns - 1)?;
            }
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
        if let Some(rows) = &mut self.rows {
            rows.add(&input[..there]);
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
        if let Some(rows) = &mut self.rows {
            rows.end_value();
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
mod tests;
