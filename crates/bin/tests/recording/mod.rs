//! Runs the program and looks at what it recorded.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tare_record::RecordError;
use tare_record::parquet::read::{self, Value};

const PROBE: &str = env!("CARGO_BIN_EXE_tare-probe");

pub(crate) fn probe(arguments: &[&str]) -> Output {
    Command::new(PROBE).args(arguments).output().expect("tare-probe runs")
}

pub(crate) fn start(arguments: &[&str]) -> Child {
    Command::new(PROBE).args(arguments).stderr(Stdio::piped()).spawn().expect("tare-probe starts")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A column of a table, missing values left out.
pub(crate) fn numbers(directory: &Path, table: &str, column: &str) -> Vec<i64> {
    let (mut at, mut found) = (None, Vec::new());
    let path = directory.join(format!("{table}.parquet"));
    let names = std::cell::RefCell::new(&mut at);
    read::read_table::<RecordError>(
        &path,
        |columns| {
            **names.borrow_mut() = columns.iter().position(|known| known.name == column);
            Ok(())
        },
        |row| {
            let at = names.borrow().expect("the column is there");
            if let Value::Number(number) = row[at] {
                found.push(number);
            }
            Ok(())
        },
    )
    .expect("a readable table");
    found
}

pub(crate) fn trace(directory: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(directory.join("trace.json")).expect("trace.json");
    serde_json::from_str(&text).expect("JSON")
}

pub(crate) fn out(home: &tempfile::TempDir) -> (PathBuf, String) {
    let directory = home.path().join("trace");
    let name = directory.display().to_string();
    (directory, name)
}

/// Waits until a file is there, ten seconds at most.
pub(crate) fn wait_for(path: &Path) {
    wait_until(&path.display().to_string(), || path.exists());
}

/// Waits until something is so, ten seconds at most.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(std::time::Instant::now() < deadline, "{what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}
