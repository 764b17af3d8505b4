//! Frames: `length u32, id u64, kind u8, payload`, big-endian; `length` counts what follows it.
//!
//! A message is one frame of kind `H`, with a JSON object whose `data` is the number of bytes that follow, and frames
//! of kind `D` with these. Frames of several messages may alternate; those of one message keep their order.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use serde_json::{Map, Value};

/// Longest payload of a frame, so that a length from a damaged stream does not allocate memory.
const MOST_PAYLOAD: usize = 1 << 20;
/// Most data of a message; longer files are sent in parts.
pub(crate) const MOST_DATA: usize = 64 << 20;
const OVERHEAD: usize = 9;

pub(crate) struct Message {
    pub(crate) id: u64,
    pub(crate) head: Map<String, Value>,
    pub(crate) data: Vec<u8>,
}

/// Messages of a stream, in the order of their last frames.
pub(crate) struct Messages<R> {
    stream: R,
    begun: HashMap<u64, (Message, usize)>,
}

impl<R: Read> Messages<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, begun: HashMap::new() }
    }

    /// Next whole message; `None` at the end of the stream.
    ///
    /// # Errors
    /// The stream breaks, or does not consist of frames.
    pub(crate) fn next(&mut self) -> io::Result<Option<Message>> {
        loop {
            let Some((id, kind, payload)) = self.frame()? else { return Ok(None) };
            match kind {
                b'H' => self.begin(id, &payload)?,
                b'D' => self.more(id, &payload)?,
                _ => return Err(damaged("a frame of an unknown kind")),
            }
            if self.begun.get(&id).is_some_and(|(message, wanted)| message.data.len() == *wanted) {
                return Ok(self.begun.remove(&id).map(|(message, _)| message));
            }
        }
    }

    fn begin(&mut self, id: u64, payload: &[u8]) -> io::Result<()> {
        let Ok(Value::Object(mut head)) = serde_json::from_slice(payload) else {
            return Err(damaged("a head that is no JSON object"));
        };
        let wanted = head.remove("data").and_then(|length| length.as_u64()).unwrap_or(0) as usize;
        if wanted > MOST_DATA {
            return Err(damaged("a message that is too long"));
        }
        let message = Message { id, head, data: Vec::new() };
        self.begun.insert(id, (message, wanted));
        Ok(())
    }

    fn more(&mut self, id: u64, payload: &[u8]) -> io::Result<()> {
        let (message, wanted) =
            self.begun.get_mut(&id).ok_or_else(|| damaged("data of no message"))?;
        if message.data.len() + payload.len() > *wanted {
            return Err(damaged("more data than announced"));
        }
        message.data.extend_from_slice(payload);
        Ok(())
    }

    fn frame(&mut self) -> io::Result<Option<(u64, u8, Vec<u8>)>> {
        let mut start = [0; 4 + OVERHEAD];
        if self.stream.read(&mut start[..1])? == 0 {
            return Ok(None);
        }
        self.stream.read_exact(&mut start[1..])?;
        let (length, rest) = start.split_at(4);
        let length = u32::from_be_bytes(length.try_into().unwrap_or_default()) as usize;
        if !(OVERHEAD..=OVERHEAD + MOST_PAYLOAD).contains(&length) {
            return Err(damaged("a frame of a length that none has"));
        }
        let id = u64::from_be_bytes(rest[..8].try_into().unwrap_or_default());
        let mut payload = vec![0; length - OVERHEAD];
        self.stream.read_exact(&mut payload)?;
        Ok(Some((id, rest[8], payload)))
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the stream is damaged: {what}"))
}

/// Writes one message. `parts`: its data, in order.
///
/// # Errors
/// The stream cannot be written.
pub(crate) fn write(
    mut stream: impl Write,
    id: u64,
    mut head: Map<String, Value>,
    parts: &[&[u8]],
) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if length > 0 {
        head.insert("data".to_owned(), length.into());
    }
    let mut out = Vec::new();
    frame(&mut out, id, b'H', Value::Object(head).to_string().as_bytes());
    for chunk in parts.iter().flat_map(|part| part.chunks(MOST_PAYLOAD)) {
        frame(&mut out, id, b'D', chunk);
        stream.write_all(&out)?;
        out.clear();
    }
    stream.write_all(&out)
}

fn frame(out: &mut Vec<u8>, id: u64, kind: u8, payload: &[u8]) {
    out.extend(((payload.len() + OVERHEAD) as u32).to_be_bytes());
    out.extend(id.to_be_bytes());
    out.push(kind);
    out.extend(payload);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn head(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_message_comes_back_whole() {
        let data = vec![7; MOST_PAYLOAD + 5];
        let mut wire = Vec::new();
        write(&mut wire, 9, head(&json!({"op": "put"})), &[&data[..3], &data[3..]]).unwrap();
        let mut messages = Messages::new(&wire[..]);
        let message = messages.next().unwrap().unwrap();
        assert_eq!((message.id, message.head["op"].as_str(), message.data), (9, Some("put"), data));
        assert!(messages.next().unwrap().is_none());
    }

    #[test]
    fn frames_of_two_messages_may_alternate() {
        let mut wire = Vec::new();
        frame(&mut wire, 1, b'H', br#"{"data": 2}"#);
        frame(&mut wire, 2, b'H', br#"{"data": 1}"#);
        frame(&mut wire, 1, b'D', b"a");
        frame(&mut wire, 2, b'D', b"x");
        frame(&mut wire, 1, b'D', b"b");
        let mut messages = Messages::new(&wire[..]);
        let second = messages.next().unwrap().unwrap();
        let first = messages.next().unwrap().unwrap();
        assert_eq!(
            (second.id, &second.data[..], first.id, &first.data[..]),
            (2, &b"x"[..], 1, &b"ab"[..])
        );
    }

    #[test]
    fn what_is_no_frame_is_refused_without_reserving_its_length() {
        for wire in [&b"HTTP/1.1 400 Bad Request\r\n"[..], &[0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
        {
            assert!(Messages::new(wire).next().is_err());
        }
        let mut wire = Vec::new();
        frame(&mut wire, 1, b'H', b"[]");
        assert!(Messages::new(&wire[..]).next().is_err());
        let mut wire = Vec::new();
        frame(&mut wire, 1, b'D', b"data of nothing");
        assert!(Messages::new(&wire[..]).next().is_err());
    }

    /// All that is in a stream, and each request in it looked at.
    fn read_all(wire: &[u8]) {
        let mut messages = Messages::new(wire);
        while let Ok(Some(message)) = messages.next() {
            assert!(message.data.len() <= MOST_DATA);
            if let Ok((request, _)) = crate::request::parse(message.head) {
                let _ = request.kept();
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_of_a_stream_make_it_panic(wire in prop::collection::vec(any::<u8>(), 0..400)) {
            read_all(&wire);
        }

        /// Frames with heads like those of requests, whose values and lengths are anything, in any order, then cut.
        #[test]
        fn no_frames_in_any_order_make_it_panic(
            frames in prop::collection::vec((0..3_u64, 0..8_usize, any::<u64>(), any::<f64>()), 0..12),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut wire = Vec::new();
            for (id, kind, number, real) in frames {
                let text = match kind {
                    0 => json!({"op": "run", "argv": ["true"], "env": null, "limit_s": real, "data": number % 9}),
                    1 => json!({"op": "put_part", "scratch": "/x", "offset": number, "data": number}),
                    2 => json!({"op": "read", "path": "/x", "offset": number, "limit": number, "acks": [number]}),
                    3 => json!({"op": "hello", "format": number, "epoch": "", "lease_s": real, "engine": ""}),
                    4 => json!({"op": number, "data": real}),
                    5 => json!([number]),
                    _ => json!({"data": number % 40}),
                };
                if kind == 7 {
                    frame(&mut wire, id, b'D', &[0; 40][..(number % 40) as usize]);
                } else {
                    frame(&mut wire, id, b'H', text.to_string().as_bytes());
                }
            }
            read_all(&wire);
            read_all(&wire[..cut.index(wire.len() + 1)]);
        }
    }

    #[test]
    fn a_stream_that_ends_within_a_frame_is_broken() {
        let mut wire = Vec::new();
        write(&mut wire, 1, head(&json!({})), &[b"abc"]).unwrap();
        assert!(Messages::new(&wire[..5]).next().is_err());
    }
}
