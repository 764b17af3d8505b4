//! A tiny server that answers `PING` and `GET k`, and misbehaves as told.

#![allow(dead_code)] // each test file uses a part

pub(crate) mod mongodb;
pub(crate) mod plan;

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
    /// Answers one request only after so long, and all others at once.
    StopsOne {
        after: f64,
        seconds: f64,
    },
    /// Answers each request after so long.
    Takes {
        seconds: f64,
    },
    /// Says nothing more on a connection after so many replies.
    ForgetsAfter {
        replies: u64,
    },
    /// Closes its connections at the next request, and answers the greeting of later ones only after so long.
    ComesBack {
        after: f64,
        seconds: f64,
    },
    /// Answers each greeting only after so long.
    GreetsLate {
        seconds: f64,
    },
    /// Closes everything, and listens no more.
    Ends {
        after: f64,
    },
    /// Likewise, and listens on the same port again after so long.
    Restarts {
        after: f64,
        seconds: f64,
    },
    /// Resets a connection after so many replies, as a firewall or a killed process does.
    ResetsEach {
        replies: u64,
    },
    /// Reads nothing any more from the first `SET` on.
    ReadsNoMore,
    /// Takes connections and says nothing at all.
    Mute,
    /// Refuses whoever comes.
    RefusesLogIn,
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
    /// The error of a server whose disk is full.
    DiskFull,
}

pub(crate) struct Server {
    address: String,
    requests: Arc<AtomicU64>,
    most_replies: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

struct State {
    behaviour: Behaviour,
    /// The first `GET` starts the clock.
    began: Mutex<Option<Instant>>,
    requests: Arc<AtomicU64>,
    most_replies: Arc<AtomicU64>,
    /// What happens once has happened.
    happened: AtomicBool,
}

impl Server {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let mut listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("set");
        let address = listener.local_addr().expect("bound").to_string();
        let requests = Arc::new(AtomicU64::new(0));
        let most_replies = Arc::new(AtomicU64::new(0));
        let ended = Arc::new(AtomicBool::new(false));
        let state = Arc::new(State {
            behaviour,
            began: Mutex::new(None),
            requests: requests.clone(),
            most_replies: most_replies.clone(),
            happened: AtomicBool::new(false),
        });
        let over = ended.clone();
        std::thread::spawn(move || {
            let mut streams: Vec<TcpStream> = Vec::new();
            while !over.load(Ordering::Relaxed) && !state.is_over() {
                match listener.accept() {
                    Ok((stream, _)) => {
                        // A second handle would keep a connection open that is to be reset.
                        if !matches!(state.behaviour, Behaviour::ResetsEach { .. }) {
                            streams.push(stream.try_clone().expect("cloned"));
                        }
                        let state = state.clone();
                        std::thread::spawn(move || state.serve(stream));
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
                if let Some(away) = state.begins_restart() {
                    let address = listener.local_addr().expect("bound");
                    drop(listener);
                    for stream in streams.drain(..) {
                        let _ = stream.shutdown(Shutdown::Both);
                    }
                    std::thread::sleep(away);
                    listener = TcpListener::bind(address).expect("the same port");
                    listener.set_nonblocking(true).expect("set");
                }
            }
            drop(listener);
            for stream in streams {
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
        Self { address, requests, most_replies, ended }
    }

    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    pub(crate) fn take_requests(&self) -> u64 {
        self.requests.swap(0, Ordering::Relaxed)
    }

    /// Most replies on one connection, other than to greetings.
    pub(crate) fn most_replies(&self) -> u64 {
        self.most_replies.load(Ordering::Relaxed)
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

    /// How long it will be away, once.
    fn begins_restart(&self) -> Option<Duration> {
        let Behaviour::Restarts { after, seconds } = self.behaviour else { return None };
        let due = self.age().is_some_and(|age| age > Duration::from_secs_f64(after));
        (due && !self.happened.swap(true, Ordering::Relaxed))
            .then(|| Duration::from_secs_f64(seconds))
    }

    fn serve(&self, mut stream: TcpStream) {
        stream.set_nodelay(true).expect("set");
        stream.set_nonblocking(false).expect("set");
        let mut buffer = vec![0; 65536];
        let mut replies = 0;
        let comes_back = |after: f64| self.age().is_some_and(|age| age.as_secs_f64() > after);
        let (mut opened_later, mut greeting_s) = (false, 0.0);
        if let Behaviour::ComesBack { after, seconds } = self.behaviour {
            opened_later = comes_back(after);
            greeting_s = if opened_later { seconds } else { 0.0 };
        }
        if self.behaviour == Behaviour::Mute {
            std::thread::sleep(Duration::from_secs(60));
        }
        while let Ok(count) = stream.read(&mut buffer) {
            // Requests are never cut here: each is far shorter than what is read at once.
            let pings = buffer[..count].windows(4).filter(|word| *word == b"PING").count();
            let gets = buffer[..count].windows(3).filter(|word| *word == b"GET").count();
            if self.behaviour == Behaviour::ReadsNoMore && pings == 0 {
                std::thread::sleep(Duration::from_secs(60));
            }
            if self.behaviour == Behaviour::RefusesLogIn {
                let _ = stream.write_all(b"-WRONGPASS invalid username-password pair\r\n");
                return;
            }
            if pings + gets == 0 {
                return;
            }
            self.requests.fetch_add((pings + gets) as u64, Ordering::Relaxed);
            self.wait(gets > 0);
            match self.behaviour {
                Behaviour::Takes { seconds } if gets > 0 => {
                    std::thread::sleep(Duration::from_secs_f64(seconds));
                }
                Behaviour::StopsOne { after, seconds }
                    if self.age().is_some_and(|age| age > Duration::from_secs_f64(after))
                        && !self.happened.swap(true, Ordering::Relaxed) =>
                {
                    std::thread::sleep(Duration::from_secs_f64(seconds));
                }
                Behaviour::GreetsLate { seconds } if pings > 0 => {
                    std::thread::sleep(Duration::from_secs_f64(seconds));
                }
                Behaviour::ComesBack { .. } if pings > 0 => {
                    std::thread::sleep(Duration::from_secs_f64(greeting_s));
                }
                Behaviour::ComesBack { after, .. } if !opened_later && comes_back(after) => {
                    let _ = stream.shutdown(Shutdown::Both);
                    return;
                }
                Behaviour::ForgetsAfter { replies: most } if replies >= most => continue,
                _ => {}
            }
            let mut out = b"+PONG\r\n".repeat(pings);
            out.extend(self.reply().repeat(gets));
            replies += gets as u64;
            self.most_replies.fetch_max(replies, Ordering::Relaxed);
            if stream.write_all(&out).is_err() {
                return;
            }
            if matches!(self.behaviour, Behaviour::ResetsEach { replies: most } if replies >= most)
            {
                let at_once = Some(Duration::ZERO);
                rustix::net::sockopt::set_socket_linger(&stream, at_once).expect("TCP has it");
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
            Behaviour::DiskFull => {
                b"-MISCONF Errors writing to the AOF file: No space left on device\r\n"
            }
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
