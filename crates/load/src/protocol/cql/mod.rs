//! CQL's native protocol: version 5 where the server has it (Cassandra 4.0 on), else 4 (3.11). Prepared statements, and
//! replies in any order.

mod compress;
mod decode;
mod describe;
mod encode;
mod murmur3;
mod open;
mod packed;
mod reader;
mod segment;
mod supported;
mod topology;
mod types;

use self::compress::Compression;
use self::decode::Decoder;
use self::encode::{Template, frame};
use self::open::{Link, MOST_BYTES, prepare_body};
use self::packed::Frames;
use self::segment::{Kind, Segments};
use super::cluster::Cluster;
use super::{Access, Decoded, Label, Protocol, Reply, Statement, Status, Values, Wire};
use crate::error::Fault;

pub struct Cql {
    version: u8,
    templates: Vec<Template>,
    texts: Vec<String>,
    decoder: Decoder,
    framing: Framing,
    /// What each slot was sent last.
    sent: Vec<Sent>,
    /// Slots whose statement is to be prepared, or sent, again.
    again: Vec<u16>,
    key: Vec<u8>,
    spare: Vec<u8>,
}

enum Framing {
    /// Frames as they are.
    Plain,
    /// Before version 5.
    Packed(Compression, Frames),
    Segments(Kind, Segments),
}

#[derive(Debug, Default)]
struct Sent {
    statement: usize,
    bytes: Vec<u8>,
    state: State,
}

/// A server may forget statements, such as when it has too many; whoever needs one prepares it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Sent,
    Preparing,
    SentAgain,
}

impl Framing {
    fn close(&self, start: usize, spare: &mut Vec<u8>, out: &mut Vec<u8>) {
        match self {
            Self::Plain => {}
            Self::Packed(compression, _) => packed::pack(*compression, start, spare, out),
            Self::Segments(kind, _) => segment::wrap(*kind, start, spare, out),
        }
    }

    fn take(&mut self, decoder: &mut Decoder, input: &[u8]) -> Result<Decoded, &'static str> {
        match self {
            Self::Plain => decoder.take(input),
            Self::Packed(_, frames) => frames.take(decoder, input),
            Self::Segments(_, segments) => segments.take(decoder, input),
        }
    }
}

impl Cql {
    /// Whether a reply is the answer to a request, and not a step to it.
    fn is_answer(&mut self, reply: &Reply) -> bool {
        let Some(sent) = self.sent.get_mut(usize::from(reply.slot)) else { return true };
        sent.state = match (sent.state, reply.status) {
            (State::Sent, Status::Error(code)) if code == Label::new(UNPREPARED) => {
                State::Preparing
            }
            (State::Preparing, Status::Done) => State::SentAgain,
            _ => return true,
        };
        self.again.push(reply.slot);
        false
    }
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
        let framing = match (version, link.compression()) {
            (5.., None) => Framing::Segments(Kind::Plain, Segments::new(Kind::Plain)),
            (5.., Some(_)) => Framing::Segments(Kind::Packed, Segments::new(Kind::Packed)),
            (_, None) => Framing::Plain,
            (_, Some(compression)) => Framing::Packed(compression, Frames::new(compression)),
        };
        Ok(Self {
            version,
            templates,
            texts: statements.iter().map(|statement| statement.text.clone()).collect(),
            decoder: Decoder::new(version, access.check_contents),
            framing,
            sent: Vec::new(),
            again: Vec::new(),
            key: Vec::new(),
            spare: Vec::new(),
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
        let start = out.len();
        self.templates[statement].encode(values, slot, out);
        self.framing.close(start, &mut self.spare, out);
        let place = usize::from(slot);
        if self.sent.len() <= place {
            self.sent.resize_with(place + 1, Sent::default);
        }
        let sent = &mut self.sent[place];
        (sent.statement, sent.state) = (statement, State::Sent);
        sent.bytes.clear();
        sent.bytes.extend_from_slice(&out[start..]);
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, &'static str> {
        let mut at = 0;
        loop {
            let Decoded { consumed, reply } = self.framing.take(&mut self.decoder, &input[at..])?;
            at += consumed;
            match reply {
                Some(reply) if !self.is_answer(&reply) => {}
                reply => return Ok(Decoded { consumed: at, reply }),
            }
        }
    }

    /// Statements that the server has forgotten; once prepared, they are sent as before: their number depends on their
    /// text alone.
    fn follow_up(&mut self, out: &mut Vec<u8>) {
        for slot in self.again.drain(..) {
            let sent = &self.sent[usize::from(slot)];
            if sent.state == State::SentAgain {
                out.extend_from_slice(&sent.bytes);
                continue;
            }
            let text = &self.texts[sent.statement];
            let mut prepare = frame(self.version, opcode::PREPARE, |out| {
                prepare_body(self.version, text, out);
            });
            prepare[2..4].copy_from_slice(&slot.to_be_bytes());
            self.framing.close(0, &mut self.spare, &mut prepare);
            out.extend_from_slice(&prepare);
        }
    }

    fn message(&self) -> &str {
        self.decoder.message()
    }
}

/// Code of the error of a server that does not know a statement.
const UNPREPARED: &[u8] = b"0x2500";

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

#[cfg(test)]
mod tests {
    use super::encode::Prepared;
    use super::*;

    fn cql() -> Cql {
        let prepared = Prepared { id: b"id".to_vec(), ..Prepared::default() };
        Cql {
            version: 4,
            templates: vec![Template::new(4, prepared, 1)],
            texts: vec!["SELECT v FROM k.t".to_owned()],
            decoder: Decoder::new(4, false),
            framing: Framing::Plain,
            sent: Vec::new(),
            again: Vec::new(),
            key: Vec::new(),
            spare: Vec::new(),
        }
    }

    fn reply(opcode: u8, slot: u16, body: &[u8]) -> Vec<u8> {
        let mut out = frame(0x84, opcode, |out| out.extend_from_slice(body));
        out[2..4].copy_from_slice(&slot.to_be_bytes());
        out
    }

    /// Unknown statement: code, message, and the statement's number.
    const UNKNOWN: &[u8] = b"\0\0\x25\0\0\x02no\0\x02id";
    const VOID: &[u8] = &[0, 0, 0, 1];

    #[test]
    fn a_forgotten_statement_is_prepared_and_sent_again_in_its_slot() {
        let mut cql = cql();
        let mut sent = Vec::new();
        cql.encode(0, &Values::default(), 7, &mut sent);
        let forgotten = reply(opcode::ERROR, 7, UNKNOWN);
        let both = [&forgotten[..], &reply(opcode::RESULT, 3, VOID)].concat();
        let found = cql.decode(&both).expect("well-formed");
        assert_eq!(found.consumed, both.len(), "it goes on to what is behind");
        assert_eq!(found.reply.map(|reply| reply.slot), Some(3));
        let mut out = Vec::new();
        cql.follow_up(&mut out);
        assert_eq!((out[3], out[4]), (7, opcode::PREPARE));
        assert!(out.ends_with(b"\0\0\0\x11SELECT v FROM k.t"));
        let found = cql.decode(&reply(opcode::RESULT, 7, &[0, 0, 0, 4, 0, 2, b'i', b'd']));
        assert_eq!(found.expect("well-formed").reply, None);
        out.clear();
        cql.follow_up(&mut out);
        assert_eq!(out, sent);
        let found = cql.decode(&reply(opcode::RESULT, 7, VOID)).expect("well-formed").reply;
        assert_eq!(found.map(|reply| (reply.slot, reply.status)), Some((7, Status::Done)));
        out.clear();
        cql.follow_up(&mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn a_statement_that_cannot_be_prepared_again_is_an_error() {
        let status = |answers: &[(u8, &[u8])]| {
            let mut cql = cql();
            cql.encode(0, &Values::default(), 0, &mut Vec::new());
            let mut last = None;
            for (opcode, body) in answers {
                last = cql.decode(&reply(*opcode, 0, body)).expect("well-formed").reply;
                cql.follow_up(&mut Vec::new());
            }
            last.map(|reply| reply.status)
        };
        let forgotten = (opcode::ERROR, UNKNOWN);
        let refused = status(&[forgotten, (opcode::ERROR, b"\0\0\x22\0\0\x02no")]);
        assert_eq!(refused, Some(Status::Error(Label::new(b"0x2200"))));
        let twice = status(&[forgotten, (opcode::RESULT, &[0, 0, 0, 4]), forgotten]);
        assert_eq!(twice, Some(Status::Error(Label::new(UNPREPARED))), "not for ever");
    }
}
