//! Answers, and errors as text or numbers, from which the other side makes a message.

use std::fmt;
use std::io;

use serde_json::{Map, Value, json};

/// Result of a request. `parts`: its data, in order.
#[derive(Clone, Default)]
pub(crate) struct Answer {
    pub(crate) head: Map<String, Value>,
    pub(crate) parts: Vec<Vec<u8>>,
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Error of a system call; the caller knows which request it was for.
    System(io::Error),
    /// A program was killed, as it did not end in time.
    TimedOut,
    /// Nothing has this name, which the caller distinguishes from a failure.
    Absent,
    Other(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => write!(words, "{error}"),
            Self::TimedOut => write!(words, "it did not end in time, and was killed"),
            Self::Absent => write!(words, "nothing has this name"),
            Self::Other(what) => write!(words, "{what}"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<rustix::io::Errno> for Fault {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}

impl Answer {
    pub(crate) fn of(value: Value) -> Self {
        let mut head = Map::new();
        head.insert("ok".to_owned(), value);
        Self { head, parts: Vec::new() }
    }

    pub(crate) fn done() -> Self {
        Self::of(json!({}))
    }

    pub(crate) fn with(value: Value, parts: Vec<Vec<u8>>) -> Self {
        Self { parts, ..Self::of(value) }
    }

    pub(crate) fn fault(fault: &Fault) -> Self {
        let reason = match fault {
            Fault::System(error) => match error.raw_os_error() {
                Some(number) => {
                    json!({"kind": "system", "errno": number, "what": error.to_string()})
                }
                None => json!({"kind": "other", "what": error.to_string()}),
            },
            Fault::TimedOut => json!({"kind": "timeout"}),
            Fault::Absent => json!({"kind": "absent"}),
            Fault::Other(what) => json!({"kind": "other", "what": what}),
        };
        let mut head = Map::new();
        head.insert("error".to_owned(), reason);
        Self { head, parts: Vec::new() }
    }
}
