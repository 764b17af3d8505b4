//! RESP 2 and 3, as Redis and Valkey speak it.

mod decode;
mod each;
mod encode;

use std::sync::Arc;

use self::decode::Decoder;
use self::each::Each;
use self::encode::Template;
use super::{Access, Decoded, Label, Protocol, Rows, Statement, Status, Values, Wire};
use crate::error::Fault;

pub struct Resp {
    requests: Box<[Prepared]>,
    decoder: Decoder,
    each: Each,
}

struct Prepared {
    template: Template,
    /// What is sent for each value of the reply.
    each: Option<Arc<Template>>,
}

impl Protocol for Resp {
    const NAME: &'static str = "redis";
    const ORDERED: bool = true;

    fn open(wire: &mut Wire, access: &Access, statements: &[Statement]) -> Result<Self, Fault> {
        let prepared = |statement: &Statement| Prepared {
            template: Template::new(&statement.text),
            each: statement.each.as_deref().map(|text| Arc::new(Template::new(text))),
        };
        let mut resp = Self {
            requests: statements.iter().map(prepared).collect(),
            decoder: Decoder::new(access),
            each: Each::default(),
        };
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
        let prepared = &self.requests[statement];
        prepared.template.encode(values, out);
        if let Some(template) = &prepared.each {
            self.each.begin(template);
        }
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, &'static str> {
        let mut consumed = 0;
        loop {
            let kept = self.each.keeps().then_some(&mut self.each.kept);
            let decoded = self.decoder.take(&input[consumed..], kept)?;
            consumed += decoded.consumed;
            let Some(reply) = decoded.reply else { return Ok(Decoded { consumed, reply: None }) };
            if let Some(reply) = self.each.take(reply) {
                return Ok(Decoded { consumed, reply: Some(reply) });
            }
        }
    }

    fn follow_up(&mut self, out: &mut Vec<u8>) {
        self.each.ask(out);
    }

    fn rows(&self) -> Option<&Rows> {
        self.decoder.rows()
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
            let decoded = match self.decoder.take(wire.fill(0)?, None) {
                Ok(decoded) => decoded,
                Err(reason) => return Err(Fault::Malformed { protocol: Self::NAME, reason }),
            };
            wire.take(decoded.consumed)?;
            match decoded.reply.map(|reply| reply.status) {
                Some(Status::Error(code)) => {
                    let message = self.message().to_owned();
                    // It reads its data from disk, or a replica from a primary that it cannot reach yet.
                    let starts = [&b"LOADING"[..], b"MASTERDOWN"].map(Label::new).contains(&code);
                    let full = message.starts_with("ERR max number of clients");
                    return Err(if starts || full {
                        Fault::NotReady(message)
                    } else {
                        Fault::Login(message)
                    });
                }
                Some(_) => return Ok(()),
                None => wire.read_more()?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Reply;

    fn resp(text: &str, each: Option<&str>) -> Resp {
        let prepared = Prepared {
            template: Template::new(text),
            each: each.map(|text| Arc::new(Template::new(text))),
        };
        Resp {
            requests: Box::new([prepared]),
            decoder: Decoder::new(&Access::default()),
            each: Each::default(),
        }
    }

    fn sent(resp: &mut Resp) -> String {
        let mut out = Vec::new();
        resp.follow_up(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn each_key_of_a_list_is_asked_for_before_the_reply_is_whole() {
        let mut resp = resp("KEYS", Some("HGETALL ?"));
        resp.encode(0, &Values::default(), 0, &mut Vec::new());
        let decoded = resp.decode(b"*2\r\n$2\r\nk1\r\n$2\r\nk2\r\n").expect("a list");
        assert_eq!((decoded.consumed, decoded.reply), (20, None));
        assert_eq!(sent(&mut resp), "*2\r\n$7\r\nHGETALL\r\n$2\r\nk1\r\n");
        assert_eq!(sent(&mut resp), "", "once");
        let row = b"*2\r\n$1\r\nf\r\n$3\r\nabc\r\n";
        assert_eq!(resp.decode(row).expect("a row").reply, None);
        assert!(sent(&mut resp).ends_with("k2\r\n"));
        let reply = resp.decode(row).expect("a row").reply;
        assert_eq!(reply, Some(Reply { rows: 2, bytes: 8, ..Reply::default() }));
        assert_eq!(sent(&mut resp), "");
    }

    #[test]
    fn a_key_without_a_row_is_missing() {
        let mut resp = resp("KEYS", Some("HGETALL ?"));
        resp.encode(0, &Values::default(), 0, &mut Vec::new());
        resp.decode(b"*1\r\n$2\r\nk1\r\n").expect("a list");
        sent(&mut resp);
        let reply = resp.decode(b"*0\r\n").expect("nothing").reply.expect("whole");
        assert_eq!((reply.status, reply.rows), (Status::Missing, 0));
    }

    #[test]
    fn an_empty_list_is_missing_and_calls_for_nothing() {
        let mut resp = resp("KEYS", Some("HGETALL ?"));
        resp.encode(0, &Values::default(), 0, &mut Vec::new());
        let reply = resp.decode(b"*0\r\n").expect("nothing").reply.expect("whole");
        assert_eq!((reply.status, sent(&mut resp).as_str()), (Status::Missing, ""));
    }

    #[test]
    fn a_lone_number_is_told() {
        let mut resp = resp("HSET", None);
        let reply = |resp: &mut Resp, bytes: &[u8]| resp.decode(bytes).expect("RESP").reply;
        assert_eq!(reply(&mut resp, b":12\r\n").map(|reply| reply.number), Some(12));
        assert_eq!(reply(&mut resp, b":-1\r\n").map(|reply| reply.number), Some(0));
        assert_eq!(reply(&mut resp, b"+12\r\n").map(|reply| reply.number), Some(0));
    }
}
