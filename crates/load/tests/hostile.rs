//! Servers that answer a log-in, or requests, with anything at all: no panic, no hang, bounded memory.
//!
//! `make fuzz-load` sets `PROPTEST_CASES` to many more cases than a test takes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use proptest::prelude::*;
use tare_load::measure::usage::peak_resident_kib;
use tare_load::protocol::cql::Cql;
use tare_load::protocol::mongodb::Mongodb;
use tare_load::protocol::mysql::Mysql;
use tare_load::protocol::postgresql::Postgresql;
use tare_load::protocol::resp::Resp;
use tare_load::protocol::{Access, Protocol, Statement, Type, Values, Wire};
use tare_load::tls::{Tls, Verify};

const LIMIT: Duration = Duration::from_secs(2);
/// Beyond what the tests themselves hold.
const MOST_KIB: u64 = 256 * 1024;

/// A server that says `bytes` to whoever connects, and closes.
fn say(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        // The client may have gone by then.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        drain(stream);
    });
    address
}

fn drain(mut stream: TcpStream) {
    let _ = stream.set_read_timeout(Some(LIMIT));
    let mut buffer = [0; 4096];
    while matches!(stream.read(&mut buffer), Ok(1..)) {}
}

/// Logs in, prepares, and sends one request; whether it came that far.
fn meets<P: Protocol>(bytes: &[u8], tls: bool) -> bool {
    let address = say(bytes.to_vec());
    let statement = Statement {
        text: "SELECT ?".to_owned(),
        parameters: vec![Type::Integer],
        ..Statement::default()
    };
    let tls = tls.then(|| Tls::new(&address, Verify::None, None, None).expect("settings"));
    let access = Access {
        user: Some("user".to_owned()),
        password: Some("secret".to_owned()),
        tls,
        ..Access::default()
    };
    let mut wire = Wire::connect(&address, LIMIT).expect("it listens");
    let first = access.tls.as_ref().filter(|_| P::TLS_FIRST);
    let opened = first
        .map_or(Ok(()), |tls| wire.secure(tls))
        .and_then(|()| P::open(&mut wire, &access, &[statement]));
    let came = opened.is_ok();
    if let Ok(mut protocol) = opened {
        let mut values = Values::default();
        values.integer(1);
        protocol.encode(0, &values, 0, &mut Vec::new());
        let mut rest = bytes;
        while let Ok(decoded) = protocol.decode(rest) {
            rest = &rest[decoded.consumed..];
            if decoded.reply.is_none() {
                break;
            }
        }
    }
    came
}

type Meets = fn(&[u8], bool) -> bool;

/// A segment of CQL's version 5, up to 255 bytes, with both checksums.
fn segment(payload: &[u8]) -> Vec<u8> {
    let head = [payload.len() as u8, 0, 2];
    let mut crc = 0x0087_5060_u32;
    for byte in head {
        crc ^= u32::from(byte) << 16;
        for _ in 0..8 {
            crc = crc << 1 ^ if crc & 0x0080_0000 == 0 { 0 } else { 0x0197_4f0b };
        }
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[0xfa, 0x2d, 0x55, 0xca]);
    hasher.update(payload);
    [&head[..], &crc.to_le_bytes()[..3], payload, &hasher.finalize().to_le_bytes()].concat()
}

/// What a server of each protocol says to a client that logs in without being asked for more.
fn servers() -> [(&'static str, Meets, Vec<u8>); 6] {
    let mut mysql = vec![10];
    mysql.extend_from_slice(b"8.0.30\0\x01\0\0\0abcdefgh\0\xff\xf7\xff\x02\0\xff\xdf\x15");
    mysql.extend_from_slice(b"\0\0\0\0\0\0\0\0\0\0abcdefghijkl\0mysql_native_password\0");
    let packet = |number: u8, body: &[u8]| [&[body.len() as u8, 0, 0, number], body].concat();
    let prepared = [0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    let mysql = [
        packet(0, &mysql),
        packet(2, &[0, 0, 0, 2, 0, 0, 0]),
        packet(1, &prepared),
        packet(2, b"\x03def\0\0\0\x01?\0\x0c\x3f\0\0\0\0\0\xfd\x80\0\0\0\0"),
    ];
    let mut postgresql = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I1\0\0\0\x04".to_vec();
    postgresql.extend_from_slice(b"t\0\0\0\x0a\0\x01\0\0\0\x17n\0\0\0\x04Z\0\0\0\x05I");
    let cql = [
        &b"\x84\0\0\0\x06\0\0\0\x1d\0\x01\0\x11PROTOCOL_VERSIONS\0\x01\0\x044/v4"[..],
        b"\x84\0\0\0\x02\0\0\0\0\x84\0\0\0\x08\0\0\0\x1f\0\0\0\x04\0\x02id",
        b"\0\0\0\x01\0\0\0\x01\0\0\0\0\0\x01k\0\x01t\0\x01v\0\x09",
    ]
    .concat();
    let prepared = [
        &b"\x85\0\0\0\x08\0\0\0\x26\0\0\0\x04\0\x02id\0\x03res\0\0\0\x01\0\0\0\x01\0\0\0\x01"[..],
        b"\0\0\0\x01k\0\x01t\0\x01v\0\x09",
    ]
    .concat();
    let cql_5 = [
        &b"\x84\0\0\0\x06\0\0\0\x1d\0\x01\0\x11PROTOCOL_VERSIONS\0\x01\0\x045/v5"[..],
        b"\x85\0\0\0\x02\0\0\0\0",
        &segment(&prepared),
    ]
    .concat();
    let mut mongodb = b"\x26\0\0\0\0\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0".to_vec();
    mongodb.extend_from_slice(b"\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xf0\x3f\0");
    [
        ("redis", meets::<Resp>, b"+OK\r\n+PONG\r\n$5\r\nhello\r\n".to_vec()),
        ("mysql", meets::<Mysql>, mysql.concat()),
        ("postgresql", meets::<Postgresql>, postgresql),
        ("cql", meets::<Cql>, cql),
        ("cql 5", meets::<Cql>, cql_5),
        ("mongodb", meets::<Mongodb>, mongodb),
    ]
}

/// Tests of this file take turns, so that the most memory is that of one.
static TURN: Mutex<()> = Mutex::new(());

fn is_bounded() {
    let most = peak_resident_kib().expect("Linux says it");
    assert!(most < MOST_KIB, "{most} KiB");
}

#[test]
fn what_servers_say_is_taken_as_far_as_it_goes() {
    let _turn = TURN.lock();
    for (name, meets, bytes) in servers() {
        if matches!(name, "redis" | "mysql" | "postgresql" | "cql" | "cql 5") {
            assert!(meets(&bytes, false), "{name}: the sample is to reach the first request");
        }
        for cut in 0..bytes.len() {
            meets(&bytes[..cut], false);
        }
    }
}

#[test]
fn lengths_of_gigabytes_are_not_believed() {
    let _turn = TURN.lock();
    for (_, meets, bytes) in servers() {
        for at in 0..bytes.len().saturating_sub(4) {
            let mut bytes = bytes.clone();
            bytes[at..at + 4].copy_from_slice(&[0x7f, 0xff, 0xff, 0x7f]);
            meets(&bytes, false);
        }
    }
    is_bounded();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600), which in 0..6_usize, tls in any::<bool>()) {
        let _turn = TURN.lock();
        servers()[which].1(&bytes, tls);
        is_bounded();
    }

    #[test]
    fn nearly_valid_bytes(
        which in 0..6_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        more in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let _turn = TURN.lock();
        let (_, meets, mut bytes) = servers()[which].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.extend_from_slice(&more);
        meets(&bytes, false);
        is_bounded();
    }

    /// A record of TLS, well-formed as such, with anything in it.
    #[test]
    fn records_of_tls(kind in 20..24_u8, body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _turn = TURN.lock();
        let head = [kind, 3, 3, (body.len() >> 8) as u8, body.len() as u8];
        prop_assert!(!meets::<Resp>(&[&head[..], &body].concat(), true));
        is_bounded();
    }
}
