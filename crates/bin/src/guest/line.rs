//! Requests and answers, each a line of JSON: `{"id": …, "verb": …, …}` → `{"id": …, "ok": {…}}` or `"error"`.
//!
//! The answer to a line that is not a request has no id; readers that wait for another answer skip it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::Failure;

/// Writer of answers, for any thread. A blocked answer delays only other answers.
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

/// Requests in order of arrival; ends with the port.
///
/// # Errors
/// The port cannot be read.
pub(crate) fn requests(port: File) -> impl Iterator<Item = Result<Value, Failure>> {
    BufReader::new(port)
        .split(b'\n')
        .filter(|line| line.as_ref().map_or(true, |line| !line.is_empty()))
        .map(|line| {
            let line = line?;
            Ok(serde_json::from_slice(&line).unwrap_or(Value::Null))
        })
}
