//! Packets of a reply, consumed as they come in: no row is kept, however long it is.

use super::packet::{HEADER, LONGEST, Reader};
use super::row::Row;
use crate::protocol::{Access, Decoded, Label, Reply, Rows, Status};

/// A reply taken apart up to some point: `OK`, an error, or result sets.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // two ways of the session, two states of a reply
pub(super) struct Decoder {
    check_contents: bool,
    /// The server ends columns with `OK` and no packet of their own (`CLIENT_DEPRECATE_EOF`).
    without_eof: bool,
    stage: Stage,
    /// Requests that were sent and not yet answered: what comes without one is a farewell.
    pending: u64,
    row: Row,
    reply: Reply,
    /// The reply has a result set.
    reads: bool,
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
    pub(super) fn new(access: &Access, without_eof: bool) -> Self {
        let mut row = Row::default();
        row.rows = access.keeps_rows.then(Rows::default);
        Self {
            check_contents: access.check_contents,
            without_eof,
            stage: Stage::Start,
            pending: 0,
            row,
            reply: FRESH,
            reads: false,
            message: String::new(),
            dismissed: false,
        }
    }

    /// A request was sent.
    pub(super) fn expect(&mut self) {
        self.pending += 1;
    }

    pub(super) fn rows(&self) -> Option<&Rows> {
        self.row.rows.as_ref()
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
                if let Some(rows) = &mut self.row.rows {
                    rows.finish();
                }
                let mut reply = std::mem::replace(&mut self.reply, FRESH);
                let reads = std::mem::take(&mut self.reads);
                if reply.status == Status::Done && reply.rows == 0 && reads {
                    reply.status = Status::Missing;
                }
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
            Stage::Start if self.pending == 0 => Err("a reply that nobody asked for"),
            Stage::Start if first == 0 => self.ok(body),
            Stage::Start if first == 0xfb => Err("it asks for a local file, which is not sent"),
            Stage::Start => {
                let columns = Reader::new(body).number().ok_or("a number of columns cut short")?;
                if columns == 0 || columns > MOST_COLUMNS {
                    return Err("more columns than a table can have");
                }
                self.reads = true;
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
            self.pending = self.pending.saturating_sub(1);
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
        if self.pending == 0 {
            self.dismissed = true;
            return Ok(false);
        }
        self.pending -= 1;
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
mod tests;
