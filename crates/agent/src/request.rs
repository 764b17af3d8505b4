//! Requests to the daemon.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use serde_json::{Map, Value};

/// Version of frames and requests; a daemon refuses all others.
pub(crate) const FORMAT: u32 = 1;

/// A program with its working conditions. `env`: the whole environment; if missing, the daemon's own.
#[derive(Deserialize, Clone)]
pub(crate) struct Program {
    pub(crate) argv: Vec<String>,
    pub(crate) env: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Request {
    /// First on every connection. `epoch`: identifies the tare; a new one replaces a tare that died. `engine`: the
    /// socket of the container engine.
    Hello {
        format: u32,
        epoch: String,
        lease_s: f64,
        engine: String,
    },
    Ping,
    /// The data is standard input.
    Run {
        #[serde(flatten)]
        program: Program,
        limit_s: f64,
    },
    /// `held`: the program does not begin until `release`.
    Start {
        #[serde(flatten)]
        program: Program,
        stdout: String,
        stderr: String,
        held: bool,
    },
    Release {
        pid: u32,
    },
    Abandon {
        pid: u32,
    },
    Put {
        path: String,
        mode: u32,
    },
    PutPart {
        scratch: String,
        offset: u64,
    },
    PutWhole {
        scratch: String,
        path: String,
        mode: u32,
        size: u64,
    },
    /// Up to `limit` bytes from `offset`; `whole` in the answer if the file ends there.
    Read {
        path: String,
        offset: u64,
        limit: u64,
        /// Whether to refuse a link or a pipe in the file's place, by a hostile user who may write to the directory.
        #[serde(default)]
        regular: bool,
    },
    /// Several small files; `lengths` in the answer.
    ReadAll {
        paths: Vec<String>,
        regular: bool,
    },
    List {
        path: String,
    },
    Note {
        kind: String,
        ident: String,
        keep: bool,
    },
    Forget {
        kind: String,
        ident: String,
    },
    Entries,
    /// How to make a container that does what this agent may not; the data is the engine's JSON.
    Sidecar,
    /// Answer at an address of this host, for network measurements by other hosts; the port is in the answer.
    Echo {
        address: IpAddr,
    },
    EndEcho {
        port: u16,
    },
    /// Measure round trips to another host's echo.
    Sound {
        address: IpAddr,
        port: u16,
    },
    /// Measure throughput to it and back.
    Fill {
        address: IpAddr,
        port: u16,
        seconds: f64,
    },
    /// End the program of the request `of`, whose answer is no longer awaited.
    Cancel {
        of: u64,
    },
    /// Only acknowledges answers.
    Ack,
    /// Clear up and end.
    Bye,
}

impl Request {
    /// Whether repeating it would have other effects; if so, its answer is kept until acknowledged.
    pub(crate) fn kept(&self) -> bool {
        matches!(
            self,
            Self::Run { .. }
                | Self::Start { .. }
                | Self::Echo { .. }
                | Self::Release { .. }
                | Self::Put { .. }
                | Self::PutWhole { .. }
        )
    }
}

/// Parses a message's head: the request, and the ids of answers that its sender has received.
pub(crate) fn parse(
    mut head: Map<String, Value>,
) -> Result<(Request, Vec<u64>), serde_json::Error> {
    let acks = match head.remove("acks") {
        Some(ids) => serde_json::from_value(ids)?,
        None => Vec::new(),
    };
    Ok((serde_json::from_value(Value::Object(head))?, acks))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(value: &Value) -> Result<(Request, Vec<u64>), serde_json::Error> {
        parse(value.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn a_request_brings_acknowledgements_along() {
        let (request, acks) = parsed(&json!({
            "op": "run", "argv": ["true"], "env": null, "limit_s": 1.5, "acks": [3, 4]
        }))
        .unwrap();
        assert!(matches!(request, Request::Run { limit_s: 1.5, .. }) && request.kept());
        assert_eq!(acks, [3, 4]);
    }

    #[test]
    fn what_can_be_done_twice_is_not_kept() {
        assert!(!parsed(&json!({"op": "ping"})).unwrap().0.kept());
        assert!(
            !parsed(&json!({"op": "put_part", "scratch": "/x", "offset": 0})).unwrap().0.kept()
        );
    }

    #[test]
    fn an_unknown_request_is_an_error() {
        assert!(parsed(&json!({"op": "format_disk"})).is_err());
        assert!(parsed(&json!({})).is_err());
    }
}
