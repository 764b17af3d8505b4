//! Replies, consumed as they come in: no document is kept, however long it is.

use super::{HEADER_BYTES, OP_MSG};
use crate::protocol::statement::Digest;
use crate::protocol::{Decoded, Label, Reply, Status};

/// What an element is to this program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    #[default]
    Other,
    Ok,
    /// How many documents a write found.
    Count,
    Code,
    Message,
    Cursor,
    Batch,
    WriteErrors,
    /// A document of the result.
    Row,
    /// What one of its fields holds.
    Field,
    /// An entry of `writeErrors`, or `writeConcernError`: too few servers have confirmed a write in time.
    WriteError,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Header,
    /// Flags and the kind of the only section.
    Section,
    /// The length of a document that has this role.
    Open(Role),
    Element,
    /// The value of a string; its length comes first.
    Text(Role),
    Binary(Role),
    /// A length, and bytes that so many more or fewer are than it says.
    Counted {
        more: i32,
    },
    /// So many texts that end with a NUL.
    Terminated {
        left: u8,
    },
    /// `text`: a NUL follows.
    Content {
        role: Role,
        left: u32,
        text: bool,
    },
    /// The NUL behind a string.
    TextEnd,
    /// The reply is whole.
    End,
}

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // what is known of a reply so far
pub(super) struct Decoder {
    check_contents: bool,
    next: Next,
    /// Bytes of the message that are still to come.
    left: u32,
    /// The roles of the documents around.
    around: Vec<Role>,
    digest: Digest,
    ok: bool,
    has_cursor: bool,
    failed: bool,
    code: i64,
    count: u32,
    reply: Reply,
    text_of_error: Vec<u8>,
    message: String,
}

const MOST_DEEP: usize = 200;
const MOST_MESSAGE: usize = 512;
const MOST_NAME: usize = 4096;
const ENDS_EARLY: &str = "a message that ends early";

impl Decoder {
    pub(super) fn new(check_contents: bool) -> Self {
        Self {
            check_contents,
            next: Next::Header,
            left: 0,
            around: Vec::new(),
            digest: Digest::default(),
            ok: false,
            has_cursor: false,
            failed: false,
            code: 0,
            count: 0,
            reply: Reply::default(),
            text_of_error: Vec::new(),
            message: String::new(),
        }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn take(&mut self, input: &[u8]) -> Result<Decoded, &'static str> {
        let mut at = 0;
        loop {
            let Some(consumed) = self.step(&input[at..])? else {
                return Ok(Decoded { consumed: at, reply: None });
            };
            at += consumed;
            if self.next == Next::End {
                if self.left > 0 {
                    return Err("something behind the end of a reply");
                }
                self.next = Next::Header;
                return Ok(Decoded { consumed: at, reply: Some(self.finished()) });
            }
        }
    }

    fn finished(&mut self) -> Reply {
        let mut reply = std::mem::take(&mut self.reply);
        if !self.ok || self.failed {
            reply.status = Status::Error(Label::number(u32::try_from(self.code).unwrap_or(0)));
            self.message.clear();
            self.message.push_str(&String::from_utf8_lossy(&self.text_of_error));
        } else if !self.has_cursor {
            reply.rows = self.count;
        } else if reply.rows == 0 {
            reply.status = Status::Missing;
        }
        reply
    }

    /// Takes one piece; `None`: more has to come first.
    fn step(&mut self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        match self.next {
            Next::Header => self.header(input),
            Next::Section => {
                let Some([flags @ .., kind]) = self.fixed::<5>(input)? else { return Ok(None) };
                // A reply to what was sent has neither a checksum nor more replies behind it.
                if flags != [0; 4] || kind != 0 {
                    return Err("a reply of another form than one document");
                }
                self.next = Next::Open(Role::Other);
                Ok(Some(5))
            }
            Next::Open(role) => {
                let Some(length) = self.fixed(input)?.map(u32::from_le_bytes) else {
                    return Ok(None);
                };
                if length < 5 || length - 4 > self.left {
                    return Err(ENDS_EARLY);
                }
                if self.around.len() == MOST_DEEP {
                    return Err("documents in documents more than 200 deep");
                }
                match role {
                    Role::Cursor => self.has_cursor = true,
                    Role::Row => self.reply.rows = self.reply.rows.saturating_add(1),
                    Role::WriteError => self.failed = true,
                    _ => {}
                }
                self.around.push(role);
                self.next = Next::Element;
                Ok(Some(4))
            }
            Next::Element => self.element(input),
            Next::Text(role) => {
                let Some(length) = self.fixed(input)?.map(u32::from_le_bytes) else {
                    return Ok(None);
                };
                let left = length.checked_sub(1).ok_or("a string without an end")?;
                self.begin_content(role, left, true)?;
                Ok(Some(4))
            }
            Next::Binary(role) => {
                let Some([a, b, c, d, _kind]) = self.fixed(input)? else { return Ok(None) };
                self.begin_content(role, u32::from_le_bytes([a, b, c, d]), false)?;
                Ok(Some(5))
            }
            Next::Counted { more } => {
                let Some(length) = self.fixed(input)?.map(u32::from_le_bytes) else {
                    return Ok(None);
                };
                let left = length.checked_add_signed(more).ok_or(ENDS_EARLY)?;
                self.begin_content(Role::Other, left, false)?;
                Ok(Some(4))
            }
            Next::Terminated { left } => {
                let end = input.iter().position(|&byte| byte == 0);
                let there = end.map_or(input.len(), |end| end + 1);
                self.spend(there)?;
                self.next = match (end, left) {
                    (None, _) => self.next,
                    (Some(_), 1) => Next::Element,
                    (Some(_), left) => Next::Terminated { left: left - 1 },
                };
                Ok((there > 0).then_some(there))
            }
            Next::Content { role, left, text } => Ok(self.content(role, left, text, input)?),
            Next::TextEnd => {
                let Some([end]) = self.fixed(input)? else { return Ok(None) };
                self.next = Next::Element;
                if end == 0 { Ok(Some(1)) } else { Err("a string without an end") }
            }
            Next::End => Ok(None),
        }
    }

    fn header(&mut self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        let Some(header) = input.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let word = |at: usize| {
            i32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        if word(12) != OP_MSG {
            return Err("a message of another kind than OP_MSG");
        }
        let length = u32::try_from(word(0)).map_err(|_| ENDS_EARLY)?;
        self.left = length.checked_sub(HEADER_BYTES as u32).ok_or(ENDS_EARLY)?;
        let slot = u16::try_from(word(8)).map_err(|_| "a reply to what nobody asked")?;
        self.reply = Reply { slot, ..Reply::default() };
        (self.ok, self.has_cursor, self.failed) = (false, false, false);
        (self.code, self.count) = (0, 0);
        self.text_of_error.clear();
        self.around.clear();
        self.next = Next::Section;
        Ok(Some(HEADER_BYTES))
    }

    /// Kind and name of an element, and its value where that is a number; or the end of a document.
    fn element(&mut self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        let Some(&kind) = input.first() else { return Ok(None) };
        if kind == 0 {
            self.spend(1)?;
            self.around.pop();
            self.next = if self.around.is_empty() { Next::End } else { Next::Element };
            return Ok(Some(1));
        }
        let Some(end) = input.iter().skip(1).take(MOST_NAME).position(|&byte| byte == 0) else {
            return if input.len() > MOST_NAME { Err("a name without an end") } else { Ok(None) };
        };
        let role = self.role(&input[1..=end]);
        let head = end + 2;
        let value = &input[head..];
        let size = match kind {
            0x01 | 0x09 | 0x11 | 0x12 => 8,
            0x10 => 4,
            0x08 => 1,
            0x07 => 12,
            0x13 => 16,
            _ => 0,
        };
        if value.len() < size {
            return Ok(None);
        }
        self.spend(head + size)?;
        self.next = match kind {
            0x02 | 0x0d | 0x0e => Next::Text(role),
            0x03 | 0x04 => Next::Open(role),
            0x05 => Next::Binary(role),
            0x06 | 0x0a | 0x7f | 0xff => Next::Element,
            0x0b => Next::Terminated { left: 2 }, // a regular expression
            0x0c => Next::Counted { more: 12 },   // a pointer: a string, and an ObjectId
            0x0f => Next::Counted { more: -4 },   // code and its scope
            _ if size > 0 => {
                self.number(role, kind, &value[..size]);
                Next::Element
            }
            _ => return Err("a value of unknown kind"),
        };
        Ok(Some(head + size))
    }

    fn role(&self, name: &[u8]) -> Role {
        let around = self.around.last().copied().unwrap_or_default();
        match (self.around.len(), around, name) {
            (1, _, b"ok") => Role::Ok,
            (1, _, b"n") => Role::Count,
            (1, _, b"cursor") => Role::Cursor,
            (1, _, b"writeErrors") => Role::WriteErrors,
            (1, _, b"writeConcernError") => Role::WriteError,
            (1, _, b"code") | (_, Role::WriteError, b"code") => Role::Code,
            (1, _, b"errmsg") | (_, Role::WriteError, b"errmsg") => Role::Message,
            (_, Role::Cursor, b"firstBatch" | b"nextBatch") => Role::Batch,
            (_, Role::Batch, _) => Role::Row,
            (_, Role::WriteErrors, _) => Role::WriteError,
            (_, Role::Row, b"_id") => Role::Other,
            (_, Role::Row, _) => Role::Field,
            _ => Role::Other,
        }
    }

    fn number(&mut self, role: Role, kind: u8, bytes: &[u8]) {
        let mut eight = [0; 8];
        eight[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
        let number = match kind {
            0x01 => f64::from_le_bytes(eight) as i64,
            0x10 => i64::from(i32::from_le_bytes([eight[0], eight[1], eight[2], eight[3]])),
            _ => i64::from_le_bytes(eight),
        };
        match role {
            Role::Ok => self.ok = number == 1,
            Role::Count => self.count = u32::try_from(number).unwrap_or(u32::MAX),
            Role::Code => self.code = number,
            _ => {}
        }
    }

    fn begin_content(&mut self, role: Role, left: u32, text: bool) -> Result<(), &'static str> {
        if left > self.left {
            return Err(ENDS_EARLY);
        }
        if role == Role::Field {
            self.reply.bytes = self.reply.bytes.saturating_add(left.into());
        }
        self.next = Next::Content { role, left, text };
        if left == 0 {
            self.end_content(role, text);
        }
        Ok(())
    }

    fn content(
        &mut self,
        role: Role,
        left: u32,
        text: bool,
        input: &[u8],
    ) -> Result<Option<usize>, &'static str> {
        let there = input.len().min(left as usize);
        if there == 0 {
            return Ok(None);
        }
        self.spend(there)?;
        match role {
            Role::Field if self.check_contents => self.digest.add(&input[..there]),
            Role::Message => {
                let room = MOST_MESSAGE.saturating_sub(self.text_of_error.len());
                self.text_of_error.extend_from_slice(&input[..there.min(room)]);
            }
            _ => {}
        }
        let left = left - there as u32;
        self.next = Next::Content { role, left, text };
        if left == 0 {
            self.end_content(role, text);
        }
        Ok(Some(there))
    }

    fn end_content(&mut self, role: Role, text: bool) {
        if role == Role::Field && self.check_contents {
            let digest = std::mem::take(&mut self.digest);
            self.reply.contents = self.reply.contents.wrapping_add(digest.finish());
        }
        self.next = if text { Next::TextEnd } else { Next::Element };
    }

    /// The next bytes of the message, which are then taken.
    fn fixed<const N: usize>(&mut self, input: &[u8]) -> Result<Option<[u8; N]>, &'static str> {
        if (self.left as usize) < N {
            return Err(ENDS_EARLY);
        }
        let found = input.first_chunk().copied();
        if found.is_some() {
            self.spend(N)?;
        }
        Ok(found)
    }

    fn spend(&mut self, count: usize) -> Result<(), &'static str> {
        let count = u32::try_from(count).map_err(|_| ENDS_EARLY)?;
        self.left = self.left.checked_sub(count).ok_or(ENDS_EARLY)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
