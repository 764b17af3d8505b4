//! One request to a RESP server, and its answer as text.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::request::decimal;
use crate::error::{Fault, LoadError};

/// Largest answer: requests are about the server, not for its data.
const MOST_BYTES: usize = 1 << 20;

/// What to ask which server. `limit`: time limit of the connection, and of each answer.
#[derive(Debug)]
pub struct Question<'a> {
    pub address: SocketAddr,
    pub password: Option<&'a str>,
    pub words: &'a [String],
    pub limit: Duration,
}

/// Asks, and returns the answer as text.
///
/// # Errors
/// The server cannot be reached, refuses the password or the request, or does not answer in time.
pub fn ask(question: &Question<'_>) -> Result<String, LoadError> {
    exchange(question)
        .map_err(|source| LoadError::Connect { address: question.address.to_string(), source })
}

fn exchange(question: &Question<'_>) -> Result<String, Fault> {
    let timed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::ConnectionRefused => Fault::Refused,
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
            Fault::TimedOut(question.limit.as_secs_f64())
        }
        std::io::ErrorKind::UnexpectedEof => Fault::Closed,
        _ => Fault::Io(error),
    };
    let socket = TcpStream::connect_timeout(&question.address, question.limit).map_err(timed)?;
    socket.set_read_timeout(Some(question.limit)).map_err(timed)?;
    socket.set_write_timeout(Some(question.limit)).map_err(timed)?;
    let mut answers = BufReader::new(&socket);
    if let Some(password) = question.password {
        (&socket).write_all(&request(&["AUTH", password])).map_err(timed)?;
        if let Err(refused) = answer(&mut answers).map_err(timed)? {
            return Err(Fault::Login(refused));
        }
    }
    let words: Vec<&str> = question.words.iter().map(String::as_str).collect();
    (&socket).write_all(&request(&words)).map_err(timed)?;
    let said = answer(&mut answers).map_err(timed)?;
    said.map_err(|message| Fault::Statement { statement: words.join(" "), message })
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    out
}

/// Reads one reply that is a line or a bulk string; the inner error is from the server.
fn answer(from: &mut impl BufRead) -> std::io::Result<Result<String, String>> {
    let strange =
        |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
    let mut line = String::new();
    if from.by_ref().take(MOST_BYTES as u64).read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let line = line.trim_end();
    match line.split_at_checked(1) {
        Some(("+" | ":", text)) => Ok(Ok(text.to_owned())),
        Some(("-", text)) => Ok(Err(text.to_owned())),
        Some(("$", length)) => {
            let length = decimal(length.as_bytes())
                .filter(|&length| length <= MOST_BYTES)
                .ok_or_else(|| strange("the answer has no length that is taken"))?;
            let mut bytes = vec![0; length + 2];
            from.read_exact(&mut bytes)?;
            bytes.truncate(length);
            String::from_utf8(bytes).map(Ok).map_err(|_| strange("the answer is no text"))
        }
        _ => Err(strange("the answer is not RESP, or a list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo::{Listen, serve};

    #[test]
    fn a_server_is_asked_answers_and_stops() {
        let address = free_address();
        let listen = Listen { address, password: Some("secret".into()) };
        let server = std::thread::spawn(move || serve(&listen));
        let question = |password, words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            ask(&Question { address, password, words: &words, limit: Duration::from_secs(5) })
        };
        while question(Some("secret"), &["PING"]).is_err() {
            std::thread::yield_now();
        }
        assert_eq!(
            question(Some("secret"), &["GET", "100000"]).expect("it answers").len(),
            100_000
        );
        assert!(question(Some("secret"), &["INFO"]).expect("it answers").contains("tare_version:"));
        assert!(
            question(Some("wrong"), &["PING"])
                .is_err_and(|error| error.to_string().contains("log-in"))
        );
        assert!(question(None, &["PING"]).is_err_and(|error| error.to_string().contains("NOAUTH")));
        assert!(question(Some("secret"), &["KEYS"]).is_err());
        assert_eq!(question(Some("secret"), &["SHUTDOWN"]).expect("it answers"), "OK");
        server.join().expect("no panic").expect("it ended well");
    }

    fn free_address() -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        listener.local_addr().expect("it has one")
    }
}
