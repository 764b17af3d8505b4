//! A server that says whatever it likes to each client, and keeps what the clients say.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Its address, and all that was ever sent to it.
pub(crate) struct Attacker {
    pub(crate) address: String,
    pub(crate) heard: Arc<Mutex<Vec<u8>>>,
}

/// Serves each connection by `attack`, which is given what the client sent first.
pub(crate) fn attacker(
    host: Ipv4Addr,
    attack: impl Fn(&mut Line) + Send + Sync + 'static,
) -> Attacker {
    let listener = TcpListener::bind((host, 0)).expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let (heard, attack) = (Arc::new(Mutex::new(Vec::new())), Arc::new(attack));
    let all = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (heard, attack) = (Arc::clone(&all), Arc::clone(&attack));
            std::thread::spawn(move || {
                let mut line = Line { stream, heard, open: true };
                attack(&mut line);
                let _ = line.stream.shutdown(Shutdown::Both);
            });
        }
    });
    Attacker { address, heard }
}

pub(crate) struct Line {
    stream: TcpStream,
    pub(crate) heard: Arc<Mutex<Vec<u8>>>,
    pub(crate) open: bool,
}

impl Line {
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.open = self.open && self.stream.write_all(bytes).is_ok();
    }

    /// The next piece of what the client sends.
    pub(crate) fn hear(&mut self) {
        let mut piece = [0; 8192];
        match self.stream.read(&mut piece) {
            Ok(count @ 1..) => self.heard.lock().expect("no panic").extend(&piece[..count]),
            _ => self.open = false,
        }
    }

    /// Without an end, as fast as it can.
    pub(crate) fn flood(&mut self, bytes: &[u8]) {
        let many = bytes.repeat((1 << 18) / bytes.len() + 1);
        while self.open {
            self.say(&many);
        }
    }

    /// Without an end, a byte at a time.
    pub(crate) fn drip(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().cycle() {
            if !self.open {
                return;
            }
            self.say(&[*byte]);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
