//! `tare-probe serve`, and the server that `record --prometheus` starts beside a recording.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use tare_probe::session;
use tare_probe::sink::board::SharedBoard;

use crate::failure::Failure;
use crate::openmetrics;
use crate::options::ServeOptions;
use crate::signals::stop_on_signals;

/// Time limit for a scraper's request; a slower connection is closed.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST_REQUEST: usize = 8192;

pub(crate) fn run(options: &ServeOptions) -> Result<(), Failure> {
    let board = SharedBoard::default();
    start(options.prometheus, board.clone())?;
    let config = options.sampling.config(options.duration)?;
    session::record(&config, vec![Box::new(board)], &stop_on_signals()?)?;
    Ok(())
}

/// Serves the board from a thread of its own until the program ends.
pub(crate) fn start(address: SocketAddr, board: SharedBoard) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).map_err(|error| {
        Failure::Usage(format!("{address}: {error}; choose another --prometheus"))
    })?;
    eprintln!("tare-probe: serving http://{}/metrics", listener.local_addr()?);
    thread::Builder::new().name("server".to_owned()).spawn(move || {
        for connection in listener.incoming() {
            match connection {
                // A scraper that went away has nobody left to answer.
                Ok(connection) => drop(answer(connection, &board)),
                // Where there is no room for one, it waits, and this thread would run in a circle.
                Err(_) => thread::sleep(PATIENCE),
            }
        }
    })?;
    Ok(())
}

fn answer(mut connection: TcpStream, board: &SharedBoard) -> io::Result<()> {
    connection.set_write_timeout(Some(PATIENCE))?;
    let request = read_request(&mut connection, Instant::now() + PATIENCE)?;
    let (status, kind, body) = match path_of(&request) {
        Some("/metrics") => {
            let board = board.look().clone();
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ("200 OK", kind, openmetrics::text(&board))
        }
        Some(_) => ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned()),
        None => ("405 Method Not Allowed", "text/plain", "GET /metrics\n".to_owned()),
    };
    write!(
        connection,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    connection.write_all(body.as_bytes())
}

/// Reads up to the empty line that ends a request's head. The head must arrive completely within the time limit,
/// as other scrapers wait meanwhile.
fn read_request(connection: &mut TcpStream, until: Instant) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut chunk = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        connection.set_read_timeout(Some(left))?;
        let bytes = connection.read(&mut chunk)?;
        if bytes == 0 || request.len() > LONGEST_REQUEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        request.extend_from_slice(&chunk[..bytes]);
    }
    Ok(request)
}

/// Path of a GET, without its query.
fn path_of(request: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(request).ok()?.lines().next()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    Some(target.split('?').next().unwrap_or(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_that_sends_a_letter_at_a_time_is_let_go() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut slow = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (mut connection, _) = listener.accept().expect("accepted");
        let drip = thread::spawn(move || {
            while slow.write_all(b"G").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        // Without a limit it would read for ever.
        let read = read_request(&mut connection, Instant::now() + Duration::from_millis(200));
        drop(connection);
        drip.join().expect("joined");
        assert!(read.is_err());
    }

    #[test]
    fn only_a_get_has_a_path() {
        assert_eq!(path_of(b"GET /metrics?x=1 HTTP/1.1\r\n\r\n"), Some("/metrics"));
        assert_eq!(path_of(b"POST /metrics HTTP/1.1\r\n\r\n"), None);
        assert_eq!(path_of(b"\xff\xfe"), None);
    }
}
