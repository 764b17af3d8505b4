//! Replies, consumed as they come in: no content is kept, however long it is.

use super::{HEADER_BYTES, describe, opcode};
use crate::protocol::statement::Digest;
use crate::protocol::{Decoded, Label, Reply, Status};

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Header,
    /// How many warnings there are; then the length of each.
    Warnings,
    Warning {
        left: u16,
    },
    /// The first number of a result.
    Kind,
    /// Flags and number of columns.
    RowsMetadata,
    PagingState {
        columns: u32,
        flags: u32,
    },
    /// The id of a result's description that is another than when the statement was prepared.
    NewMetadata {
        columns: u32,
    },
    /// Keyspace and table of all columns, of a result that describes them.
    Table {
        columns: u32,
    },
    /// Descriptions of so many columns; `global`: without keyspace and table.
    Descriptions {
        columns: u32,
        left: u32,
        global: bool,
    },
    RowCount {
        columns: u32,
    },
    /// Length of the next one.
    Cell,
    Content {
        left: u32,
    },
    /// Code and length of an error's message.
    Error,
    Message {
        left: u16,
    },
    /// Of the frame, which says nothing more that counts.
    Rest,
}

#[derive(Debug)]
pub(super) struct Decoder {
    /// The first byte of every frame.
    of_server: u8,
    check_contents: bool,
    next: Next,
    opcode: u8,
    /// Bytes of the frame's body that are still to come.
    body: u32,
    /// Cells of the result that are.
    cells: u64,
    digest: Digest,
    reply: Reply,
    message: Vec<u8>,
    error_text: String,
}

const MOST_MESSAGE: usize = 512;
const RESULT_ROWS: u32 = 2;

impl Decoder {
    pub(super) fn new(version: u8, check_contents: bool) -> Self {
        Self {
            of_server: 0x80 | version,
            check_contents,
            next: Next::Header,
            opcode: 0,
            body: 0,
            cells: 0,
            digest: Digest::default(),
            reply: Reply::default(),
            message: Vec::new(),
            error_text: String::new(),
        }
    }

    pub(super) fn message(&self) -> &str {
        &self.error_text
    }

    pub(super) fn take(&mut self, input: &[u8]) -> Result<Decoded, &'static str> {
        let mut at = 0;
        loop {
            let Some(consumed) = self.step(&input[at..])? else {
                return Ok(Decoded { consumed: at, reply: None });
            };
            at += consumed;
            if self.next == Next::Rest && self.body == 0 {
                self.next = Next::Header;
                return Ok(Decoded { consumed: at, reply: Some(std::mem::take(&mut self.reply)) });
            }
        }
    }

    /// Takes one piece; `None`: more has to come first.
    fn step(&mut self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        match self.next {
            Next::Header => self.header(input),
            Next::Warnings => {
                let Some([high, low]) = self.fixed(input)? else { return Ok(None) };
                self.next = match u16::from_be_bytes([high, low]) {
                    0 => self.after_warnings()?,
                    left => Next::Warning { left },
                };
                Ok(Some(2))
            }
            Next::Warning { left } => {
                let Some([high, low]) = self.peek(input)? else { return Ok(None) };
                let length = 2 + usize::from(u16::from_be_bytes([high, low]));
                let next = match left {
                    0 | 1 => self.after_warnings()?,
                    left => Next::Warning { left: left - 1 },
                };
                self.pass(length, next, input)
            }
            Next::Kind => {
                let Some(kind) = self.fixed(input)?.map(u32::from_be_bytes) else {
                    return Ok(None);
                };
                self.next = if kind == RESULT_ROWS { Next::RowsMetadata } else { Next::Rest };
                Ok(Some(4))
            }
            Next::RowsMetadata => self.rows_metadata(input),
            Next::PagingState { columns, flags } => {
                let Some(length) = self.peek(input)?.map(u32::from_be_bytes) else {
                    return Ok(None);
                };
                let length = 4 + length as usize;
                if length > 32 * 1024 {
                    return Err("a paging state of more than 32 KiB");
                }
                self.pass(length, after_paging(columns, flags), input)
            }
            Next::NewMetadata { columns } => {
                let Some([high, low]) = self.peek(input)? else { return Ok(None) };
                let length = 2 + usize::from(u16::from_be_bytes([high, low]));
                self.pass(length, Next::RowCount { columns }, input)
            }
            Next::Table { .. } | Next::Descriptions { .. } => self.described(input),
            Next::RowCount { columns } => {
                let Some(rows) = self.fixed(input)?.map(u32::from_be_bytes) else {
                    return Ok(None);
                };
                self.reply.rows = rows;
                if rows == 0 {
                    self.reply.status = Status::Missing;
                }
                self.cells = u64::from(rows) * u64::from(columns);
                self.next_cell();
                Ok(Some(4))
            }
            Next::Cell => {
                let Some(length) = self.fixed(input)?.map(i32::from_be_bytes) else {
                    return Ok(None);
                };
                self.cells -= 1;
                match u32::try_from(length) {
                    Err(_) => self.next_cell(), // null
                    Ok(length) if length > self.body => return Err(ENDS_EARLY),
                    Ok(length) => {
                        self.reply.bytes = self.reply.bytes.saturating_add(length.into());
                        self.next = Next::Content { left: length };
                        if length == 0 {
                            self.end_of_content();
                        }
                    }
                }
                Ok(Some(4))
            }
            Next::Content { left } => self.content(left, input),
            Next::Error => {
                let Some([a, b, c, d, high, low]) = self.fixed(input)? else { return Ok(None) };
                let code = u32::from_be_bytes([a, b, c, d]);
                self.reply.status = Status::Error(label(code));
                self.message.clear();
                self.message.extend_from_slice(name(code).as_bytes());
                let left = u16::from_be_bytes([high, low]);
                if u32::from(left) > self.body {
                    return Err(ENDS_EARLY);
                }
                self.next = Next::Message { left };
                Ok(Some(6))
            }
            Next::Message { left } => self.error_message(left, input),
            Next::Rest => {
                let there = input.len().min(self.body as usize);
                self.spend(there)?;
                Ok((there > 0).then_some(there))
            }
        }
    }

    fn header(&mut self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        let Some(&header) = input.first_chunk::<HEADER_BYTES>() else {
            let begins = input.first().is_none_or(|&version| version == self.of_server);
            return if begins { Ok(None) } else { Err(OTHER_VERSION) };
        };
        let [version, flags, high, low, opcode, length @ ..] = header;
        if version != self.of_server {
            return Err(OTHER_VERSION);
        }
        if flags & !0x08 != 0 {
            return Err("a frame that is compressed, traced or of a custom payload");
        }
        let stream = u16::from_be_bytes([high, low]);
        if stream > i16::MAX as u16 {
            return Err("an event that nobody asked for");
        }
        self.opcode = opcode;
        self.body = u32::from_be_bytes(length);
        self.reply = Reply { slot: stream, ..Reply::default() };
        self.next = if flags & 0x08 == 0 { self.after_warnings()? } else { Next::Warnings };
        Ok(Some(HEADER_BYTES))
    }

    fn after_warnings(&self) -> Result<Next, &'static str> {
        match self.opcode {
            opcode::RESULT => Ok(Next::Kind),
            opcode::ERROR => Ok(Next::Error),
            _ => Err("a frame that answers no request"),
        }
    }

    fn rows_metadata(&mut self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        const MORE_PAGES: u32 = 2;
        let Some([a, b, c, d, columns @ ..]) = self.fixed::<8>(input)? else { return Ok(None) };
        let flags = u32::from_be_bytes([a, b, c, d]);
        let columns = u32::from_be_bytes(columns);
        self.next = if flags & MORE_PAGES == 0 {
            after_paging(columns, flags)
        } else {
            Next::PagingState { columns, flags }
        };
        Ok(Some(8))
    }

    fn next_cell(&mut self) {
        self.next = if self.cells == 0 { Next::Rest } else { Next::Cell };
    }

    fn content(&mut self, left: u32, input: &[u8]) -> Result<Option<usize>, &'static str> {
        let there = input.len().min(left as usize);
        if there == 0 {
            return Ok(None);
        }
        self.spend(there)?;
        if self.check_contents {
            self.digest.add(&input[..there]);
        }
        let left = left - there as u32;
        self.next = Next::Content { left };
        if left == 0 {
            self.end_of_content();
        }
        Ok(Some(there))
    }

    fn end_of_content(&mut self) {
        if self.check_contents {
            let digest = std::mem::take(&mut self.digest);
            self.reply.contents = self.reply.contents.wrapping_add(digest.finish());
        }
        self.next_cell();
    }

    fn error_message(&mut self, left: u16, input: &[u8]) -> Result<Option<usize>, &'static str> {
        let there = input.len().min(usize::from(left));
        if there == 0 && left > 0 {
            return Ok(None);
        }
        self.spend(there)?;
        let room = MOST_MESSAGE.saturating_sub(self.message.len());
        self.message.extend_from_slice(&input[..there.min(room)]);
        let left = left - there as u16;
        self.next = Next::Message { left };
        if left == 0 {
            self.error_text.clear();
            self.error_text.push_str(&String::from_utf8_lossy(&self.message));
            self.next = Next::Rest;
        }
        Ok(Some(there))
    }

    /// Steps over one description of a result's columns.
    fn described(&mut self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        let (length, next) = match self.next {
            Next::Descriptions { columns, left: 0, .. } => (Some(0), Next::RowCount { columns }),
            Next::Descriptions { columns, left, global } => {
                let next = Next::Descriptions { columns, left: left - 1, global };
                (describe::column(global, input)?, next)
            }
            Next::Table { columns } => {
                let next = Next::Descriptions { columns, left: columns, global: true };
                (describe::strings(2, input), next)
            }
            next => (Some(0), next),
        };
        match length {
            Some(length) => self.pass(length, next, input),
            None if input.len() >= self.body as usize => Err(ENDS_EARLY),
            None => Ok(None),
        }
    }

    /// Steps over so many bytes as a whole; there may be 64 KiB of them.
    fn pass(
        &mut self,
        length: usize,
        next: Next,
        input: &[u8],
    ) -> Result<Option<usize>, &'static str> {
        if input.len() < length {
            return Ok(None);
        }
        self.spend(length)?;
        self.next = next;
        Ok(Some(length))
    }

    /// The next bytes of the body, which are then taken.
    fn fixed<const N: usize>(&mut self, input: &[u8]) -> Result<Option<[u8; N]>, &'static str> {
        let found = self.peek(input)?;
        if found.is_some() {
            self.spend(N)?;
        }
        Ok(found)
    }

    fn peek<const N: usize>(&self, input: &[u8]) -> Result<Option<[u8; N]>, &'static str> {
        if (self.body as usize) < N { Err(ENDS_EARLY) } else { Ok(input.first_chunk().copied()) }
    }

    fn spend(&mut self, count: usize) -> Result<(), &'static str> {
        let count = u32::try_from(count).map_err(|_| ENDS_EARLY)?;
        self.body = self.body.checked_sub(count).ok_or(ENDS_EARLY)?;
        Ok(())
    }
}

const ENDS_EARLY: &str = "a frame that ends early";
const OTHER_VERSION: &str = "a frame of another version";

fn after_paging(columns: u32, flags: u32) -> Next {
    const GLOBAL_TABLE: u32 = 1;
    const NO_METADATA: u32 = 4;
    const METADATA_CHANGED: u32 = 8;
    if flags & NO_METADATA == 0 && columns > 0 {
        // As of a conditional statement.
        return if flags & GLOBAL_TABLE == 0 {
            Next::Descriptions { columns, left: columns, global: false }
        } else {
            Next::Table { columns }
        };
    }
    if flags & METADATA_CHANGED != 0 {
        return Next::NewMetadata { columns };
    }
    Next::RowCount { columns }
}

fn label(code: u32) -> Label {
    Label::new(format!("{code:#06x}").as_bytes())
}

/// What the protocol calls an error.
fn name(code: u32) -> &'static str {
    match code {
        0x0000 => "server error: ",
        0x000a => "protocol error: ",
        0x1000 => "unavailable: ",
        0x1001 => "overloaded: ",
        0x1002 => "bootstrapping: ",
        0x1100 => "write timeout: ",
        0x1200 => "read timeout: ",
        0x1300 => "read failure: ",
        0x1500 => "write failure: ",
        0x2000 => "syntax error: ",
        0x2100 => "unauthorized: ",
        0x2200 => "invalid: ",
        0x2500 => "unprepared: ",
        _ => "",
    }
}

#[cfg(test)]
pub(super) mod tests;
