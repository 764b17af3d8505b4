//! CQL's native protocol: version 5 where the server has it (Cassandra 4.0 on), else 4 (3.11). Prepared statements, and
//! replies in any order.

mod decode;
mod describe;
mod encode;
mod murmur3;
mod open;
mod reader;
mod segment;
mod topology;

use self::decode::Decoder;
use self::encode::Template;
use self::open::{Link, MOST_BYTES};
use self::segment::Segments;
use super::cluster::Cluster;
use super::{Access, Decoded, Protocol, Statement, Values, Wire};
use crate::error::Fault;

pub struct Cql {
    templates: Vec<Template>,
    decoder: Decoder,
    /// `None`: frames come as they are, before version 5.
    segments: Option<Segments>,
    key: Vec<u8>,
}

impl Protocol for Cql {
    const NAME: &'static str = "cql";
    const ORDERED: bool = false;

    fn open(wire: &mut Wire, access: &Access, statements: &[Statement]) -> Result<Self, Fault> {
        let mut link = Link::log_in(wire, access)?;
        // There may be none before the statement that makes it.
        let makes_one =
            statements.first().is_some_and(|one| one.text.starts_with("CREATE KEYSPACE"));
        if let Some(keyspace) = access.database.as_ref().filter(|_| !makes_one) {
            link.carry_out(&format!("USE \"{keyspace}\""), MOST_BYTES)?;
        }
        let templates = link.prepare(access, statements)?;
        let version = link.version();
        Ok(Self {
            templates,
            decoder: Decoder::new(version, access.check_contents),
            segments: (version >= 5).then(Segments::default),
            key: Vec::new(),
        })
    }

    fn discover(wires: &mut [Wire], access: &Access) -> Result<Option<Cluster>, (usize, Fault)> {
        topology::discover(wires, access)
    }

    fn replicas<'c>(
        &mut self,
        statement: usize,
        values: &Values,
        cluster: &'c Cluster,
    ) -> &'c [u16] {
        let template = &self.templates[statement];
        let Some(ring) = cluster.ring(template.keyspace()) else { return &[] };
        self.key.clear();
        if template.key(values, &mut self.key) {
            ring.replicas(murmur3::token(&self.key))
        } else {
            &[]
        }
    }

    fn encode(&mut self, statement: usize, values: &Values, slot: u16, out: &mut Vec<u8>) {
        self.templates[statement].encode(values, slot, out);
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, &'static str> {
        match &mut self.segments {
            None => self.decoder.take(input),
            Some(segments) => segments.take(&mut self.decoder, input),
        }
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
    pub(super) const OPTIONS: u8 = 0x05;
    pub(super) const SUPPORTED: u8 = 0x06;
    pub(super) const QUERY: u8 = 0x07;
    pub(super) const RESULT: u8 = 0x08;
    pub(super) const PREPARE: u8 = 0x09;
    pub(super) const EXECUTE: u8 = 0x0a;
    pub(super) const AUTH_CHALLENGE: u8 = 0x0e;
    pub(super) const AUTH_RESPONSE: u8 = 0x0f;
    pub(super) const AUTH_SUCCESS: u8 = 0x10;
}

/// Version, flags, stream, opcode and length.
const HEADER_BYTES: usize = 9;
