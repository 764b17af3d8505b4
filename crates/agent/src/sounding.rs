//! Measurements with another host's echo: round trips with the clocks of both ends, and throughput.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::answer::Fault;
use crate::echo::{ANSWERED, ASKED, BLOCK, DOWN, UP, ahead_ns, monotonic_ns};

/// Most exchanges: enough to find a quick one; on a slow network, the time limit allows fewer.
const MOST: u32 = 100;
const FEWEST: u32 = 20;
const ENOUGH: Duration = Duration::from_millis(50);
/// Time after which an answer counts as lost.
const LOST: Duration = Duration::from_secs(1);
/// If so many are lost at the beginning, nothing answers.
const SILENT: u32 = 3;
const STALLED: Duration = Duration::from_secs(10);

/// Times of an exchange in ns: sent and returned by this host's clock, received and replied by the other's.
type Exchange = [i64; 4];

/// Exchanges without pauses between them: waking a CPU that sleeps meanwhile would be part of every round trip.
pub(crate) fn ask(address: IpAddr, port: u16) -> Result<Value, Fault> {
    let own: IpAddr = match address {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((own, 0))?;
    socket.connect((address, port))?;
    socket.set_read_timeout(Some(LOST))?;
    let (mut exchanges, mut lost) = (Vec::new(), 0);
    let began = Instant::now();
    // The first one includes waking both ends, and is not counted.
    for number in 0..=MOST {
        if number > FEWEST && began.elapsed() > ENOUGH {
            break;
        }
        match exchange(&socket, number) {
            Ok(_) if number == 0 => {}
            Ok(done) => exchanges.push(done),
            Err(_) => lost += 1,
        }
        if lost >= SILENT && exchanges.is_empty() {
            break;
        }
    }
    Ok(json!({"exchanges": exchanges, "lost": lost, "own_ahead_ns": ahead_ns()}))
}

fn exchange(socket: &UdpSocket, number: u32) -> io::Result<Exchange> {
    let sent = monotonic_ns();
    let mut asked = [0; ASKED];
    asked[..4].copy_from_slice(&number.to_be_bytes());
    asked[4..].copy_from_slice(&sent.to_be_bytes());
    socket.send(&asked)?;
    loop {
        let mut reply = [0; ANSWERED];
        let length = socket.recv(&mut reply)?;
        let returned = monotonic_ns();
        // One that was counted as lost may still arrive.
        if length == ANSWERED && reply[..4] == number.to_be_bytes() {
            return Ok([sent, moment(&reply[4..12]), moment(&reply[12..]), returned]);
        }
    }
}

fn moment(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().unwrap_or_default())
}

/// Bytes per second over one connection to the other host and from it, counted as they arrive.
pub(crate) fn fill(address: IpAddr, port: u16, lasts: Duration) -> Result<Value, Fault> {
    let place = SocketAddr::from((address, port));
    let mut block = vec![0; BLOCK];
    let mut connection = connected(place, UP)?;
    let began = Instant::now();
    while began.elapsed() < lasts {
        connection.write_all(&block)?;
    }
    connection.shutdown(Shutdown::Write)?;
    let mut count = String::new();
    connection.read_to_string(&mut count)?;
    let arrived: u64 =
        count.parse().map_err(|_| Fault::Other("the other host sent no count".to_owned()))?;
    let there = per_second(arrived, began.elapsed());
    let mut connection = connected(place, DOWN)?;
    let began = Instant::now();
    let mut got: u64 = 0;
    while began.elapsed() < lasts {
        match connection.read(&mut block)? {
            0 => break,
            length => got += length as u64,
        }
    }
    let back = per_second(got, began.elapsed());
    Ok(json!({"to_bytes_per_s": there, "from_bytes_per_s": back}))
}

fn per_second(bytes: u64, lasted: Duration) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / lasted.as_nanos().max(1)) as u64
}

fn connected(place: SocketAddr, way: u8) -> io::Result<TcpStream> {
    let mut connection = TcpStream::connect_timeout(&place, STALLED)?;
    connection.set_read_timeout(Some(STALLED))?;
    connection.set_write_timeout(Some(STALLED))?;
    connection.write_all(&[way])?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo::Echoes;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn moments_of_an_exchange_follow_each_other() {
        let echoes = Echoes::default();
        let port = echoes.open(HERE).ok().unwrap();
        let seen = ask(HERE, port).ok().unwrap();
        echoes.close_all();
        let exchanges = seen["exchanges"].as_array().unwrap();
        assert!(exchanges.len() >= FEWEST as usize && seen["lost"] == 0);
        for each in exchanges {
            let moments: Vec<i64> =
                each.as_array().unwrap().iter().map(|it| it.as_i64().unwrap()).collect();
            assert!(moments.is_sorted(), "{moments:?}");
        }
    }

    #[test]
    fn a_host_that_does_not_answer_is_given_up_soon() {
        let silent = UdpSocket::bind((HERE, 0)).unwrap();
        let seen = ask(HERE, silent.local_addr().unwrap().port()).ok().unwrap();
        assert!(seen["exchanges"].as_array().unwrap().is_empty() && seen["lost"] == 3);
    }

    #[test]
    fn bytes_go_both_ways() {
        let echoes = Echoes::default();
        let port = echoes.open(HERE).ok().unwrap();
        let seen = fill(HERE, port, Duration::from_millis(50)).ok().unwrap();
        echoes.close_all();
        assert!(seen["to_bytes_per_s"].as_u64().unwrap() > 1_000_000);
        assert!(seen["from_bytes_per_s"].as_u64().unwrap() > 1_000_000);
    }
}
