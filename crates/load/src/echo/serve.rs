//! The server: one thread with one epoll, which replies to each whole request.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::request::{Next, decimal, next};
use crate::error::{Fault, LoadError};

/// Largest reply of one `GET`.
const MOST_REPLY: usize = 1 << 20;
const INPUT_BYTES: usize = 64 * 1024;
const EVENTS: usize = 256;
const LISTENER: u64 = u64::MAX;

/// Address to listen at, and the password that a client must send first, if any.
#[derive(Debug)]
pub struct Listen {
    pub address: SocketAddr,
    pub password: Option<String>,
}

/// Serves until a client sends `SHUTDOWN`.
///
/// # Errors
/// The address cannot be used, or the kernel refuses to wait for connections.
pub fn serve(listen: &Listen) -> Result<(), LoadError> {
    let failed = |source| LoadError::Connect {
        address: listen.address.to_string(),
        source: Fault::Io(source),
    };
    let listener = TcpListener::bind(listen.address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Server::new(listener, listen.password.as_deref()).and_then(Server::run).map_err(failed)
}

struct Peer {
    socket: TcpStream,
    /// The start of a request that is not whole yet.
    rest: Vec<u8>,
    /// Replies that the socket did not accept; while there are any, nothing more is read.
    unsent: Vec<u8>,
    admitted: bool,
}

struct Server<'a> {
    listener: TcpListener,
    password: Option<&'a str>,
    epoll: OwnedFd,
    peers: Vec<Option<Peer>>,
    input: Box<[u8]>,
    filler: Box<[u8]>,
}

/// What to do with a connection, or with the server.
#[derive(Debug, PartialEq, Eq)]
enum Then {
    Go,
    Close,
    Stop,
}

impl<'a> Server<'a> {
    fn new(listener: TcpListener, password: Option<&'a str>) -> std::io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        Ok(Self {
            listener,
            password,
            epoll,
            peers: Vec::new(),
            input: vec![0; INPUT_BYTES].into(),
            filler: vec![b'x'; MOST_REPLY].into(),
        })
    }

    fn run(mut self) -> std::io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Err(Errno::INTR) => continue,
                waited => waited?,
            };
            for event in &events {
                let token = event.data.u64();
                if token == LISTENER {
                    self.accept()?;
                } else if self.attend(token as usize)? == Then::Stop {
                    return Ok(());
                }
            }
        }
    }

    fn accept(&mut self) -> std::io::Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            let index = self.peers.iter().position(Option::is_none).unwrap_or_else(|| {
                self.peers.push(None);
                self.peers.len() - 1
            });
            let data = EventData::new_u64(index as u64);
            epoll::add(&self.epoll, &socket, data, EventFlags::IN)?;
            let admitted = self.password.is_none();
            self.peers[index] =
                Some(Peer { socket, rest: Vec::new(), unsent: Vec::new(), admitted });
        }
    }

    /// Handles an event of a connection, with one read and one write.
    fn attend(&mut self, index: usize) -> std::io::Result<Then> {
        let Some(peer) = self.peers.get_mut(index).and_then(Option::as_mut) else {
            return Ok(Then::Go);
        };
        let blocked = !peer.unsent.is_empty();
        let then = if blocked {
            flush(peer)
        } else {
            exchange(peer, &mut self.input, &self.filler, self.password)
        };
        if then != Then::Go {
            self.peers[index] = None; // closing takes it from epoll, too
            return Ok(then);
        }
        if blocked == peer.unsent.is_empty() {
            let direction = if blocked { EventFlags::IN } else { EventFlags::OUT };
            epoll::modify(&self.epoll, &peer.socket, EventData::new_u64(index as u64), direction)?;
        }
        Ok(Then::Go)
    }
}

fn exchange(peer: &mut Peer, input: &mut [u8], filler: &[u8], password: Option<&str>) -> Then {
    let count = match peer.socket.read(input) {
        Ok(0) => return Then::Close,
        Ok(count) => count,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            return Then::Go;
        }
        Err(_) => return Then::Close,
    };
    let joined;
    let mut come = if peer.rest.is_empty() {
        &input[..count]
    } else {
        peer.rest.extend_from_slice(&input[..count]);
        joined = std::mem::take(&mut peer.rest);
        &joined[..]
    };
    let mut then = Then::Go;
    while then == Then::Go && !come.is_empty() {
        match next(come) {
            Ok(Next::Partial) => {
                peer.rest = come.to_vec();
                break;
            }
            Ok(Next::Whole { words, consumed }) => {
                then = answer(&words, &mut peer.admitted, password, filler, &mut peer.unsent);
                come = &come[consumed..];
            }
            Err(reason) => {
                refuse("ERR", reason, &mut peer.unsent);
                then = Then::Close;
            }
        }
    }
    let sent = flush(peer);
    if then == Then::Go { sent } else { then }
}

fn flush(peer: &mut Peer) -> Then {
    while !peer.unsent.is_empty() {
        match peer.socket.write(&peer.unsent) {
            Ok(0) => return Then::Close,
            Ok(count) if count == peer.unsent.len() => peer.unsent.clear(),
            Ok(count) => drop(peer.unsent.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Then::Close,
        }
    }
    Then::Go
}

/// Appends the reply to one request to `out`.
fn answer(
    words: &[&[u8]],
    admitted: &mut bool,
    password: Option<&str>,
    filler: &[u8],
    out: &mut Vec<u8>,
) -> Then {
    let verb = words[0].to_ascii_uppercase();
    match (&verb[..], &words[1..]) {
        (b"AUTH", [.., given]) => {
            *admitted = password.is_none_or(|asked| asked.as_bytes() == *given);
            if *admitted {
                out.extend_from_slice(b"+OK\r\n");
            } else {
                refuse("WRONGPASS", "the password is wrong", out);
            }
        }
        _ if !*admitted => refuse("NOAUTH", "send the password first", out),
        (b"PING", []) => out.extend_from_slice(b"+PONG\r\n"),
        (b"GET", [bytes]) => match decimal(bytes).filter(|&bytes| bytes <= MOST_REPLY) {
            Some(bytes) => bulk(&filler[..bytes], out),
            None => refuse("ERR", "GET takes the size of its reply, 0 to 1048576 bytes", out),
        },
        (b"SET", [_, _]) | (b"SELECT", [_]) => out.extend_from_slice(b"+OK\r\n"),
        (b"INFO", _) => {
            let facts = format!("tare_version:{}\r\nthreads:1\r\n", env!("CARGO_PKG_VERSION"));
            bulk(facts.as_bytes(), out);
        }
        (b"SHUTDOWN", _) => {
            out.extend_from_slice(b"+OK\r\n");
            return Then::Stop;
        }
        _ => refuse("ERR", "known are AUTH, PING, GET, SET, SELECT, INFO and SHUTDOWN", out),
    }
    Then::Go
}

fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn refuse(code: &str, reason: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("-{code} {reason}\r\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(words: &[&[u8]], admitted: bool, password: Option<&str>) -> (Vec<u8>, bool, Then) {
        let (mut out, mut admitted) = (Vec::new(), admitted);
        let then = answer(words, &mut admitted, password, &[b'x'; 64], &mut out);
        (out, admitted, then)
    }

    #[test]
    fn nothing_is_answered_before_the_password() {
        assert!(answered(&[b"GET", b"3"], false, Some("s")).0.starts_with(b"-NOAUTH"));
        assert!(answered(&[b"SHUTDOWN"], false, Some("s")).0.starts_with(b"-NOAUTH"));
        assert!(answered(&[b"AUTH", b"t"], false, Some("s")).0.starts_with(b"-WRONGPASS"));
        assert!(answered(&[b"auth", b"s"], false, Some("s")).1);
    }

    #[test]
    fn a_wrong_password_takes_what_a_right_one_gave() {
        assert!(!answered(&[b"AUTH", b"t"], true, Some("s")).1);
    }

    #[test]
    fn a_reply_has_the_bytes_that_are_asked_for() {
        assert_eq!(answered(&[b"GET", b"3"], true, None).0, b"$3\r\nxxx\r\n");
        assert_eq!(answered(&[b"GET", b"0"], true, None).0, b"$0\r\n\r\n");
        for bad in [&b"x"[..], b"-1", b"1048577", b""] {
            assert!(answered(&[b"GET", bad], true, None).0.starts_with(b"-ERR"));
        }
    }

    #[test]
    fn it_stops_when_asked_to() {
        assert_eq!(answered(&[b"SHUTDOWN", b"NOSAVE"], true, None).2, Then::Stop);
    }
}
