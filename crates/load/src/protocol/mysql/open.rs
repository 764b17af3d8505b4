//! The handshake, authentication and preparing: blocking, once a connection.

use super::encode::Template;
use super::packet::{HEADER, LONGEST, Reader, number, seal};
use super::scramble;
use crate::error::Fault;
use crate::protocol::{Access, Statement, Wire};

const NAME: &str = "mysql";
const DEFAULT_USER: &str = "root";

/// What client and server tell each other that they can (`CLIENT_…` flags).
mod can {
    /// Rows that an `UPDATE` found count, whether or not it changed them.
    pub(super) const FOUND_ROWS: u32 = 1 << 1;
    pub(super) const LONG_FLAG: u32 = 1 << 2;
    pub(super) const CONNECT_WITH_DB: u32 = 1 << 3;
    pub(super) const PROTOCOL_41: u32 = 1 << 9;
    pub(super) const TLS: u32 = 1 << 11;
    pub(super) const TRANSACTIONS: u32 = 1 << 13;
    pub(super) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(super) const PS_MULTI_RESULTS: u32 = 1 << 18;
    pub(super) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(super) const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    pub(super) const DEPRECATE_EOF: u32 = 1 << 24;
}

const WANTED: u32 = can::FOUND_ROWS
    | can::LONG_FLAG
    | can::PROTOCOL_41
    | can::TRANSACTIONS
    | can::SECURE_CONNECTION
    | can::PS_MULTI_RESULTS
    | can::PLUGIN_AUTH
    | can::PLUGIN_AUTH_LENENC
    | can::DEPRECATE_EOF;
/// `utf8mb4_general_ci`, which all servers have.
const UTF8: u8 = 45;
/// The statement cannot be prepared (`ER_UNSUPPORTED_PS`).
const UNSUPPORTED_PS: u16 = 1295;

/// What the server says first.
struct Greeting {
    capabilities: u32,
    nonce: Vec<u8>,
    plugin: Vec<u8>,
}

/// A server that starts or stops (`ER_SERVER_SHUTDOWN`, `ER_NORMAL_SHUTDOWN`, `ER_SERVER_OFFLINE_MODE`,
/// `ER_SERVER_ISNT_AVAILABLE`), or has all connections taken (`ER_CON_COUNT_ERROR`, `ER_TOO_MANY_USER_CONNECTIONS`).
const NOT_READY: [u16; 6] = [1053, 1077, 3032, 3168, 1040, 1203];

fn refused(refusal: Refusal) -> Fault {
    if NOT_READY.contains(&refusal.code) {
        Fault::NotReady(refusal.text)
    } else {
        Fault::Login(refusal.text)
    }
}

struct Refusal {
    code: u16,
    text: String,
}

/// A logged-in connection's ways.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    pub(super) without_eof: bool,
}

pub(super) fn log_in(wire: &mut Wire, access: &Access) -> Result<Session, Fault> {
    let (_, body) = read(wire)?;
    if let Some(refusal) = refusal(&body) {
        return Err(refused(refusal));
    }
    let greeting = greeting(&body)?;
    let wanted = WANTED
        | if access.database.is_some() { can::CONNECT_WITH_DB } else { 0 }
        | if access.tls.is_some() { can::TLS } else { 0 };
    let capabilities = wanted & greeting.capabilities;
    let needed = can::PROTOCOL_41 | can::SECURE_CONNECTION | can::PLUGIN_AUTH;
    if capabilities & needed != needed {
        return Err(malformed("a server older than MySQL 5.5.7"));
    }
    let password = access.password.as_deref().unwrap_or_default();
    let (plugin, answer) = match answer(&greeting.plugin, password, &greeting.nonce) {
        Some(answer) => (greeting.plugin.as_slice(), answer),
        // The server then says what the user's own plugin is.
        None => (NATIVE, scramble::native(password, &greeting.nonce)),
    };
    let mut out = capabilities.to_le_bytes().to_vec();
    out.extend_from_slice(&(LONGEST + 1).to_le_bytes());
    out.push(UTF8);
    out.extend_from_slice(&[0; 23]);
    let mut count = 1;
    if let Some(tls) = &access.tls {
        if capabilities & can::TLS == 0 {
            return Err(Fault::Tls(
                "the server has none: set `ssl_cert` and `ssl_key` there".to_owned(),
            ));
        }
        send(wire, count, &out)?;
        wire.secure(tls)?;
        count += 1;
    }
    out.extend_from_slice(access.user.as_deref().unwrap_or(DEFAULT_USER).as_bytes());
    out.push(0);
    number(answer.len() as u64, &mut out);
    out.extend_from_slice(&answer);
    if let Some(database) =
        access.database.as_deref().filter(|_| capabilities & can::CONNECT_WITH_DB != 0)
    {
        out.extend_from_slice(database.as_bytes());
        out.push(0);
    }
    out.extend_from_slice(plugin);
    out.push(0);
    send(wire, count, &out)?;
    authenticate(wire, password, plugin.to_vec(), greeting.nonce)?;
    Ok(Session { without_eof: capabilities & can::DEPRECATE_EOF != 0 })
}

fn greeting(body: &[u8]) -> Result<Greeting, Fault> {
    let mut reader = Reader::new(body);
    if reader.u8() != Some(10) {
        return Err(malformed("it greets with another version than 10"));
    }
    reader.text();
    let parts = (|| {
        reader.u32()?;
        let mut nonce = reader.bytes(8)?.to_vec();
        reader.u8()?;
        let low = reader.u16()?;
        reader.bytes(3)?;
        let high = reader.u16()?;
        let length = usize::from(reader.u8()?);
        reader.bytes(10)?;
        nonce.extend_from_slice(reader.bytes(length.saturating_sub(8).max(13))?);
        nonce.truncate(20); // a zero follows
        let capabilities = u32::from(high) << 16 | u32::from(low);
        Some(Greeting { capabilities, nonce, plugin: reader.text().to_vec() })
    })();
    parts.ok_or_else(|| malformed("a greeting cut short"))
}

const NATIVE: &[u8] = b"mysql_native_password";
const CACHING_SHA2: &[u8] = b"caching_sha2_password";
/// `MariaDB`'s; its nonce is longer.
const ED25519: &[u8] = b"client_ed25519";

/// What a plugin wants to see; `None` for one that is not known.
fn answer(plugin: &[u8], password: &str, nonce: &[u8]) -> Option<Vec<u8>> {
    match plugin {
        NATIVE => Some(scramble::native(password, nonce)),
        CACHING_SHA2 => Some(scramble::caching_sha2(password, nonce)),
        ED25519 => Some(scramble::ed25519(password, nonce)),
        _ => None,
    }
}

/// Until the server says `OK`.
fn authenticate(
    wire: &mut Wire,
    password: &str,
    mut plugin: Vec<u8>,
    mut nonce: Vec<u8>,
) -> Result<(), Fault> {
    loop {
        let (count, body) = read(wire)?;
        if let Some(refusal) = refusal(&body) {
            return Err(refused(refusal));
        }
        let reply = match body.as_slice() {
            [0, ..] => return Ok(()),
            [0xfe, rest @ ..] => {
                let mut reader = Reader::new(rest);
                plugin = reader.text().to_vec();
                nonce = reader.rest().to_vec();
                nonce.truncate(if plugin == ED25519 { 32 } else { 20 });
                answer(&plugin, password, &nonce).ok_or_else(|| {
                    Fault::Login(format!(
                        "it asks for {}; tare-load has mysql_native_password, caching_sha2_password and client_ed25519",
                        String::from_utf8_lossy(&plugin)
                    ))
                })?
            }
            // The server has the password in its cache, and an OK follows.
            [1, 3] if plugin == CACHING_SHA2 => continue,
            // It has not; over TLS or a Unix socket it may have it as it is.
            [1, 4] if plugin == CACHING_SHA2 && wire.is_secure() => {
                [password.as_bytes(), &[0]].concat()
            }
            // Otherwise the answer to a 2 is its public key.
            [1, 4] if plugin == CACHING_SHA2 => vec![2],
            [1, key @ ..] if plugin == CACHING_SHA2 && !key.is_empty() => {
                scramble::sealed(password, &nonce, key).map_err(Fault::Login)?
            }
            _ => return Err(malformed("it does not answer the log-in")),
        };
        send(wire, count.wrapping_add(1), &reply)?;
    }
}

/// Prepares all statements, each sent before the one before is answered.
pub(super) fn prepare(
    wire: &mut Wire,
    session: Session,
    statements: &[Statement],
) -> Result<Vec<Template>, Fault> {
    let mut out = Vec::new();
    for statement in statements {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER]);
        out.push(0x16);
        out.extend_from_slice(statement.text.as_bytes());
        seal(start, 0, &mut out);
    }
    wire.send(&out)?;
    statements.iter().map(|statement| prepared(wire, session, statement)).collect()
}

fn prepared(wire: &mut Wire, session: Session, statement: &Statement) -> Result<Template, Fault> {
    let (_, body) = read(wire)?;
    let refused = |message: String| Fault::Statement { statement: statement.text.clone(), message };
    if let Some(refusal) = refusal(&body) {
        return match refusal.code {
            UNSUPPORTED_PS if statement.parameters.is_empty() => {
                Ok(Template::text(&statement.text))
            }
            code if NOT_READY.contains(&code) => Err(Fault::NotReady(refusal.text)),
            _ => Err(refused(refusal.text)),
        };
    }
    let mut reader = Reader::new(&body);
    let parts = (reader.u8(), reader.u32(), reader.u16(), reader.u16());
    let (Some(0), Some(number), Some(columns), Some(parameters)) = parts else {
        return Err(malformed("it does not answer the preparing of a statement"));
    };
    for count in [parameters, columns].into_iter().filter(|&count| count > 0) {
        for _ in 0..count + u16::from(!session.without_eof) {
            read(wire)?;
        }
    }
    if usize::from(parameters) != statement.parameters.len() {
        return Err(refused(format!(
            "it has {parameters} parameters for the server, {} here: each ? must stand for a generator's value",
            statement.parameters.len()
        )));
    }
    Ok(Template::prepared(number, &statement.parameters))
}

fn refusal(body: &[u8]) -> Option<Refusal> {
    let [0xff, low, high, text @ ..] = body else { return None };
    let text = if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
    let text = String::from_utf8_lossy(text).into_owned();
    Some(Refusal { code: u16::from_le_bytes([*low, *high]), text })
}

fn send(wire: &mut Wire, count: u8, body: &[u8]) -> Result<(), Fault> {
    let mut out = vec![0; HEADER];
    out.extend_from_slice(body);
    seal(0, count, &mut out);
    wire.send(&out)
}

/// A packet's number and contents.
fn read(wire: &mut Wire) -> Result<(u8, Vec<u8>), Fault> {
    let header = wire.fill(HEADER)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let count = header[3];
    if length == 0 || length > 1 << 20 {
        return Err(malformed("a packet of a length that it cannot have"));
    }
    let mut body = wire.take(HEADER + length as usize)?;
    body.drain(..HEADER);
    Ok((count, body))
}

fn malformed(reason: &'static str) -> Fault {
    Fault::Malformed { protocol: NAME, reason }
}
