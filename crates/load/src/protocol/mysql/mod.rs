//! The protocol of MySQL and MariaDB: statements are prepared once, each request is one `COM_STMT_EXECUTE`.

mod decode;
mod encode;
mod open;
mod packet;
mod row;
mod scramble;

use self::decode::Decoder;
use self::encode::Template;
use super::{Access, Decoded, Protocol, Rows, Statement, Values, Wire};
use crate::error::Fault;

pub struct Mysql {
    templates: Vec<Template>,
    decoder: Decoder,
}

impl Protocol for Mysql {
    const NAME: &'static str = "mysql";
    const ORDERED: bool = true;
    const TLS_FIRST: bool = false;

    fn open(wire: &mut Wire, access: &Access, statements: &[Statement]) -> Result<Self, Fault> {
        let session = open::log_in(wire, access)?;
        wire.note_log_in();
        let templates = open::prepare(wire, session, statements)?;
        Ok(Self { templates, decoder: Decoder::new(access, session.without_eof) })
    }

    fn encode(&mut self, statement: usize, values: &Values, _slot: u16, out: &mut Vec<u8>) {
        self.decoder.expect();
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
        out.extend_from_slice(&[1, 0, 0, 0, 1]); // COM_QUIT
    }

    fn farewell(&self) -> Option<&str> {
        self.decoder.farewell()
    }
}
