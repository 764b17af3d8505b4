//! RESP 2 and 3, as Redis and Valkey speak it.

mod decode;
mod encode;

use std::sync::Arc;

use self::decode::Decoder;
use self::encode::Template;
use super::{Access, Decoded, Protocol, Statement, Status, Values, Wire};
use crate::error::Fault;

pub struct Resp {
    templates: Arc<[Template]>,
    decoder: Decoder,
}

impl Protocol for Resp {
    const NAME: &'static str = "redis";
    const ORDERED: bool = true;

    fn open(wire: &mut Wire, access: &Access, statements: &[Statement]) -> Result<Self, Fault> {
        let templates: Arc<[Template]> = statements.iter().map(Template::new).collect();
        let mut resp = Self { templates, decoder: Decoder::new(access.check_contents) };
        if let Some(password) = &access.password {
            match &access.user {
                Some(user) => resp.call(wire, &["AUTH", user, password])?,
                None => resp.call(wire, &["AUTH", password])?,
            }
        }
        if let Some(database) = &access.database {
            resp.call(wire, &["SELECT", database])?;
        }
        // A server that wants a password says so at the first command only.
        resp.call(wire, &["PING"])?;
        Ok(resp)
    }

    fn encode(&mut self, statement: usize, values: &Values, _slot: u16, out: &mut Vec<u8>) {
        self.templates[statement].encode(values, out);
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, &'static str> {
        self.decoder.take(input)
    }

    fn message(&self) -> &str {
        self.decoder.message()
    }
}

impl Resp {
    fn call(&mut self, wire: &mut Wire, words: &[&str]) -> Result<(), Fault> {
        let mut out = Vec::new();
        encode::command(words, &mut out);
        wire.send(&out)?;
        loop {
            let decoded = match self.decoder.take(wire.fill(0)?) {
                Ok(decoded) => decoded,
                Err(reason) => return Err(Fault::Malformed { protocol: Self::NAME, reason }),
            };
            wire.take(decoded.consumed)?;
            match decoded.reply.map(|reply| reply.status) {
                Some(Status::Error(_)) => return Err(Fault::Login(self.message().to_owned())),
                Some(_) => return Ok(()),
                None => wire.read_more()?,
            }
        }
    }
}
