//! A connection while it is being opened: blocking, each step with a time limit.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::error::Fault;

/// Read and written with one limit for all that it takes to open a connection.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
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
                    return Ok(Self { stream, unread: Vec::new(), deadline, limit });
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
        self.stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback())
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
        self.stream.set_read_timeout(Some(self.remaining()?))?;
        let mut piece = [0; 4096];
        let waited = self.limit.as_secs_f64();
        match self.stream.read(&mut piece).map_err(|error| Fault::from_io(error, waited))? {
            0 => Err(Fault::Closed),
            count => {
                self.unread.extend_from_slice(&piece[..count]);
                Ok(())
            }
        }
    }

    /// The connection, for requests. What the server said unasked is dropped.
    ///
    /// # Errors
    /// Where the socket cannot be set.
    pub fn into_stream(self) -> Result<TcpStream, Fault> {
        self.stream.set_nonblocking(true)?;
        Ok(self.stream)
    }
}
