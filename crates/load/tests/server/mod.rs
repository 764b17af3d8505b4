//! A tiny server that answers `PING` and `GET k`, and misbehaves as told.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Behaviour {
    Answers,
    /// Answers nothing for so long.
    Stops {
        after: f64,
        seconds: f64,
    },
    /// Closes everything, and listens no more.
    Ends {
        after: f64,
    },
    /// Closes a connection after so many replies.
    DropsEach {
        replies: u64,
    },
    /// Answers something else.
    Babbles,
    /// Has no such key.
    Missing,
    /// Answers an error.
    Refuses,
}

pub(crate) struct Server {
    address: String,
    requests: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

struct State {
    behaviour: Behaviour,
    /// The first `GET` starts the clock.
    began: Mutex<Option<Instant>>,
    requests: Arc<AtomicU64>,
}

impl Server {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("set");
        let address = listener.local_addr().expect("bound").to_string();
        let requests = Arc::new(AtomicU64::new(0));
        let ended = Arc::new(AtomicBool::new(false));
        let state =
            Arc::new(State { behaviour, began: Mutex::new(None), requests: requests.clone() });
        let over = ended.clone();
        std::thread::spawn(move || {
            let mut streams: Vec<TcpStream> = Vec::new();
            while !over.load(Ordering::Relaxed) && !state.is_over() {
                match listener.accept() {
                    Ok((stream, _)) => {
                        streams.push(stream.try_clone().expect("cloned"));
                        let state = state.clone();
                        std::thread::spawn(move || state.serve(stream));
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
            drop(listener);
            for stream in streams {
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
        Self { address, requests, ended }
    }

    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    pub(crate) fn take_requests(&self) -> u64 {
        self.requests.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn unused_address() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("bound").to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl State {
    fn age(&self) -> Option<Duration> {
        self.began.lock().expect("no panic").map(|began| began.elapsed())
    }

    fn is_over(&self) -> bool {
        match self.behaviour {
            Behaviour::Ends { after } => {
                self.age().is_some_and(|age| age > Duration::from_secs_f64(after))
            }
            _ => false,
        }
    }

    fn serve(&self, mut stream: TcpStream) {
        stream.set_nodelay(true).expect("set");
        stream.set_nonblocking(false).expect("set");
        let mut buffer = vec![0; 65536];
        let mut replies = 0;
        while let Ok(count) = stream.read(&mut buffer) {
            // Requests are never cut here: each is far shorter than what is read at once.
            let pings = buffer[..count].windows(4).filter(|word| *word == b"PING").count();
            let gets = buffer[..count].windows(3).filter(|word| *word == b"GET").count();
            if pings + gets == 0 {
                return;
            }
            self.requests.fetch_add((pings + gets) as u64, Ordering::Relaxed);
            self.wait(gets > 0);
            let mut out = b"+PONG\r\n".repeat(pings);
            out.extend(self.reply().repeat(gets));
            replies += gets as u64;
            if stream.write_all(&out).is_err() {
                return;
            }
            if matches!(self.behaviour, Behaviour::DropsEach { replies: most } if replies >= most) {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    fn reply(&self) -> &'static [u8] {
        match self.behaviour {
            Behaviour::Babbles => b"HTTP/1.1 400 Bad Request\r\n",
            Behaviour::Missing => b"$-1\r\n",
            Behaviour::Refuses => b"-OOM no memory\r\n",
            _ => b"$5\r\nhello\r\n",
        }
    }

    /// Until a stop is over, for requests within it.
    fn wait(&self, begins: bool) {
        if begins {
            self.began.lock().expect("no panic").get_or_insert_with(Instant::now);
        }
        let (Behaviour::Stops { after, seconds }, Some(age)) = (self.behaviour, self.age()) else {
            return;
        };
        let (from, to) = (Duration::from_secs_f64(after), Duration::from_secs_f64(after + seconds));
        if age >= from {
            std::thread::sleep(to.saturating_sub(age));
        }
    }
}
