//! A connection while it is being opened: blocking, each step with a time limit.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::error::Fault;
use crate::tls::{Session, Tls};

/// Read and written with one limit for all that it takes to open a connection.
pub struct Wire {
    stream: TcpStream,
    session: Option<Session>,
    handshake: Option<Duration>,
    /// What was read beyond the last reply.
    unread: Vec<u8>,
    deadline: Instant,
    limit: Duration,
}

impl Wire {
    /// # Errors
    /// Where there is no such host, or nobody answers in time.
    pub fn connect(address: &str, limit: Duration) -> Result<Self, Fault> {
        let deadline = Instant::now() + limit;
        let mut last = None;
        for resolved in address.to_socket_addrs().map_err(Fault::Resolve)? {
            match TcpStream::connect_timeout(&resolved, limit) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Self {
                        stream,
                        session: None,
                        handshake: None,
                        unread: Vec::new(),
                        deadline,
                        limit,
                    });
                }
                Err(error) => last = Some(error),
            }
        }
        let error = last.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into());
        Err(Fault::from_io(error, limit.as_secs_f64()))
    }

    /// Nobody on the network can read along.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.is_sealed() || self.stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback())
    }

    /// All that is sent from now on goes over TLS.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.session.is_some()
    }

    /// Shakes hands, after which all goes over TLS.
    ///
    /// # Errors
    /// Where the server does not, its certificate is not the right one, or the time is over.
    pub fn secure(&mut self, tls: &Tls) -> Result<(), Fault> {
        if !self.unread.is_empty() {
            return Err(Fault::Tls("the server says something before the handshake".to_owned()));
        }
        let started = Instant::now();
        let mut session = tls.session()?;
        loop {
            let mut out = Vec::new();
            session.seal(&[], &mut out);
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

    /// Starts the time limit anew, for something that takes longer.
    pub fn extend(&mut self, limit: Duration) {
        self.deadline = Instant::now() + limit;
        self.limit = limit;
    }

    fn remaining(&self) -> Result<Duration, Fault> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() { Err(self.timed_out()) } else { Ok(remaining) }
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
                session.seal(bytes, &mut out);
                self.write(&out)
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.stream.set_write_timeout(Some(self.remaining()?))?;
        let waited = self.limit.as_secs_f64();
        self.stream.write_all(bytes).map_err(|error| Fault::from_io(error, waited))
    }

    /// What has been read and not been consumed, after at least `count` bytes of it are there.
    ///
    /// # Errors
    /// Where the connection ends or the time is over.
    pub fn fill(&mut self, count: usize) -> Result<&[u8], Fault> {
        while self.unread.len() < count {
            self.read_more()?;
        }
        Ok(&self.unread)
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// Where the connection ends or the time is over.
    pub fn take(&mut self, count: usize) -> Result<Vec<u8>, Fault> {
        self.fill(count)?;
        let rest = self.unread.split_off(count);
        Ok(std::mem::replace(&mut self.unread, rest))
    }

    /// Waits for more than is there.
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
        self.stream.set_read_timeout(Some(self.remaining()?))?;
        let waited = self.limit.as_secs_f64();
        match self.stream.read(piece).map_err(|error| Fault::from_io(error, waited))? {
            0 => Err(Fault::Closed),
            count => Ok(count),
        }
    }

    /// The connection, for requests. What the server said unasked is dropped.
    ///
    /// # Errors
    /// Where the socket cannot be set.
    pub fn into_opened(self) -> Result<Opened, Fault> {
        self.stream.set_nonblocking(true)?;
        Ok(Opened { socket: self.stream, session: self.session, handshake: self.handshake })
    }
}

/// What is left of the opening.
pub struct Opened {
    pub socket: TcpStream,
    /// `None`: in clear text.
    pub session: Option<Session>,
    /// How long TLS took to shake hands.
    pub handshake: Option<Duration>,
}
