//! `OP_MSG` as `MongoDB` and `FerretDB` speak it: commands as BSON, all but the values prepared.

mod command;
mod decode;
mod document;
mod extended;
mod json;
mod open;

use std::sync::Arc;

use self::command::Template;
use self::decode::Decoder;
use super::{Access, Decoded, Protocol, Statement, Values, Wire};
use crate::error::Fault;

pub struct Mongodb {
    templates: Arc<[Template]>,
    decoder: Decoder,
}

const NAME: &str = "mongodb";
/// Length, number, number of the request that it answers, and kind.
const HEADER_BYTES: usize = 16;
const OP_MSG: i32 = 2013;

impl Protocol for Mongodb {
    const NAME: &'static str = NAME;
    const ORDERED: bool = false;

    fn open(wire: &mut Wire, access: &Access, statements: &[Statement]) -> Result<Self, Fault> {
        let database = access.database.as_deref().unwrap_or("test");
        let template = |statement: &Statement| {
            Template::new(&statement.text, database)
                .map_err(|message| Fault::Statement { statement: statement.text.clone(), message })
        };
        let templates = statements.iter().map(template).collect::<Result<_, _>>()?;
        open::log_in(wire, access, database)?;
        Ok(Self { templates, decoder: Decoder::new(access.check_contents) })
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
