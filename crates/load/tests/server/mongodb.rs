//! A server that answers every message of `MongoDB`'s protocol with `{ok: 1}`.

use std::io::{Read, Write};
use std::net::TcpListener;

/// A job for it.
pub(crate) const PING: &str = "{format: 1, operations: [{name: ping, steps: [{send: '{\"ping\": 1}', \
     expect: {may_miss: true}}]}]}";

pub(crate) fn mongodb() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

pub(crate) fn answer(mut stream: impl Read + Write) {
    let mut header = [0; 16];
    while stream.read_exact(&mut header).is_ok() {
        let length = i32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        stream.read_exact(&mut vec![0; length as usize - 16]).expect("a whole message");
        let mut out = b"\x26\0\0\0\0\0\0\0".to_vec();
        out.extend_from_slice(&header[4..8]);
        out.extend_from_slice(b"\xdd\x07\0\0\0\0\0\0\0");
        out.extend_from_slice(b"\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xf0\x3f\0");
        if stream.write_all(&out).is_err() {
            break;
        }
    }
}
