//! Start-up, authentication and preparing: blocking, once a connection.

use md5::{Digest, Md5};

use super::binding;
use super::encode::{Template, message, numbered};
use crate::error::Fault;
use crate::protocol::scram::{Hash, Proof, Scram, nonce};
use crate::protocol::{Access, Statement, Wire};

const NAME: &str = "postgresql";
const VERSION_3_0: u32 = 3 << 16;
const DEFAULT_USER: &str = "postgres";
/// Longer messages before the first request are no start-up.
const LONGEST: usize = 1 << 20;

/// One message of the server.
struct Message {
    kind: u8,
    body: Vec<u8>,
}

/// What an `ErrorResponse` says.
struct Refusal {
    code: String,
    text: String,
}

/// Logs in. Afterwards the server is ready.
pub(super) fn log_in(wire: &mut Wire, access: &Access) -> Result<(), Fault> {
    if let Some(tls) = &access.tls {
        ask_for_tls(wire)?;
        wire.secure(tls)?;
    }
    let user = access.user.as_deref().unwrap_or(DEFAULT_USER);
    let mut parameters = VERSION_3_0.to_be_bytes().to_vec();
    let database = access.database.as_deref().unwrap_or(user);
    for text in ["user", user, "database", database, "client_encoding", "UTF8"].into_iter().chain([
        "application_name",
        "tare-load",
        "",
    ]) {
        parameters.extend_from_slice(text.as_bytes());
        parameters.push(0);
    }
    let mut out = (4 + parameters.len() as u32).to_be_bytes().to_vec();
    out.extend_from_slice(&parameters);
    wire.send(&out)?;
    authenticate(wire, access, user)?;
    loop {
        let answer = read(wire)?;
        match answer.kind {
            b'Z' => return Ok(()),
            b'E' => return Err(refused(&refusal(&answer.body))),
            b'S' | b'K' | b'N' => {}
            _ => return Err(malformed("it is not a start-up")),
        }
    }
}

/// `SSLRequest`, whose answer is one letter.
fn ask_for_tls(wire: &mut Wire) -> Result<(), Fault> {
    wire.send(&[0, 0, 0, 8, 4, 210, 22, 47])?;
    match wire.take(1)?.as_slice() {
        b"S" => Ok(()),
        b"N" => Err(Fault::Tls("the server has none: set `ssl = on` there".to_owned())),
        _ => Err(malformed("it does not answer the question for TLS")),
    }
}

fn authenticate(wire: &mut Wire, access: &Access, user: &str) -> Result<(), Fault> {
    let mut scram: Option<Scram> = None;
    let mut proof: Option<Proof> = None;
    loop {
        let answer = read(wire)?;
        match answer.kind {
            b'R' => {}
            b'E' => return Err(refused(&refusal(&answer.body))),
            b'N' => continue,
            _ => return Err(malformed("it is not a start-up")),
        }
        let (method, data) = answer.body.split_first_chunk::<4>().ok_or_else(|| {
            malformed("it asks for a way of authentication and does not say which")
        })?;
        match (u32::from_be_bytes(*method), &scram) {
            (0, _) => return Ok(()),
            (3, _) if !wire.is_private() => {
                return Err(Fault::Login(
                    "it wants the password in clear text, which tare-load sends over TLS and \
                     loopback only; have the server ask for scram-sha-256"
                        .to_owned(),
                ));
            }
            (3, _) => send(wire, b'p', &[password(access)?.as_bytes(), &[0]])?,
            (5, _) => {
                let salt = data.first_chunk::<4>().ok_or_else(|| malformed("a short salt"))?;
                let known = md5([password(access)?.as_bytes(), user.as_bytes()]);
                let hash = format!("md5{}", md5([known.as_bytes(), salt]));
                send(wire, b'p', &[hash.as_bytes(), &[0]])?;
            }
            (10, _) => {
                let (mechanism, binding) = binding::chosen(data, wire.certificate())
                    .ok_or_else(|| unsupported("SASL without SCRAM-SHA-256"))?;
                // The server knows the user's name from the start-up.
                let (started, first) =
                    Scram::begin(Hash::Sha256, "", password(access)?, nonce(), binding);
                let length = (first.len() as u32).to_be_bytes();
                send(wire, b'p', &[mechanism.as_bytes(), &[0], &length, first.as_bytes()])?;
                scram = Some(started);
            }
            (11, Some(scram)) => {
                let proven = scram.prove(text(data)?);
                let proven = proven.map_err(|reason| Fault::Login(reason.to_owned()))?;
                send(wire, b'p', &[proven.message.as_bytes()])?;
                proof = Some(proven);
            }
            (12, Some(_)) => {
                let last = text(data)?;
                if !proof.as_ref().is_some_and(|proof| proof.is_answered_by(last)) {
                    let why = "it does not know the password itself";
                    return Err(Fault::Login(why.to_owned()));
                }
            }
            (7..=9, _) => return Err(unsupported("GSSAPI or SSPI")),
            _ => return Err(unsupported("a way of authentication that it does not know")),
        }
    }
}

fn text(data: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(data).map_err(|_| malformed("a log-in that is no text"))
}

/// In hexadecimal digits.
fn md5(parts: [&[u8]; 2]) -> String {
    let digest = parts.iter().fold(Md5::new(), Digest::chain_update).finalize();
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn password(access: &Access) -> Result<&str, Fault> {
    access.password.as_deref().ok_or_else(|| {
        Fault::Login("it wants a password; give one with --password-file".to_owned())
    })
}

/// Prepares all statements at once, and learns the types of their parameters.
pub(super) fn prepare(wire: &mut Wire, statements: &[Statement]) -> Result<Vec<Template>, Fault> {
    let mut out = Vec::new();
    for (number, statement) in statements.iter().enumerate() {
        let text = numbered(&statement.text, &statement.parameters).ok_or_else(|| {
            let message = "a ? outside quotes stands for a generator's value".to_owned();
            Fault::Statement { statement: statement.text.clone(), message }
        })?;
        let name = name(number);
        message(b'P', &[name.as_bytes(), &[0], text.as_bytes(), &[0, 0, 0]], &mut out);
        message(b'D', &[b"S", name.as_bytes(), &[0]], &mut out);
        message(b'S', &[], &mut out);
    }
    wire.send(&out)?;
    statements
        .iter()
        .enumerate()
        .map(|(number, statement)| described(wire, &name(number), statement))
        .collect()
}

/// `7` for the statement 7: it goes out with every request.
fn name(number: usize) -> String {
    number.to_string()
}

fn described(wire: &mut Wire, name: &str, statement: &Statement) -> Result<Template, Fault> {
    let mut template = None;
    loop {
        let answer = read(wire)?;
        match answer.kind {
            b'Z' => return template.ok_or_else(|| malformed("a statement without description")),
            b'E' => {
                return Err(Fault::Statement {
                    statement: statement.text.clone(),
                    message: refusal(&answer.body).text,
                });
            }
            b't' => {
                let oids = answer.body.get(2..).unwrap_or_default().chunks_exact(4);
                let oids: Vec<u32> =
                    oids.map(|oid| u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]])).collect();
                if oids.len() != statement.parameters.len() {
                    return Err(malformed("a statement with another number of parameters"));
                }
                template = Some(Template::new(name, &oids));
            }
            b'1' | b'T' | b'n' | b'N' | b'S' => {}
            _ => return Err(malformed("it does not answer the preparing of a statement")),
        }
    }
}

fn send(wire: &mut Wire, kind: u8, parts: &[&[u8]]) -> Result<(), Fault> {
    let mut out = Vec::new();
    message(kind, parts, &mut out);
    wire.send(&out)
}

fn read(wire: &mut Wire) -> Result<Message, Fault> {
    let header = wire.fill(5)?;
    let kind = header[0];
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    if !(4..LONGEST).contains(&length) || !kind.is_ascii_alphanumeric() {
        return Err(malformed("it is not a start-up"));
    }
    let mut body = wire.take(1 + length)?;
    body.drain(..5);
    Ok(Message { kind, body })
}

fn refusal(body: &[u8]) -> Refusal {
    let field = |name: u8| {
        let mut fields = body.split(|&byte| byte == 0);
        let text = fields.find_map(|field| field.strip_prefix(&[name])).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    };
    Refusal { code: field(b'C'), text: field(b'M') }
}

/// Class 57P is a server that starts or stops, 53300 one with all connections taken (Appendix A of PostgreSQL's
/// documentation).
fn refused(refusal: &Refusal) -> Fault {
    if refusal.code.starts_with("57P") || refusal.code == "53300" {
        Fault::NotReady(refusal.text.clone())
    } else {
        Fault::Login(refusal.text.clone())
    }
}

fn malformed(reason: &'static str) -> Fault {
    Fault::Malformed { protocol: NAME, reason }
}

fn unsupported(what: &str) -> Fault {
    Fault::Login(format!(
        "it asks for {what}; tare-load has trust, password, md5 and scram-sha-256"
    ))
}
