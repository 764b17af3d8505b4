//! Log-in and preparing: one frame, one answer.

use super::compress::Compression;
use super::encode::{Prepared, Template, flags, frame, long_bytes, short_bytes};
use super::packed::COMPRESSED;
use super::reader::{Reader, malformed};
use super::segment::{self, Kind};
use super::supported::supported;
use super::{HEADER_BYTES, opcode};
use crate::error::Fault;
use crate::protocol::{Access, Statement, Wire};

/// What is answered to a log-in and to preparing is far smaller; up to 16 connections do so at once.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// What a question after the cluster's nodes may answer, on one connection: a large cluster has many tokens.
pub(super) const MOST_BYTES_OF_ROWS: usize = 16 << 20;
/// Every server from Cassandra 2.2 on has it.
const OLDER: u8 = 4;

pub(super) struct Frame {
    pub(super) opcode: u8,
    pub(super) body: Vec<u8>,
}

/// A connection that blocks, after its version is known.
pub(super) struct Link<'a> {
    wire: &'a mut Wire,
    version: u8,
    /// From the answer to `STARTUP` on, as of version 5.
    segments: Option<Kind>,
    compression: Option<Compression>,
    /// Contents of segments that are no whole frame yet.
    unread: Vec<u8>,
}

impl<'a> Link<'a> {
    /// Asks which versions there are, and logs in with version 5 if it is one of them and no draft.
    pub(super) fn log_in(wire: &'a mut Wire, access: &Access) -> Result<Self, Fault> {
        let compression = match access.compression.as_deref() {
            Some(name) => Some(Compression::of(name)?),
            None => None,
        };
        let (unread, segments) = (Vec::new(), None);
        let mut link = Self { wire, version: OLDER, segments, compression: None, unread };
        let options = link.ask(opcode::OPTIONS, MOST_BYTES, |_| {})?;
        match options.opcode {
            opcode::SUPPORTED => {
                let supported = supported(&options.body)?;
                if supported.version_5 && compression != Some(Compression::Snappy) {
                    link.version = 5;
                }
                if let Some(compression) = compression {
                    supported.offers(compression)?;
                }
            }
            opcode::ERROR => return Err(refused_log_in(&options.body)?),
            _ => return Err(malformed("no answer to OPTIONS")),
        }
        let answer = link.ask(opcode::STARTUP, MOST_BYTES, |out| {
            let mut options = vec![("CQL_VERSION", "3.0.0")];
            options.extend(compression.map(|it| ("COMPRESSION", it.name())));
            out.extend_from_slice(&(options.len() as u16).to_be_bytes());
            for text in options.into_iter().flat_map(|(name, value)| [name, value]) {
                short_bytes(text.as_bytes(), out);
            }
        })?;
        link.compression = compression;
        let kind = if compression.is_some() { Kind::Packed } else { Kind::Plain };
        link.segments = (link.version >= 5).then_some(kind);
        match answer.opcode {
            opcode::READY => {}
            opcode::AUTHENTICATE => link.authenticate(access)?,
            opcode::ERROR => return Err(refused_log_in(&answer.body)?),
            _ => return Err(malformed("neither READY nor AUTHENTICATE")),
        }
        link.wire.note_log_in();
        Ok(link)
    }

    pub(super) fn version(&self) -> u8 {
        self.version
    }

    pub(super) fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// An answer of more than `most` bytes is none.
    fn ask(
        &mut self,
        opcode: u8,
        most: usize,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Frame, Fault> {
        let mut out = frame(self.version, opcode, body);
        if let Some(kind) = self.segments {
            segment::wrap(kind, 0, &mut Vec::new(), &mut out);
        }
        self.wire.send(&out)?;
        let header = self.take(HEADER_BYTES)?;
        if header[0] & 0x80 == 0 {
            return Err(malformed("a frame that is no response"));
        }
        let length = [header[5], header[6], header[7], header[8]];
        let length = u32::from_be_bytes(length) as usize;
        if length > most {
            return Err(malformed("a frame that is longer than its contents can be"));
        }
        let body = self.take(length)?;
        if header[0] != 0x80 | self.version && header[4] != opcode::ERROR {
            return Err(malformed("a frame of another version"));
        }
        let body = match self.compression.filter(|_| header[1] & COMPRESSED != 0) {
            Some(compression) if !body.is_empty() => {
                let mut plain = Vec::new();
                compression.append_body(&body, &mut plain).map_err(malformed)?;
                plain
            }
            _ => body,
        };
        // Warnings come before the rest.
        let body = if header[1] & 0x08 == 0 { body } else { without_warnings(&body)?.to_vec() };
        Ok(Frame { opcode: header[4], body })
    }

    /// The next bytes of frames.
    fn take(&mut self, count: usize) -> Result<Vec<u8>, Fault> {
        let Some(kind) = self.segments else { return self.wire.take(count) };
        while self.unread.len() < count {
            let input = self.wire.fill(0)?;
            let taken = segment::unwrap_first(kind, input, &mut self.unread).map_err(malformed)?;
            match taken {
                Some(length) => drop(self.wire.take(length)?),
                None => self.wire.read_more()?,
            }
        }
        let rest = self.unread.split_off(count);
        Ok(std::mem::replace(&mut self.unread, rest))
    }

    /// As `PasswordAuthenticator` wants it (SASL PLAIN).
    fn authenticate(&mut self, access: &Access) -> Result<(), Fault> {
        let (Some(user), Some(password)) = (&access.user, &access.password) else {
            let reason = "it requires a password; give --user and --password-file";
            return Err(Fault::Login(reason.to_owned()));
        };
        let token = format!("\0{user}\0{password}");
        let answer = self.ask(opcode::AUTH_RESPONSE, MOST_BYTES, |out| {
            long_bytes(token.as_bytes(), out);
        })?;
        match answer.opcode {
            opcode::AUTH_SUCCESS => Ok(()),
            opcode::ERROR => Err(refused_log_in(&answer.body)?),
            opcode::AUTH_CHALLENGE => Err(Fault::Unsupported(
                "the server wants more than a password to log in".to_owned(),
            )),
            _ => Err(malformed("no answer to a password")),
        }
    }

    /// A statement that is not prepared, such as one that makes a table: the result that it has, of at most
    /// `most` bytes.
    pub(super) fn carry_out(&mut self, text: &str, most: usize) -> Result<Vec<u8>, Fault> {
        let version = self.version;
        let answer = self.ask(opcode::QUERY, most, |out| {
            long_bytes(text.as_bytes(), out);
            out.extend_from_slice(&level("ONE").unwrap_or(1).to_be_bytes());
            flags(version, 0, out);
        })?;
        match answer.opcode {
            opcode::RESULT => Ok(answer.body),
            opcode::ERROR => refused(text, &answer.body),
            _ => Err(malformed("no answer to a statement")),
        }
    }

    pub(super) fn prepare(
        &mut self,
        access: &Access,
        statements: &[Statement],
    ) -> Result<Vec<Template>, Fault> {
        statements.iter().map(|statement| self.prepare_one(access, &statement.text)).collect()
    }

    fn prepare_one(&mut self, access: &Access, text: &str) -> Result<Template, Fault> {
        let reads =
            text.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
        let wanted = if reads { &access.read_level } else { &access.write_level };
        let name = wanted.as_deref().unwrap_or("ONE");
        let consistency = level(name).ok_or_else(|| {
            Fault::Unsupported(format!("{name} is no consistency level of Cassandra"))
        })?;
        let version = self.version;
        let answer = self.ask(opcode::PREPARE, MOST_BYTES, |out| {
            prepare_body(version, text, out);
        })?;
        match answer.opcode {
            opcode::RESULT => {
                Ok(Template::new(version, prepared(version, &answer.body)?, consistency))
            }
            opcode::ERROR => refused(text, &answer.body),
            _ => Err(malformed("no answer to PREPARE")),
        }
    }
}

fn without_warnings(body: &[u8]) -> Result<&[u8], Fault> {
    let mut reader = Reader(body);
    reader.strings()?;
    Ok(reader.0)
}

pub(super) fn prepare_body(version: u8, text: &str, out: &mut Vec<u8>) {
    long_bytes(text.as_bytes(), out);
    if version >= 5 {
        flags(version, 0, out);
    }
}

fn refused<T>(text: &str, body: &[u8]) -> Result<T, Fault> {
    let (code, message) = error(body)?;
    Err(if NOT_READY.contains(&code) {
        Fault::NotReady(message)
    } else {
        Fault::Statement { statement: text.to_owned(), message }
    })
}

/// Unavailable, overloaded, bootstrapping: a node or its cluster that starts or stops.
const NOT_READY: [u32; 3] = [0x1000, 0x1001, 0x1002];

fn refused_log_in(body: &[u8]) -> Result<Fault, Fault> {
    let (code, message) = error(body)?;
    let not_ready = NOT_READY.contains(&code);
    Ok(if not_ready { Fault::NotReady(message) } else { Fault::Login(message) })
}

fn level(name: &str) -> Option<u16> {
    const NAMES: [&str; 11] = [
        "ANY",
        "ONE",
        "TWO",
        "THREE",
        "QUORUM",
        "ALL",
        "LOCAL_QUORUM",
        "EACH_QUORUM",
        "SERIAL",
        "LOCAL_SERIAL",
        "LOCAL_ONE",
    ];
    NAMES.iter().position(|known| *known == name).map(|place| place as u16)
}

/// Code and message.
fn error(body: &[u8]) -> Result<(u32, String), Fault> {
    let mut reader = Reader(body);
    Ok((reader.int()?, reader.string()?))
}

/// A result of kind 4.
fn prepared(version: u8, body: &[u8]) -> Result<Prepared, Fault> {
    const PREPARED: u32 = 4;
    const ONE_TABLE: u32 = 1;
    let mut reader = Reader(body);
    if reader.int()? != PREPARED {
        return Err(malformed("another result than of PREPARE"));
    }
    let id = reader.short_bytes()?.to_vec();
    let result_id = if version >= 5 { Some(reader.short_bytes()?.to_vec()) } else { None };
    let flags = reader.int()?;
    let count = reader.int()?;
    let mut key = Vec::new();
    for _ in 0..reader.int()? {
        key.push(reader.short()?);
    }
    let of_one_table = flags & ONE_TABLE != 0;
    let mut keyspace = String::new();
    if of_one_table && count > 0 {
        keyspace = reader.table()?.0;
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        if !of_one_table {
            keyspace = reader.table()?.0;
        }
        reader.string()?;
        columns.push(reader.column(0)?);
    }
    if key.iter().any(|&place| usize::from(place) >= columns.len()) {
        return Err(malformed("a key beyond the statement's parameters"));
    }
    Ok(Prepared { id, result_id, columns, keyspace, key })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::types::Column;
    use super::*;

    /// By hand from the specification: what `SELECT a FROM k.t WHERE y_id = ? LIMIT ?` is answered with, of a table
    /// with `y_id varchar`.
    fn answer() -> Vec<u8> {
        [
            &[0, 0, 0, 4, 0, 2, 7, 8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0][..],
            &[0, 1, b'k', 0, 1, b't', 0, 4, b'y', b'_', b'i', b'd', 0, 0x0d],
            &[0, 7, b'[', b'l', b'i', b'm', b'i', b't', b']', 0, 9],
            &[0, 0, 0, 1, 0, 0, 0, 1],
        ]
        .concat()
    }

    #[test]
    fn types_of_parameters_are_read() {
        let found = prepared(4, &answer()).expect("well-formed");
        assert_eq!(found.id, [7, 8]);
        assert_eq!(found.columns, [Column::Plain, Column::Whole(4)]);
        assert_eq!((found.keyspace.as_str(), found.key.as_slice()), ("k", &[0][..]));
    }

    #[test]
    fn version_5_tells_the_id_of_the_result_too() {
        let mut bytes = answer();
        bytes.splice(8..8, [0, 3, 1, 2, 3]);
        let found = prepared(5, &bytes).expect("well-formed");
        assert_eq!(found.result_id.as_deref(), Some(&[1, 2, 3][..]));
        assert_eq!(found.columns, [Column::Plain, Column::Whole(4)]);
    }

    #[test]
    fn a_node_that_starts_is_not_ready_and_a_wrong_password_is_refused() {
        let fault = |code: u32| {
            let body = [&code.to_be_bytes()[..], &[0, 2, b'n', b'o']].concat();
            (refused_log_in(&body).expect("an error"), refused::<()>("S", &body).expect_err("no"))
        };
        assert!(matches!(fault(0x1002), (Fault::NotReady(_), Fault::NotReady(_))));
        assert!(matches!(fault(0x0100), (Fault::Login(_), Fault::Statement { .. })));
    }

    #[test]
    fn levels_have_their_numbers() {
        assert_eq!((level("ONE"), level("ALL"), level("LOCAL_ONE")), (Some(1), Some(5), Some(10)));
        assert_eq!(level("one"), None);
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = prepared(4, &bytes);
            let _ = prepared(5, &bytes);
            let _ = error(&bytes);
            let _ = without_warnings(&bytes);
            let _ = Reader(&bytes).rows();
        }

        #[test]
        fn a_cut_answer_is_refused(cut in 0..40_usize, byte in any::<u8>(), at in 4..40_usize) {
            let mut bytes = answer();
            prop_assert!(prepared(4, &bytes[..cut]).is_err());
            bytes[at] = byte;
            let _ = prepared(4, &bytes);
        }
    }
}
