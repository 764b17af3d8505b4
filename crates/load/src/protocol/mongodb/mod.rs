//! `OP_MSG` as `MongoDB` and `FerretDB` speak it: commands as BSON, all but the values prepared.

mod command;
mod decode;

use std::sync::Arc;

use self::command::Template;
use self::decode::Decoder;
use super::{Access, Decoded, Protocol, Reply, Statement, Status, Values, Wire};
use crate::error::Fault;

pub struct Mongodb {
    templates: Arc<[Template]>,
    decoder: Decoder,
}

/// Length, number, number of the request that it answers, and kind.
const HEADER_BYTES: usize = 16;
const OP_MSG: i32 = 2013;

impl Protocol for Mongodb {
    const NAME: &'static str = "mongodb";
    const ORDERED: bool = false;

    fn open(wire: &mut Wire, access: &Access, statements: &[Statement]) -> Result<Self, Fault> {
        if access.password.is_some() {
            let why = "tare-load logs in to no server of MongoDB's protocol: leave --password-file out, and let the server ask for none";
            return Err(Fault::Unsupported(why.to_owned()));
        }
        let database = access.database.as_deref().unwrap_or("test");
        let template = |statement: &Statement| {
            Template::new(&statement.text, database).map_err(|reason| Fault::Statement {
                statement: statement.text.clone(),
                message: reason.to_owned(),
            })
        };
        let templates = statements.iter().map(template).collect::<Result<_, _>>()?;
        let mut opened = Self { templates, decoder: Decoder::new(access.check_contents) };
        let reply = opened.call(wire, r#"{"hello": 1}"#, "admin")?;
        if let Status::Error(_) = reply.status {
            return Err(Fault::Login(opened.message().to_owned()));
        }
        Ok(opened)
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

impl Mongodb {
    fn call(&mut self, wire: &mut Wire, text: &str, database: &str) -> Result<Reply, Fault> {
        let malformed = |reason| Fault::Malformed { protocol: Self::NAME, reason };
        let mut out = Vec::new();
        let template = Template::new(text, database).map_err(malformed)?;
        template.encode(&Values::default(), 0, &mut out);
        wire.send(&out)?;
        loop {
            let decoded = self.decoder.take(wire.fill(0)?).map_err(malformed)?;
            wire.take(decoded.consumed)?;
            match decoded.reply {
                Some(reply) => return Ok(reply),
                None => wire.read_more()?,
            }
        }
    }
}
