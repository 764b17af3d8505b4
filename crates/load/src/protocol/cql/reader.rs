//! What a frame's body holds, piece by piece.

use super::Cql;
use super::types::Column;
use crate::error::Fault;
use crate::protocol::Protocol;

pub(super) fn malformed(reason: &'static str) -> Fault {
    Fault::Malformed { protocol: Cql::NAME, reason }
}

pub(super) struct Reader<'a>(pub(super) &'a [u8]);

const DURATION: &str = "org.apache.cassandra.db.marshal.DurationType";
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

    /// A parameter's type.
    pub(super) fn column(&mut self, nested: u8) -> Result<Column, Fault> {
        if nested > MOST_NESTED {
            return Err(malformed("types within types without an end"));
        }
        let inner = nested + 1;
        Ok(match self.short()? {
            0x0000 => match self.string()?.as_str() {
                DURATION => Column::Duration, // before version 5
                class => {
                    let text = format!("a statement's parameter is of the type {class}");
                    return Err(Fault::Unsupported(text));
                }
            },
            0x0002 | 0x0005 | 0x000b | 0x0012 => Column::Whole(8), // bigint, counter, timestamp, time
            0x0004 => Column::Boolean,
            0x0006 => Column::Decimal,
            0x0007 => Column::Double,
            0x0008 => Column::Float,
            0x0009 => Column::Whole(4),
            0x000c | 0x000f => Column::Uuid, // timeuuid
            0x000e => Column::Varint,
            0x0010 => Column::Inet,
            0x0011 => Column::Date,
            0x0013 => Column::Whole(2),
            0x0014 => Column::Whole(1),
            0x0015 => Column::Duration,
            0x0001 | 0x0003 | 0x000d => Column::Plain, // ascii, blob, text
            0x0020 | 0x0022 => Column::List(Box::new(self.column(inner)?)),
            0x0021 => Column::Map(Box::new(self.column(inner)?), Box::new(self.column(inner)?)),
            0x0030 => {
                self.table()?; // keyspace and name
                let fields = 0..self.short()?;
                Column::Record(
                    fields
                        .map(|_| Ok((self.string()?, self.column(inner)?)))
                        .collect::<Result<_, Fault>>()?,
                )
            }
            0x0031 => {
                let types = 0..self.short()?;
                Column::Tuple(types.map(|_| self.column(inner)).collect::<Result<_, _>>()?)
            }
            other => {
                return Err(Fault::Unsupported(format!(
                    "a statement's parameter is of CQL's type {other:#06x}"
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn types_in_types_are_read() {
        let bytes = [
            &[0, 0x21, 0, 0x0d, 0, 0x22, 0, 9][..], // map<text, set<int>>
            &[0, 0x31, 0, 2, 0, 0x0c, 0, 0x30, 0, 1, b'k', 0, 1, b'u', 0, 1, 0, 1, b'f', 0, 4],
        ]
        .concat();
        let mut reader = Reader(&bytes);
        let set = Column::List(Box::new(Column::Whole(4)));
        let map = Column::Map(Box::new(Column::Plain), Box::new(set));
        assert_eq!(reader.column(0).expect("a type"), map);
        let record = Column::Record(vec![("f".to_owned(), Column::Boolean)]);
        assert_eq!(reader.column(0).expect("a type"), Column::Tuple(vec![Column::Uuid, record]));
        assert!(Reader(&[0, 0x20].repeat(20)).column(0).is_err(), "without an end");
    }

    proptest! {
        #[test]
        fn no_type_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Reader(&bytes).column(0);
        }
    }
}
