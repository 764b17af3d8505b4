//! Errors: what failed, where, and what to do next, each in one sentence.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The request is not possible; found before anything is sent.
    #[error("{0}")]
    Usage(String),
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}, line {line}: {reason}")]
    Line { path: PathBuf, line: usize, reason: String },
    #[error(
        "{connections} connections need {needed} file descriptors, but the limit is {limit}: raise it with `ulimit -n {needed}` or ask for fewer connections"
    )]
    FileLimit { connections: usize, needed: u64, limit: u64 },
    #[error("{address}: {source}")]
    Connect { address: String, source: Fault },
    #[error("the turns of {path}: {reason}")]
    Turns { path: PathBuf, reason: String },
    #[error("a thread of tare-load cannot start: {0}")]
    Thread(io::Error),
    #[error("this machine failed during the run: {0}")]
    Machine(io::Error),
    #[error("standard output: {0}")]
    Output(io::Error),
}

impl LoadError {
    /// 2: wrong usage. 3: the server cannot be reached or refuses. 1: this machine fails.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Line { .. } | Self::FileLimit { .. } | Self::Turns { .. } => 2,
            Self::Connect { source, .. } if source.is_own() => 1,
            Self::Connect { .. } => 3,
            Self::File { .. } | Self::Thread(_) | Self::Machine(_) | Self::Output(_) => 1,
        }
    }
}

/// Most characters that are shown of what a server says.
const MOST_SHOWN: usize = 512;

/// What a server says, for a terminal: one line, in which nothing moves the cursor or reorders text.
#[must_use]
pub fn plain(text: &str) -> String {
    let moves = |letter: char| {
        letter.is_control()
            || matches!(
                letter,
                '\u{061c}'
                    | '\u{200b}'..='\u{200f}'
                    | '\u{2028}'..='\u{202e}'
                    | '\u{2066}'..='\u{2069}'
                    | '\u{feff}'
            )
    };
    text.chars()
        .take(MOST_SHOWN)
        .map(|letter| if moves(letter) { char::REPLACEMENT_CHARACTER } else { letter })
        .collect()
}

/// Error of one connection.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("no such host: {0}")]
    Resolve(io::Error),
    #[error("connection refused: is the server running, and does it listen there?")]
    Refused,
    #[error("the server did not answer within {0} s")]
    TimedOut(f64),
    #[error("the server closed the connection")]
    Closed,
    #[error("the server closed the connection: {}", plain(.0))]
    Dismissed(String),
    #[error("the server takes no connections yet: {}", plain(.0))]
    NotReady(String),
    #[error("the server reset the connection")]
    Reset,
    #[error("TLS: {0}")]
    Tls(String),
    #[error("the server refused the log-in: {}", plain(.0))]
    Login(String),
    #[error("the server refused a statement: {} (in: {statement})", plain(.message))]
    Statement { statement: String, message: String },
    #[error("the server's answer is not {protocol}: {reason}")]
    Malformed { protocol: &'static str, reason: &'static str },
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}")]
    Io(io::Error),
}

impl Fault {
    /// One word under which errors are counted.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Resolve(_) => "resolve",
            Self::Refused => "refused",
            Self::TimedOut(_) => "timeout",
            Self::Closed | Self::Dismissed(_) => "closed",
            Self::NotReady(_) => "not-ready",
            Self::Reset => "reset",
            Self::Tls(_) => "tls",
            Self::Login(_) => "login",
            Self::Statement { .. } => "statement",
            Self::Malformed { .. } => "malformed",
            Self::Unsupported(_) => "unsupported",
            Self::Io(_) => "io",
        }
    }

    /// Whether this machine failed, and not the server: it has no descriptor, memory or port left.
    #[must_use]
    pub fn is_own(&self) -> bool {
        matches!(self, Self::Io(error) if Self::is_own_error(error))
    }

    #[must_use]
    pub fn is_own_error(error: &io::Error) -> bool {
        let own = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS, libc::EADDRNOTAVAIL];
        error.raw_os_error().is_some_and(|code| own.contains(&code))
    }

    /// Whether another attempt may succeed.
    #[must_use]
    pub fn passes(&self) -> bool {
        matches!(
            self,
            Self::Refused
                | Self::TimedOut(_)
                | Self::Closed
                | Self::Dismissed(_)
                | Self::NotReady(_)
                | Self::Reset
                | Self::Io(_)
        )
    }

    /// Makes a fault from an error after a wait of known length.
    #[must_use]
    pub fn from_io(error: io::Error, waited_s: f64) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::TimedOut(waited_s),
            _ => Self::from(error),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Reset,
            io::ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Io(error),
        }
    }
}
