//! Answering at a measured address: by UDP for round trips and clocks, by TCP for throughput.
//!
//! It sleeps until something arrives, and ends when it is stopped or the daemon clears up.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::answer::Fault;
use crate::log;

/// Bytes of a question: `number u32, sent u64`.
pub(crate) const ASKED: usize = 12;
/// Bytes of an answer: `number u32, received u64, replied u64`.
pub(crate) const ANSWERED: usize = 20;
/// First byte of a TCP connection, which says who sends.
pub(crate) const UP: u8 = b'u';
pub(crate) const DOWN: u8 = b'd';
/// Bytes that are sent or read at once.
pub(crate) const BLOCK: usize = 1 << 18;
/// Time without progress after which the other end counts as lost.
const STALLED: Duration = Duration::from_secs(10);
const STACK: usize = 64 << 10;

/// All open echoes, by port.
#[derive(Default)]
pub(crate) struct Echoes(Mutex<HashMap<u16, OwnedFd>>);

impl Echoes {
    /// Starts to answer at `address`; the port is the same for both protocols.
    pub(crate) fn open(&self, address: IpAddr) -> Result<u16, Fault> {
        let stream = TcpListener::bind((address, 0))?;
        let port = stream.local_addr()?.port();
        let datagram = UdpSocket::bind((address, port))?;
        datagram.set_nonblocking(true)?;
        stream.set_nonblocking(true)?;
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let reply = end.try_clone()?;
        thread::Builder::new().stack_size(STACK).spawn(move || {
            if let Err(error) = answer(&stream, &datagram, &reply) {
                log(&format!("nothing answers at port {port} any more: {error}"));
            }
        })?;
        self.all().insert(port, end);
        Ok(port)
    }

    /// Stops answering at a port, if it is open.
    pub(crate) fn close(&self, port: u16) {
        if let Some(end) = self.all().remove(&port) {
            tell(port, &end);
        }
    }

    pub(crate) fn close_all(&self) {
        for (port, end) in self.all().drain() {
            tell(port, &end);
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u16, OwnedFd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(port: u16, end: &OwnedFd) {
    if let Err(error) = rustix::io::write(end, &1_u64.to_ne_bytes()) {
        log(&format!("what answers at port {port} could not be ended: {error}"));
    }
}

fn answer(stream: &TcpListener, datagram: &UdpSocket, end: &OwnedFd) -> rustix::io::Result<()> {
    loop {
        let mut watched = [
            PollFd::new(end, PollFlags::IN),
            PollFd::new(datagram, PollFlags::IN),
            PollFd::new(stream, PollFlags::IN),
        ];
        match poll(&mut watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let [ended, asked, connected] = watched.map(|each| !each.revents().is_empty());
        if ended {
            return Ok(());
        }
        if asked {
            reply(datagram);
        }
        if connected && let Ok((connection, _)) = stream.accept() {
            let carried = move || _ = carry(connection); // its end says that the other side has enough
            if let Err(error) = thread::Builder::new().stack_size(STACK).spawn(carried) {
                log(&format!("a connection was not served: {error}"));
            }
        }
    }
}

/// Replies to datagrams. If one cannot be sent, the other side counts it as lost.
fn reply(datagram: &UdpSocket) {
    let mut asked = [0; ASKED + 1];
    while let Ok((length, peer)) = datagram.recv_from(&mut asked) {
        let received = monotonic_ns();
        if length != ASKED {
            continue;
        }
        let mut reply = [0; ANSWERED];
        reply[..4].copy_from_slice(&asked[..4]);
        reply[4..12].copy_from_slice(&received.to_be_bytes());
        reply[12..].copy_from_slice(&monotonic_ns().to_be_bytes());
        let _lost = datagram.send_to(&reply, peer);
    }
}

/// Sends until the other end stops reading, or counts what arrives and reports the number of bytes.
fn carry(mut connection: TcpStream) -> std::io::Result<()> {
    connection.set_nonblocking(false)?;
    connection.set_read_timeout(Some(STALLED))?;
    connection.set_write_timeout(Some(STALLED))?;
    let mut way = [0];
    connection.read_exact(&mut way)?;
    let mut block = vec![0; BLOCK];
    if way[0] == DOWN {
        loop {
            connection.write_all(&block)?;
        }
    }
    let mut count: u64 = 0;
    loop {
        match connection.read(&mut block)? {
            0 => return connection.write_all(count.to_string().as_bytes()),
            length => count += length as u64,
        }
    }
}

pub(crate) fn monotonic_ns() -> i64 {
    nanoseconds(ClockId::Monotonic)
}

/// Wall clock minus monotonic clock, by the closest of a few readings.
pub(crate) fn ahead_ns() -> i64 {
    let readings = (0..5).map(|_| {
        let (before, wall, after) =
            (monotonic_ns(), nanoseconds(ClockId::Realtime), monotonic_ns());
        (after - before, wall - i64::midpoint(before, after))
    });
    readings.min().map_or(0, |(_, ahead)| ahead)
}

pub(crate) fn nanoseconds(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn what_is_closed_answers_no_more() {
        let echoes = Echoes::default();
        let port = echoes.open(HERE).ok().unwrap();
        assert!(TcpStream::connect((HERE, port)).is_ok());
        echoes.close(port);
        echoes.close(port);
        let gone = (0..200).any(|_| {
            thread::sleep(Duration::from_millis(10));
            TcpStream::connect((HERE, port)).is_err()
        });
        assert!(gone);
    }

    #[test]
    fn an_address_that_is_not_this_hosts_is_refused() {
        let echoes = Echoes::default();
        let elsewhere = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)); // RFC 5737
        assert!(matches!(echoes.open(elsewhere), Err(Fault::System(_))));
    }

    #[test]
    fn a_datagram_of_another_size_is_not_answered() {
        let echoes = Echoes::default();
        let port = echoes.open(HERE).ok().unwrap();
        let socket = UdpSocket::bind((HERE, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        socket.send_to(b"hello", (HERE, port)).unwrap();
        assert!(socket.recv(&mut [0; 64]).is_err());
        socket.send_to(&[0; ASKED], (HERE, port)).unwrap();
        assert_eq!(socket.recv(&mut [0; 64]).unwrap(), ANSWERED);
        echoes.close_all();
    }
}
