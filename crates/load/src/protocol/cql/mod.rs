//! CQL's native protocol 4, as Cassandra 3.11 and 5.0 speak it: prepared statements, and replies in any order.

mod decode;
mod encode;
mod open;

use std::sync::Arc;

use self::decode::Decoder;
use self::encode::Template;
use super::{Access, Decoded, Protocol, Statement, Values, Wire};
use crate::error::Fault;

pub struct Cql {
    templates: Arc<[Template]>,
    decoder: Decoder,
}

impl Protocol for Cql {
    const NAME: &'static str = "cql";
    const ORDERED: bool = false;

    fn open(wire: &mut Wire, access: &Access, statements: &[Statement]) -> Result<Self, Fault> {
        open::log_in(wire, access)?;
        // There may be none before the statement that makes it.
        let makes_one =
            statements.first().is_some_and(|one| one.text.starts_with("CREATE KEYSPACE"));
        if let Some(keyspace) = access.database.as_ref().filter(|_| !makes_one) {
            open::carry_out(wire, &format!("USE \"{keyspace}\""))?;
        }
        let templates = open::prepare(wire, access, statements)?;
        Ok(Self { templates: templates.into(), decoder: Decoder::new(access.check_contents) })
    }

    fn encode(&mut self, statement: usize, values: &Values, slot: u16, out: &mut Vec<u8>) {
        self.templates[statement].encode(values, slot, out);
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, &'static str> {
        self.decoder.take(input)
    }

    fn message(&self) -> &str {
        self.decoder.message()
    }
}

/// Kinds of frames.
mod opcode {
    pub(super) const ERROR: u8 = 0x00;
    pub(super) const STARTUP: u8 = 0x01;
    pub(super) const READY: u8 = 0x02;
    pub(super) const AUTHENTICATE: u8 = 0x03;
    pub(super) const QUERY: u8 = 0x07;
    pub(super) const RESULT: u8 = 0x08;
    pub(super) const PREPARE: u8 = 0x09;
    pub(super) const EXECUTE: u8 = 0x0a;
    pub(super) const AUTH_CHALLENGE: u8 = 0x0e;
    pub(super) const AUTH_RESPONSE: u8 = 0x0f;
    pub(super) const AUTH_SUCCESS: u8 = 0x10;
}

/// The first byte of what is sent, and of what comes back.
const VERSION: u8 = 4;
const OF_SERVER: u8 = 0x80 | VERSION;
/// Version, flags, stream, opcode and length.
const HEADER_BYTES: usize = 9;
