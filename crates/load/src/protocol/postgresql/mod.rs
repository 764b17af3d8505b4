//! PostgreSQL's protocol 3.0: statements are prepared once, each request is one `Bind`, `Execute` and `Sync`.

mod binding;
mod decode;
mod encode;
mod open;

use self::decode::Decoder;
use self::encode::Template;
use super::{Access, Decoded, Protocol, Rows, Statement, Values, Wire};
use crate::error::Fault;

pub struct Postgresql {
    templates: Vec<Template>,
    decoder: Decoder,
}

impl Protocol for Postgresql {
    const NAME: &'static str = "postgresql";
    const ORDERED: bool = true;
    const TLS_FIRST: bool = false;

    fn open(wire: &mut Wire, access: &Access, statements: &[Statement]) -> Result<Self, Fault> {
        open::log_in(wire, access)?;
        wire.note_log_in();
        let templates = open::prepare(wire, statements)?;
        Ok(Self { templates, decoder: Decoder::new(access) })
    }

    fn encode(&mut self, statement: usize, values: &Values, _slot: u16, out: &mut Vec<u8>) {
        self.templates[statement].encode(values, out);
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, &'static str> {
        self.decoder.take(input)
    }

    fn rows(&self) -> Option<&Rows> {
        self.decoder.rows()
    }

    fn message(&self) -> &str {
        self.decoder.message()
    }

    fn goodbye(&self, out: &mut Vec<u8>) {
        encode::message(b'X', &[], out);
    }

    fn farewell(&self) -> Option<&str> {
        self.decoder.farewell()
    }
}
