//! Greeting and log-in: one message, one answer.

use md5::{Digest, Md5};

use super::command::Template;
use super::document::Document;
use super::{HEADER_BYTES, NAME};
use crate::error::Fault;
use crate::protocol::scram::{Binding, Hash, Scram, nonce};
use crate::protocol::{Access, Values, Wire};

/// Answers before the first request are far smaller.
const MOST_BYTES: usize = 1 << 20;
const DEFAULT_USER: &str = "admin";
/// The database that holds the users.
const OF_USERS: &str = "admin";

/// Greets, and logs in where there is a password.
pub(super) fn log_in(wire: &mut Wire, access: &Access, database: &str) -> Result<(), Fault> {
    if let Some(password) = &access.password {
        let user = access.user.as_deref().unwrap_or(DEFAULT_USER);
        let greeting = r#"{"hello": 1, "saslSupportedMechs": ?}"#;
        let answer = call(wire, greeting, OF_USERS, |values| {
            values.text(|out| out.extend_from_slice(format!("{OF_USERS}.{user}").as_bytes()));
        })?;
        return authenticate(wire, user, password, mechanism(&answer));
    }
    call(wire, r#"{"hello": 1}"#, OF_USERS, |_| {})?;
    // A server that wants a password greets all the same.
    let needs_it = r#"{"listCollections": 1, "nameOnly": true, "filter": {"name": ""}}"#;
    call(wire, needs_it, database, |_| {}).map(drop)
}

/// SHA-256, unless the server names mechanisms of this user without it.
fn mechanism(greeting: &Document) -> Hash {
    match greeting.texts("saslSupportedMechs") {
        Some(names) if names.contains(&"SCRAM-SHA-1") && !names.contains(&"SCRAM-SHA-256") => {
            Hash::Sha1
        }
        _ => Hash::Sha256,
    }
}

/// As SCRAM-SHA-1 has it here.
fn digested(user: &str, password: &str) -> String {
    let digest = Md5::digest(format!("{user}:mongo:{password}"));
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn authenticate(wire: &mut Wire, user: &str, password: &str, hash: Hash) -> Result<(), Fault> {
    let (name, password) = match hash {
        Hash::Sha1 => ("SCRAM-SHA-1", digested(user, password)),
        Hash::Sha256 => ("SCRAM-SHA-256", password.to_owned()),
    };
    let start = r#"{"saslStart": 1, "mechanism": ?, "payload": {"$binary": ?}, "options": {"skipEmptyExchange": true}}"#;
    let go_on =
        r#"{"saslContinue": 1, "conversationId": {"$numberInt": ?}, "payload": {"$binary": ?}}"#;
    let (scram, first) = Scram::begin(hash, user, &password, nonce(), Binding::Unsupported);
    let answer = call(wire, start, OF_USERS, |values| {
        payload(name, values);
        payload(&first, values);
    })?;
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

fn call(
    wire: &mut Wire,
    command: &str,
    database: &str,
    fill: impl FnOnce(&mut Values),
) -> Result<Document, Fault> {
    let mut values = Values::default();
    fill(&mut values);
    let mut out = Vec::new();
    let template = Template::new(command, database);
    template.map_err(Fault::Unsupported)?.encode(&values, 0, &mut out);
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// The example of `MongoDB`'s specification of authentication (`auth/auth.md`).
    #[test]
    fn the_example_of_the_specification() {
        let nonce = "fyko+d2lbbFgONRv9qkxdawL".to_owned();
        let password = digested("user", "pencil");
        let (scram, first) =
            Scram::begin(Hash::Sha1, "user", &password, nonce, Binding::Unsupported);
        assert_eq!(first, "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL");
        let whole = "r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE";
        let proof = scram.prove(&format!("{whole},s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000"));
        let proof = proof.expect("a challenge");
        assert_eq!(proof.message, format!("c=biws,{whole},p=MC2T8BvbmWRckDw8oWl5IVghwCY="));
        assert!(proof.is_answered_by("v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0="));
    }

    fn asked(stream: &mut TcpStream) -> Document {
        let mut length = [0; 4];
        stream.read_exact(&mut length).expect("a message");
        let mut rest = vec![0; u32::from_le_bytes(length) as usize - 4];
        stream.read_exact(&mut rest).expect("a whole message");
        Document::new(rest.split_off(HEADER_BYTES + 1))
    }

    fn say(stream: &mut TcpStream, text: &str, payload: &str) {
        let mut values = Values::default();
        values.text(|out| out.extend_from_slice(payload.as_bytes()));
        let mut out = Vec::new();
        Template::new(text, "d").expect("a reply").encode(&values, 0, &mut out);
        stream.write_all(&out).expect("sent");
    }

    /// Whether a log-in succeeds at a server that has this user with these mechanisms, and which it used.
    fn logged_in(mechanisms: &str, hash: Hash, password: &'static str) -> (bool, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let greeting = format!(r#"{{"saslSupportedMechs": {mechanisms}, "ok": 1}}"#);
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            asked(&mut stream);
            say(&mut stream, &greeting, "");
            let start = asked(&mut stream);
            let first = payload_of(&start).expect("text").to_owned();
            let nonce = first.strip_prefix("n,,n=me,r=").expect("a name").to_owned();
            let challenge = format!("r={nonce}more,s=QSXCR+Q6sek8bf92,i=10");
            let known = if hash == Hash::Sha1 { digested("me", "secret") } else { "secret".into() };
            let (twin, _) = Scram::begin(hash, "me", &known, nonce, Binding::Unsupported);
            let proof = twin.prove(&challenge).expect("its own");
            let step =
                r#"{"conversationId": 3, "payload": {"$binary": ?}, "done": false, "ok": 1}"#;
            say(&mut stream, step, &challenge);
            let right = payload_of(&asked(&mut stream)).expect("text") == proof.message;
            if right {
                let last = format!("v={}", STANDARD.encode(&proof.signature));
                say(&mut stream, &step.replace("false", "true"), &last);
            } else {
                say(
                    &mut stream,
                    r#"{"ok": 0, "code": 18, "errmsg": "Authentication failed."}"#,
                    "",
                );
            }
            start.text("mechanism").expect("named")
        });
        let mut wire = Wire::connect(&address, Duration::from_secs(10)).expect("connected");
        let user = Some("me".to_owned());
        let access = Access { user, password: Some(password.to_owned()), ..Access::default() };
        let done = log_in(&mut wire, &access, "d").is_ok();
        (done, server.join().expect("served"))
    }

    #[test]
    fn the_server_says_which_mechanism_a_user_has() {
        let (sha_1, sha_256) = ("SCRAM-SHA-1".to_owned(), "SCRAM-SHA-256".to_owned());
        let old = r#"["SCRAM-SHA-1"]"#;
        assert_eq!(logged_in(old, Hash::Sha1, "secret"), (true, sha_1.clone()));
        assert_eq!(logged_in(old, Hash::Sha1, "other"), (false, sha_1));
        let both = r#"["SCRAM-SHA-1", "SCRAM-SHA-256"]"#;
        assert_eq!(logged_in(both, Hash::Sha256, "secret"), (true, sha_256.clone()));
        assert_eq!(logged_in("null", Hash::Sha256, "secret"), (true, sha_256));
    }
}
