//! A connection that is being opened: blocking, with a time limit for each step.

use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, socket_with,
};

use crate::error::Fault;
use crate::tls::{Session, Tls};

/// Beginning of an address that is a path of this machine.
pub const UNIX: &str = "unix:";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Network,
    Loopback,
    UnixSocket,
}

/// Reads and writes with one time limit for the whole opening.
pub struct Wire {
    socket: OwnedFd,
    /// What separates it from the network.
    place: Place,
    session: Option<Session>,
    handshake: Option<Duration>,
    started: Instant,
    /// How long connecting and logging in took, if known.
    log_in: Option<Duration>,
    /// Bytes that were read after the last reply.
    unread: Vec<u8>,
    deadline: Instant,
    limit: Duration,
}

impl Wire {
    /// `address` is `HOST:PORT`, or [`UNIX`] and a path.
    ///
    /// # Errors
    /// There is no such host or socket, or it does not answer in time.
    pub fn connect(address: &str, limit: Duration) -> Result<Self, Fault> {
        let started = Instant::now();
        let (socket, place) = match address.strip_prefix(UNIX) {
            Some(path) => (unix_socket(path, limit)?, Place::UnixSocket),
            None => tcp(address, limit)?,
        };
        Ok(Self {
            socket,
            place,
            session: None,
            handshake: None,
            started,
            log_in: None,
            unread: Vec::new(),
            deadline: started + limit,
            limit,
        })
    }

    /// Notes that the server has accepted the log-in; preparing of statements follows.
    pub fn note_log_in(&mut self) {
        self.log_in = Some(self.started.elapsed());
    }

    /// Whether nobody on the network can read what is sent.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.session.is_some() || self.place != Place::Network
    }

    /// Whether servers, too, take it for private.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.session.is_some() || self.place == Place::UnixSocket
    }

    /// The server's certificate in DER, if TLS is used.
    #[must_use]
    pub fn certificate(&self) -> Option<&[u8]> {
        self.session.as_ref()?.certificate()
    }

    /// Performs the TLS handshake; everything after it is sent over TLS.
    ///
    /// # Errors
    /// The handshake fails, the server's certificate is refused, or the time limit has passed.
    pub fn secure(&mut self, tls: &Tls) -> Result<(), Fault> {
        if !self.unread.is_empty() {
            return Err(Fault::Tls("the server says something before the handshake".to_owned()));
        }
        let started = Instant::now();
        let mut session = tls.session()?;
        loop {
            let mut out = Vec::new();
            session.seal(&[], &mut out)?;
            self.write(&out)?;
            if !session.is_handshaking() {
                break;
            }
            let mut piece = [0; 4096];
            let count = self.read(&mut piece)?;
            let mut rest = &piece[..count];
            while !rest.is_empty() {
                session.take(&mut rest)?;
            }
        }
        self.session = Some(session);
        self.handshake = Some(started.elapsed());
        Ok(())
    }

    /// Sets a new time limit, for something that takes longer.
    pub fn extend(&mut self, limit: Duration) {
        self.deadline = Instant::now() + limit;
        self.limit = limit;
    }

    fn remaining(&self) -> Result<Duration, Fault> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() { Err(self.timed_out()) } else { Ok(remaining) }
    }

    fn failed(&self, error: Errno) -> Fault {
        Fault::from_io(error.into(), self.limit.as_secs_f64())
    }

    fn timed_out(&self) -> Fault {
        Fault::TimedOut(self.limit.as_secs_f64())
    }

    /// # Errors
    /// Where the connection ends or the time is over.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        match &mut self.session {
            None => self.write(bytes),
            Some(session) => {
                let mut out = Vec::new();
                session.seal(bytes, &mut out)?;
                self.write(&out)
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut left = bytes;
        while !left.is_empty() {
            set_timeout(&self.socket, Timeout::Send, self.remaining()?)?;
            match rustix::net::send(&self.socket, left, SendFlags::NOSIGNAL) {
                Ok(count) => left = &left[count..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }

    /// Bytes that were read and not consumed, after waiting for at least `count` of them.
    ///
    /// # Errors
    /// Where the connection ends or the time is over.
    pub fn fill(&mut self, count: usize) -> Result<&[u8], Fault> {
        while self.unread.len() < count {
            self.read_more()?;
        }
        Ok(&self.unread)
    }

    /// Consumes the next `count` bytes.
    ///
    /// # Errors
    /// Where the connection ends or the time is over.
    pub fn take(&mut self, count: usize) -> Result<Vec<u8>, Fault> {
        self.fill(count)?;
        let rest = self.unread.split_off(count);
        Ok(std::mem::replace(&mut self.unread, rest))
    }

    /// Waits for more bytes.
    ///
    /// # Errors
    /// Where the connection ends or the time is over.
    pub fn read_more(&mut self) -> Result<(), Fault> {
        let mut piece = [0; 4096];
        let count = self.read(&mut piece)?;
        let Some(session) = &mut self.session else {
            self.unread.extend_from_slice(&piece[..count]);
            return Ok(());
        };
        let mut rest = &piece[..count];
        let mut plain = [0; 4096];
        while !rest.is_empty() {
            session.take(&mut rest)?;
            loop {
                let count = session.open(&mut plain);
                if count == 0 {
                    break;
                }
                self.unread.extend_from_slice(&plain[..count]);
            }
        }
        Ok(())
    }

    fn read(&mut self, piece: &mut [u8]) -> Result<usize, Fault> {
        loop {
            set_timeout(&self.socket, Timeout::Recv, self.remaining()?)?;
            match rustix::net::recv(&self.socket, &mut *piece, RecvFlags::empty()) {
                Ok((0, _)) => return Err(Fault::Closed),
                Ok((count, _)) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// The connection for requests. Unrequested messages of the server are dropped.
    ///
    /// # Errors
    /// A socket option cannot be set.
    pub fn into_opened(self) -> Result<Opened, Fault> {
        rustix::io::ioctl_fionbio(&self.socket, true).map_err(std::io::Error::from)?;
        Ok(Opened {
            log_in: self.log_in.unwrap_or_else(|| self.started.elapsed()),
            socket: self.socket,
            session: self.session,
            handshake: self.handshake,
        })
    }
}

/// An opened connection.
pub struct Opened {
    pub socket: OwnedFd,
    /// `None`: unencrypted.
    pub session: Option<Session>,
    /// How long the TLS handshake took.
    pub handshake: Option<Duration>,
    /// How long connecting, TLS and log-in took together, without preparing of statements.
    pub log_in: Duration,
}

fn tcp(address: &str, limit: Duration) -> Result<(OwnedFd, Place), Fault> {
    let mut last = None;
    for resolved in address.to_socket_addrs().map_err(Fault::Resolve)? {
        match TcpStream::connect_timeout(&resolved, limit) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                let loopback = resolved.ip().is_loopback();
                return Ok((
                    stream.into(),
                    if loopback { Place::Loopback } else { Place::Network },
                ));
            }
            Err(error) => last = Some(error),
        }
    }
    let error = last.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into());
    Err(Fault::from_io(error, limit.as_secs_f64()))
}

fn unix_socket(path: &str, limit: Duration) -> Result<OwnedFd, Fault> {
    let connected = SocketAddrUnix::new(path).and_then(|address| {
        let stream = SocketType::STREAM;
        let socket = socket_with(AddressFamily::UNIX, stream, SocketFlags::CLOEXEC, None)?;
        // It holds for connect(2), too, which waits while the server's queue is full.
        set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
        rustix::net::connect(&socket, &address)?;
        Ok(socket)
    });
    connected.map_err(|error| match error {
        Errno::NOENT => Fault::Refused, // as of a server that has not made it yet
        error => Fault::from_io(error.into(), limit.as_secs_f64()),
    })
}

fn set_timeout(socket: &OwnedFd, which: Timeout, limit: Duration) -> Result<(), Fault> {
    set_socket_timeout(socket, which, Some(limit)).map_err(|error| Fault::Io(error.into()))
}
