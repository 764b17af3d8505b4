//! Greeting and log-in: one message, one answer.

use super::command::Template;
use super::document::Document;
use super::scram::Scram;
use super::{HEADER_BYTES, NAME};
use crate::error::Fault;
use crate::protocol::{Access, Values, Wire};

/// Answers before the first request are far smaller.
const MOST_BYTES: usize = 1 << 20;
const DEFAULT_USER: &str = "admin";
/// The database that holds the users.
const OF_USERS: &str = "admin";

/// Greets, and logs in where there is a password.
pub(super) fn log_in(wire: &mut Wire, access: &Access, database: &str) -> Result<(), Fault> {
    call(wire, r#"{"hello": 1}"#, OF_USERS, |_| {})?;
    if let Some(password) = &access.password {
        return authenticate(wire, access.user.as_deref().unwrap_or(DEFAULT_USER), password);
    }
    // A server that wants a password greets all the same.
    let needs_it = r#"{"listCollections": 1, "nameOnly": true, "filter": {"name": ""}}"#;
    call(wire, needs_it, database, |_| {}).map(drop)
}

fn authenticate(wire: &mut Wire, user: &str, password: &str) -> Result<(), Fault> {
    let start = r#"{"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": ?b, "options": {"skipEmptyExchange": true}}"#;
    let go_on = r#"{"saslContinue": 1, "conversationId": ?i, "payload": ?b}"#;
    let (scram, first) = Scram::begin(user, password, nonce());
    let answer = call(wire, start, OF_USERS, |values| payload(&first, values))?;
    let conversation =
        answer.number("conversationId").ok_or_else(|| malformed("a log-in without a number"))?;
    let mut say = |message: &str| {
        call(wire, go_on, OF_USERS, |values| {
            values.integer(conversation);
            payload(message, values);
        })
    };
    let proof = scram.prove(payload_of(&answer)?).map_err(malformed)?;
    let answer = say(&proof.message)?;
    if !proof.is_answered_by(payload_of(&answer)?) {
        return Err(Fault::Login("it does not know the password itself".to_owned()));
    }
    match answer.flag("done") {
        Some(true) => Ok(()),
        _ => say("").map(drop),
    }
}

fn payload(message: &str, values: &mut Values) {
    values.text(|out| out.extend_from_slice(message.as_bytes()));
}

fn payload_of(answer: &Document) -> Result<&str, Fault> {
    let payload = answer.binary("payload").and_then(|bytes| std::str::from_utf8(bytes).ok());
    payload.ok_or_else(|| malformed("an answer without a payload"))
}

/// 24 characters that no other log-in has.
fn nonce() -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let random: [u8; 24] = rand::random();
    random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 64)])).collect()
}

fn call(
    wire: &mut Wire,
    command: &str,
    database: &str,
    fill: impl FnOnce(&mut Values),
) -> Result<Document, Fault> {
    let mut values = Values::default();
    fill(&mut values);
    let mut out = Vec::new();
    Template::new(command, database).map_err(malformed)?.encode(&values, 0, &mut out);
    wire.send(&out)?;
    let answer = read(wire)?;
    if answer.number("ok") == Some(1) {
        return Ok(answer);
    }
    let why = answer.text("errmsg").unwrap_or_else(|| "it does not say why".to_owned());
    match answer.number("code") {
        // Unauthorized: nobody has logged in.
        Some(13) => Err(Fault::Login(format!("{why}; give a password with --password-file"))),
        // Shutdown, and primaries to be: InterruptedAtShutdown, InterruptedDueToReplStateChange, ShutdownInProgress,
        // PrimarySteppedDown, NotWritablePrimary, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary.
        Some(11_600 | 11_602 | 91 | 189 | 10_107 | 13_435 | 13_436) => Err(Fault::NotReady(why)),
        _ => Err(Fault::Login(why)),
    }
}

fn read(wire: &mut Wire) -> Result<Document, Fault> {
    let header = wire.fill(HEADER_BYTES)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    if header[12..16] != super::OP_MSG.to_le_bytes()
        || !(HEADER_BYTES..MOST_BYTES).contains(&length)
    {
        return Err(malformed("it does not answer a greeting by OP_MSG"));
    }
    let message = wire.take(length)?;
    // Flags and the kind of the section come first.
    let body = message.get(HEADER_BYTES + 5..).unwrap_or_default();
    Ok(Document::new(body.to_vec()))
}

fn malformed(reason: &'static str) -> Fault {
    Fault::Malformed { protocol: NAME, reason }
}
