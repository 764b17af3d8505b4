//! Log-in and preparing: one frame, one answer.

use super::encode::{Column, Template, frame, long_bytes, short_bytes};
use super::{Cql, HEADER_BYTES, OF_SERVER, opcode};
use crate::error::Fault;
use crate::protocol::{Access, Protocol, Statement, Wire};

/// What is answered before requests is far smaller.
const MOST_BYTES: usize = 16 << 20;

struct Frame {
    opcode: u8,
    body: Vec<u8>,
}

fn malformed(reason: &'static str) -> Fault {
    Fault::Malformed { protocol: Cql::NAME, reason }
}

fn ask(wire: &mut Wire, frame: &[u8]) -> Result<Frame, Fault> {
    wire.send(frame)?;
    let header = wire.take(HEADER_BYTES)?;
    if header[0] & 0x80 == 0 {
        return Err(malformed("a frame that is no response"));
    }
    let length = [header[5], header[6], header[7], header[8]];
    let length = u32::from_be_bytes(length) as usize;
    if length > MOST_BYTES {
        return Err(malformed("a frame of more than 16 MiB"));
    }
    let body = wire.take(length)?;
    if header[0] != OF_SERVER && header[4] != opcode::ERROR {
        return Err(malformed("another version than 4"));
    }
    // Warnings come before the rest.
    let body = if header[1] & 0x08 == 0 { body } else { without_warnings(&body)?.to_vec() };
    Ok(Frame { opcode: header[4], body })
}

fn without_warnings(body: &[u8]) -> Result<&[u8], Fault> {
    let mut reader = Reader(body);
    for _ in 0..reader.short()? {
        reader.string()?;
    }
    Ok(reader.0)
}

pub(super) fn log_in(wire: &mut Wire, access: &Access) -> Result<(), Fault> {
    let startup = frame(opcode::STARTUP, |out| {
        out.extend_from_slice(&1_u16.to_be_bytes());
        short_bytes(b"CQL_VERSION", out);
        short_bytes(b"3.0.0", out);
    });
    let answer = ask(wire, &startup)?;
    match answer.opcode {
        opcode::READY => Ok(()),
        opcode::AUTHENTICATE => authenticate(wire, access),
        opcode::ERROR => Err(Fault::Login(error(&answer.body)?)),
        _ => Err(malformed("neither READY nor AUTHENTICATE")),
    }
}

/// As `PasswordAuthenticator` wants it (SASL PLAIN).
fn authenticate(wire: &mut Wire, access: &Access) -> Result<(), Fault> {
    let (Some(user), Some(password)) = (&access.user, &access.password) else {
        let said = "it wants a password: say --user and --password-file";
        return Err(Fault::Login(said.to_owned()));
    };
    let token = format!("\0{user}\0{password}");
    let answer = ask(wire, &frame(opcode::AUTH_RESPONSE, |out| long_bytes(token.as_bytes(), out)))?;
    match answer.opcode {
        opcode::AUTH_SUCCESS => Ok(()),
        opcode::ERROR => Err(Fault::Login(error(&answer.body)?)),
        opcode::AUTH_CHALLENGE => {
            Err(Fault::Unsupported("the server wants more than a password to log in".to_owned()))
        }
        _ => Err(malformed("no answer to a password")),
    }
}

/// A statement that is not prepared, such as one that makes a table.
pub(super) fn carry_out(wire: &mut Wire, text: &str) -> Result<(), Fault> {
    let query = frame(opcode::QUERY, |out| {
        long_bytes(text.as_bytes(), out);
        out.extend_from_slice(&level("ONE").unwrap_or(1).to_be_bytes());
        out.push(0);
    });
    let answer = ask(wire, &query)?;
    match answer.opcode {
        opcode::RESULT => Ok(()),
        opcode::ERROR => refused(text, &answer.body),
        _ => Err(malformed("no answer to a statement")),
    }
}

fn refused<T>(text: &str, body: &[u8]) -> Result<T, Fault> {
    Err(Fault::Statement { statement: text.to_owned(), message: error(body)? })
}

pub(super) fn prepare(
    wire: &mut Wire,
    access: &Access,
    statements: &[Statement],
) -> Result<Vec<Template>, Fault> {
    statements.iter().map(|statement| prepare_one(wire, access, &statement.text)).collect()
}

fn prepare_one(wire: &mut Wire, access: &Access, text: &str) -> Result<Template, Fault> {
    let reads = text.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
    let said = if reads { &access.read_level } else { &access.write_level };
    let name = said.as_deref().unwrap_or("ONE");
    let consistency = level(name).ok_or_else(|| {
        Fault::Unsupported(format!("{name} is no consistency level of Cassandra"))
    })?;
    let answer = ask(wire, &frame(opcode::PREPARE, |out| long_bytes(text.as_bytes(), out)))?;
    match answer.opcode {
        opcode::RESULT => {
            let Prepared { id, columns } = prepared(&answer.body)?;
            Ok(Template::new(&id, consistency, columns))
        }
        opcode::ERROR => refused(text, &answer.body),
        _ => Err(malformed("no answer to PREPARE")),
    }
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

fn error(body: &[u8]) -> Result<String, Fault> {
    let mut reader = Reader(body);
    reader.int()?;
    reader.string()
}

struct Prepared {
    id: Vec<u8>,
    columns: Vec<Column>,
}

/// Of a result of kind 4: its id, and of each `?` how it takes a value.
fn prepared(body: &[u8]) -> Result<Prepared, Fault> {
    const PREPARED: u32 = 4;
    const ONE_TABLE: u32 = 1;
    let mut reader = Reader(body);
    if reader.int()? != PREPARED {
        return Err(malformed("another result than of PREPARE"));
    }
    let length = reader.short()?;
    let id = reader.take(usize::from(length))?.to_vec();
    let flags = reader.int()?;
    let count = reader.int()?;
    for _ in 0..reader.int()? {
        reader.short()?; // which of them are the key
    }
    let of_one_table = flags & ONE_TABLE != 0;
    if of_one_table && count > 0 {
        reader.table()?;
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        if !of_one_table {
            reader.table()?;
        }
        reader.string()?;
        columns.push(reader.column()?);
    }
    Ok(Prepared { id, columns })
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| malformed("a frame that ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn short(&mut self) -> Result<u16, Fault> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn int(&mut self) -> Result<u32, Fault> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn string(&mut self) -> Result<String, Fault> {
        let length = self.short()?;
        Ok(String::from_utf8_lossy(self.take(usize::from(length))?).into_owned())
    }

    fn table(&mut self) -> Result<(), Fault> {
        self.string()?;
        self.string()?;
        Ok(())
    }

    /// A column's type; only plain ones have values that this program makes.
    fn column(&mut self) -> Result<Column, Fault> {
        Ok(match self.short()? {
            0x0002 | 0x0005 | 0x000b | 0x0012 => Column::Whole(8), // bigint, counter, timestamp, time
            0x0009 => Column::Whole(4),
            0x0013 => Column::Whole(2),
            0x0014 => Column::Whole(1),
            0x0001 | 0x0003 | 0x000d => Column::Plain, // ascii, blob, text
            other => {
                return Err(Fault::Unsupported(format!(
                    "a statement's parameter is of CQL's type {other:#06x}: only whole numbers, text and blobs are sent"
                )));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        let found = prepared(&answer()).expect("well-formed");
        assert_eq!(found.id, [7, 8]);
        assert_eq!(found.columns, [Column::Plain, Column::Whole(4)]);
    }

    #[test]
    fn levels_have_their_numbers() {
        assert_eq!((level("ONE"), level("ALL"), level("LOCAL_ONE")), (Some(1), Some(5), Some(10)));
        assert_eq!(level("one"), None);
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = prepared(&bytes);
            let _ = error(&bytes);
            let _ = without_warnings(&bytes);
        }

        #[test]
        fn a_cut_answer_is_refused(cut in 0..40_usize, byte in any::<u8>(), at in 4..40_usize) {
            let mut bytes = answer();
            prop_assert!(prepared(&bytes[..cut]).is_err());
            bytes[at] = byte;
            let _ = prepared(&bytes);
        }
    }
}
