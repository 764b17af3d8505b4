//! The server of the line: it handles each of the host's requests in its own thread.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::boot::hypervisor;
use crate::bytes::{from_hex, to_hex};
use crate::launch::texts;
use crate::line::{Answers, requests};
use crate::task::{self, Inside, Task};
use crate::{Failure, ports};

/// How long the pipes of a killed program are still read; a descendant may keep them open.
const DRAIN: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(2);

/// The task, once it has started.
type Slot = Arc<Mutex<Option<Arc<Task>>>>;

/// Serves until the machine ends.
pub(crate) fn serve() -> i32 {
    match answer_all() {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("tare-guest: {failure}");
            1
        }
    }
}

fn answer_all() -> Result<(), Failure> {
    let port = ports::open("tare.line")?;
    let answers = Answers::new(port.try_clone()?);
    let slot = Slot::default();
    println!("tare-guest: ready, run by {}", hypervisor());
    for request in requests(port) {
        let request = request?;
        if request["verb"] == "off" {
            answers.give(&request["id"], Ok(json!({})));
            return Ok(());
        }
        let (answers, slot) = (answers.clone(), slot.clone());
        thread::spawn(move || answers.give(&request["id"], answer(&request, &slot)));
    }
    Ok(())
}

fn answer(request: &Value, slot: &Slot) -> Result<Value, Failure> {
    match request["verb"].as_str().unwrap_or_default() {
        "hello" => Ok(json!({"hypervisor": hypervisor()})),
        "read" => read(request["path"].as_str().ok_or("no path")?),
        "run" => run(request, slot),
        "start" => {
            let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if held.is_some() {
                return Err("a machine runs one task".into());
            }
            let started = task::start(request)?;
            let pid = started.pid;
            *held = Some(started);
            Ok(json!({"pid": pid}))
        }
        "stop" => {
            let grace = Duration::from_secs_f64(
                request["grace_s"].as_f64().unwrap_or(0.0).clamp(0.0, 3600.0),
            );
            held(slot)?.end(grace);
            Ok(json!({}))
        }
        verb => Err(format!("{verb:?} is nothing that this machine does").into()),
    }
}

fn held(slot: &Slot) -> Result<Arc<Task>, Failure> {
    slot.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
        .ok_or_else(|| "no task runs here".into())
}

/// Content of a file; `null` if there is none.
fn read(path: &str) -> Result<Value, Failure> {
    match fs::read(path) {
        Ok(content) => Ok(json!({"content": to_hex(&content)})),
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH | libc::ENOTDIR)) =>
        {
            Ok(json!({"content": null}))
        }
        Err(error) => Err(format!("{path}: {error}").into()),
    }
}

/// Runs a program to its end or time limit, in the task's root if `inside`, else in the machine's own.
fn run(request: &Value, slot: &Slot) -> Result<Value, Failure> {
    let limit = Duration::from_secs_f64(
        request["timeout_s"].as_f64().ok_or("no time limit")?.clamp(0.0, 1e6),
    );
    let began = Instant::now();
    let argv = texts(&request["argv"])?;
    let mut inside = if request["inside"] == true {
        held(slot)?.inside(&argv, request["user"].as_str())?
    } else {
        let (program, words) = argv.split_first().ok_or("no program")?;
        let mut command = Command::new(format!("/bin/{program}"));
        command.args(words).env_clear();
        Inside::Plain(command)
    };
    let command = inside.command().stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    feed(&mut child, from_hex(request["stdin"].as_str().unwrap_or(""))?);
    let outputs = (collect(child.stdout.take()), collect(child.stderr.take()));
    let code = wait(&mut child, &inside, began + limit)?;
    let left = if code.is_none() {
        DRAIN
    } else {
        (began + limit).saturating_duration_since(Instant::now()) + DRAIN
    };
    let deadline = Instant::now() + left;
    let taken = [outputs.0, outputs.1].map(|output| {
        let left = deadline.saturating_duration_since(Instant::now());
        output.recv_timeout(left).unwrap_or_default()
    });
    Ok(json!({"code": code, "stdout": to_hex(&taken[0]), "stderr": to_hex(&taken[1])}))
}

/// Exit code, negative for a signal; `None` if it was killed at the time limit.
fn wait(child: &mut Child, inside: &Inside, deadline: Instant) -> Result<Option<i32>, Failure> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(task::code_of(status)));
        }
        if Instant::now() > deadline {
            inside.kill();
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

/// Writes the program's input, which it need not read.
fn feed(child: &mut Child, content: Vec<u8>) {
    if let Some(mut pipe) = child.stdin.take() {
        thread::spawn(move || pipe.write_all(&content));
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    if let Some(mut pipe) = pipe {
        thread::spawn(move || {
            let mut content = Vec::new();
            if pipe.read_to_end(&mut content).is_ok() {
                let _ = sender.send(content);
            }
        });
    }
    receiver
}
