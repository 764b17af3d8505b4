//! What a frame's body holds, piece by piece.

use super::Cql;
use super::encode::Column;
use crate::error::Fault;
use crate::protocol::Protocol;

pub(super) fn malformed(reason: &'static str) -> Fault {
    Fault::Malformed { protocol: Cql::NAME, reason }
}

pub(super) struct Reader<'a>(pub(super) &'a [u8]);

/// Collections within collections that are still read.
const MOST_NESTED: u8 = 8;

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| malformed("a frame that ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn short(&mut self) -> Result<u16, Fault> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn int(&mut self) -> Result<u32, Fault> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(super) fn short_bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.short()?;
        self.take(usize::from(length))
    }

    /// `None`: null.
    pub(super) fn bytes(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        let length = self.int()?;
        if length > i32::MAX as u32 { Ok(None) } else { self.take(length as usize).map(Some) }
    }

    pub(super) fn string(&mut self) -> Result<String, Fault> {
        Ok(String::from_utf8_lossy(self.short_bytes()?).into_owned())
    }

    /// Each of a list of strings.
    pub(super) fn strings(&mut self) -> Result<Vec<String>, Fault> {
        (0..self.short()?).map(|_| self.string()).collect()
    }

    /// Keyspace and table.
    pub(super) fn table(&mut self) -> Result<(String, String), Fault> {
        Ok((self.string()?, self.string()?))
    }

    /// A column's type; only plain ones have values that this program makes.
    pub(super) fn column(&mut self) -> Result<Column, Fault> {
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

    /// Any type, which is passed over.
    fn pass_type(&mut self, nested: u8) -> Result<(), Fault> {
        if nested > MOST_NESTED {
            return Err(malformed("types within types without an end"));
        }
        match self.short()? {
            0x0000 => drop(self.short_bytes()?), // custom: its class
            0x0020 | 0x0022 => self.pass_type(nested + 1)?, // list, set
            0x0021 => {
                self.pass_type(nested + 1)?;
                self.pass_type(nested + 1)?;
            }
            0x0030 | 0x0031 => return Err(malformed("a type that no such table has")),
            _ => {}
        }
        Ok(())
    }

    /// Cells of the rows of a result; `None`: null.
    pub(super) fn rows(&mut self) -> Result<Vec<Vec<Option<&'a [u8]>>>, Fault> {
        const ROWS: u32 = 2;
        const ONE_TABLE: u32 = 1;
        const MORE_PAGES: u32 = 2;
        const NO_METADATA: u32 = 4;
        if self.int()? != ROWS {
            return Err(malformed("a result without rows"));
        }
        let (flags, columns) = (self.int()?, self.int()?);
        if flags & MORE_PAGES != 0 {
            self.bytes()?;
        }
        if flags & NO_METADATA == 0 {
            if flags & ONE_TABLE != 0 {
                self.table()?;
            }
            for _ in 0..columns {
                if flags & ONE_TABLE == 0 {
                    self.table()?;
                }
                self.string()?;
                self.pass_type(0)?;
            }
        }
        let mut rows = Vec::new();
        for _ in 0..self.int()? {
            if columns == 0 {
                return Err(malformed("rows without columns"));
            }
            rows.push((0..columns).map(|_| self.bytes()).collect::<Result<_, _>>()?);
        }
        Ok(rows)
    }

    /// Each element of a set or list, or each key and value of a map, one after the other.
    pub(super) fn elements(&mut self, each: u8) -> Result<Vec<&'a [u8]>, Fault> {
        let mut found = Vec::new();
        for _ in 0..u64::from(self.int()?) * u64::from(each) {
            found.push(self.bytes()?.ok_or_else(|| malformed("null in a collection"))?);
        }
        Ok(found)
    }
}
