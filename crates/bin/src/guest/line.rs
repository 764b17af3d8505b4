//! One request a line of JSON, one answer a line: `{"id": …, "verb": …, …}` → `{"id": …, "ok": {…}}` or `"error"`.
//!
//! A line that is no request is answered without an id, which whoever waits for another passes over.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::Failure;

/// Answers, from any thread. One that blocks holds back the other answers, and nothing else.
#[derive(Clone)]
pub(crate) struct Answers(Arc<Mutex<File>>);

impl Answers {
    pub(crate) fn new(port: File) -> Self {
        Self(Arc::new(Mutex::new(port)))
    }

    pub(crate) fn give(&self, id: &Value, answer: Result<Value, Failure>) {
        let reply = match answer {
            Ok(value) => json!({"id": id, "ok": value}),
            Err(failure) => json!({"id": id, "error": failure.to_string()}),
        };
        let mut port = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = port.write_all(format!("{reply}\n").as_bytes()) {
            eprintln!("tare-guest: an answer could not be given: {error}");
        }
    }
}

/// Each request as it comes; ends with the port.
///
/// # Errors
/// Where the port cannot be read.
pub(crate) fn requests(port: File) -> impl Iterator<Item = Result<Value, Failure>> {
    BufReader::new(port)
        .split(b'\n')
        .filter(|line| line.as_ref().map_or(true, |line| !line.is_empty()))
        .map(|line| {
            let line = line?;
            Ok(serde_json::from_slice(&line).unwrap_or(Value::Null))
        })
}
