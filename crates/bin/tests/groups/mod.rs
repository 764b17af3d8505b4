//! Control groups of a test's own, recordings of them, and what their tables hold.
#![allow(dead_code)] // no test needs all of it

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use tare_record::RecordError;
use tare_record::parquet::read::{self, Value};

pub(crate) const PROBE: &str = env!("CARGO_BIN_EXE_tare-probe");
const HIERARCHIES: [&str; 7] = ["cpu", "cpuacct", "memory", "blkio", "pids", "unified", ""];

/// Twenty ticks of 20 Hz: one of them comes even where the machine is busy.
const MANY_TICKS: Duration = Duration::from_secs(1);

/// Column → value.
pub(crate) type Row = std::collections::HashMap<String, Value>;

/// A control group in every hierarchy that this machine has; it goes when this goes.
pub(crate) struct Group {
    pub(crate) path: String,
}

impl Group {
    pub(crate) fn new(name: &str) -> Self {
        let group = Self { path: format!("tare-test-{}-{name}", std::process::id()) };
        group.make();
        group
    }

    pub(crate) fn child(&self, name: &str) -> Self {
        let group = Self { path: format!("{}/{name}", self.path) };
        group.make();
        group
    }

    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        HIERARCHIES
            .iter()
            .map(|name| Path::new("/sys/fs/cgroup").join(name))
            .filter(|mount| mount.join("cgroup.procs").exists())
            .map(|mount| mount.join(&self.path))
            .collect()
    }

    pub(crate) fn make(&self) {
        for directory in self.directories() {
            fs::create_dir_all(&directory).expect("a control group");
        }
    }

    pub(crate) fn remove(&self) {
        for directory in self.directories() {
            let _ = fs::remove_dir(directory);
        }
    }

    /// A shell command line inside the group.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let directories = self.directories();
        let mut lines: Vec<String> = directories
            .iter()
            .map(|directory| format!("echo $$ > {}/cgroup.procs", directory.display()))
            .collect();
        lines.push(script.to_owned());
        let mut command = Command::new("sh");
        command.args(["-c", &lines.join("; ")]);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Starts a recording and returns once its targets are open: the journal is made after that.
pub(crate) fn start(out: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(PROBE);
    command.arg("record").arg("--out").arg(out).args(arguments);
    let child = command.spawn().expect("tare-probe starts");
    wait_until("the journal", || out.join("journal.tare").exists());
    child
}

/// Waits until something is so, for as long as a busy machine may need.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends a recording once everything that happened before was sampled, and converts it.
pub(crate) fn stop(mut child: Child) {
    std::thread::sleep(MANY_TICKS);
    Command::new("kill").arg(child.id().to_string()).status().expect("kill runs");
    assert!(child.wait().expect("reaped").success());
}

/// Waits for a recording that ends by itself.
pub(crate) fn finish(mut child: Child) {
    assert!(child.wait().expect("reaped").success());
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Rows of a table as maps from column to value.
pub(crate) fn rows(out: &Path, table: &str) -> Vec<Row> {
    let (mut names, mut rows) = (Vec::new(), Vec::new());
    let cell = std::cell::RefCell::new(&mut names);
    read::read_table::<RecordError>(
        &out.join(format!("{table}.parquet")),
        |columns| {
            **cell.borrow_mut() = columns.iter().map(|column| column.name.clone()).collect();
            Ok(())
        },
        |row| {
            rows.push(cell.borrow().iter().cloned().zip(row.iter().cloned()).collect());
            Ok(())
        },
    )
    .expect("a readable table");
    rows
}

pub(crate) fn number(row: &Row, column: &str) -> Option<i64> {
    match row[column] {
        Value::Number(number) => Some(number),
        _ => None,
    }
}
