//! How the daemon carries out requests.

use std::fs::File;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::time::ClockId;
use serde_json::{Value, json};

use crate::answer::{Answer, Fault};
use crate::clearing;
use crate::echo::{Echoes, nanoseconds};
use crate::files::{self, Parts};
use crate::identity::Identity;
use crate::ledger::Ledger;
use crate::program::{self, Cancel};
use crate::request::Request;
use crate::sounding;
use crate::started::Started;

/// Longest time limit of a program.
const LONGEST_S: f64 = 366.0 * 86400.0;
const LONGEST_FILL_S: f64 = 60.0;
/// A tree of this depth can be removed, and its entry struck out, with as many files.
const SPARE: usize = 64;

/// The host, and everything that was started on it.
pub(crate) struct Workplace {
    started: Started,
    parts: Parts,
    echoes: Echoes,
    ledger: Ledger,
    engine: Mutex<String>,
    sidecar: Mutex<Option<Value>>,
    /// Open files that are closed before everything is removed, which opens files even when no more can be opened.
    spare: Mutex<Vec<File>>,
}

impl Workplace {
    pub(crate) fn new(ledger: Ledger) -> Self {
        let engine = Mutex::new("/var/run/docker.sock".to_owned());
        Self {
            started: Started::default(),
            parts: Parts::default(),
            echoes: Echoes::default(),
            ledger,
            engine,
            sidecar: Mutex::default(),
            spare: Mutex::new(spare_files()),
        }
    }

    pub(crate) fn use_engine(&self, socket: String) {
        *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = socket;
    }

    /// Ends and removes everything of this agent's tare; nothing begins until `open`.
    pub(crate) fn close(&self) {
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.started.close();
        self.echoes.close_all();
        self.parts.remove_all();
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let wanted = self.sidecar.lock().unwrap_or_else(PoisonError::into_inner).take();
        clearing::clear(&self.ledger, &engine, wanted.as_ref());
    }

    pub(crate) fn open(&self) {
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = spare_files();
        self.started.open();
    }

    pub(crate) fn answer(
        &self,
        request: Request,
        data: &[u8],
        cancel: &Cancel,
    ) -> Result<Answer, Fault> {
        match request {
            Request::Run { program, limit_s } => {
                self.started.reap();
                let limit = Duration::from_secs_f64(limit_s.clamp(0.0, LONGEST_S));
                let done = program::run(&program, data, limit, cancel)?;
                let ended = json!({"code": done.code, "stdout": done.stdout.len()});
                Ok(Answer::with(ended, vec![done.stdout, done.stderr]))
            }
            Request::Start { program, stdout, stderr, held } => {
                let identity = self.started.start(&program, &stdout, &stderr, held)?;
                Ok(Answer::of(
                    json!({"pid": identity.pid, "started_ticks": identity.started_ticks}),
                ))
            }
            Request::Release { pid } => self.started.release(pid).map(|()| Answer::done()),
            Request::Abandon { pid } => {
                self.started.abandon(pid);
                Ok(Answer::done())
            }
            Request::Put { path, mode } => files::put(&path, mode, data).map(|()| Answer::done()),
            Request::PutPart { scratch, offset } => {
                self.parts.put(&scratch, offset, data).map(|()| Answer::done())
            }
            Request::PutWhole { scratch, path, mode, size } => {
                self.parts.whole(&scratch, &path, mode, size).map(|()| Answer::done())
            }
            Request::Read { path, offset, limit, regular } => {
                self.started.reap();
                let (content, whole) = files::read(&path, offset, limit, regular)?;
                Ok(Answer::with(json!({"whole": whole}), vec![content]))
            }
            Request::ReadAll { paths, regular } => {
                self.started.reap();
                let (lengths, contents) = files::read_all(&paths, regular);
                Ok(Answer::with(json!({"lengths": lengths}), contents))
            }
            Request::List { path } => {
                let listing = serde_json::Value::from(files::list(&path)?).to_string();
                Ok(Answer::with(json!({}), vec![listing.into_bytes()]))
            }
            Request::Note { kind, ident, keep } => {
                self.ledger.note(kind, ident, keep)?;
                Ok(Answer::done())
            }
            Request::Forget { kind, ident } => {
                self.ledger.forget(kind, ident)?;
                Ok(Answer::done())
            }
            Request::Entries => self.entries(),
            Request::Sidecar => {
                let wanted = serde_json::from_slice(data)
                    .map_err(|error| Fault::Other(error.to_string()))?;
                *self.sidecar.lock().unwrap_or_else(PoisonError::into_inner) = Some(wanted);
                Ok(Answer::done())
            }
            Request::Echo { address } => {
                Ok(Answer::of(json!({"port": self.echoes.open(address)?})))
            }
            Request::EndEcho { port } => {
                self.echoes.close(port);
                Ok(Answer::done())
            }
            Request::Sound { address, port } => {
                let seen = sounding::ask(address, port)?.to_string();
                Ok(Answer::with(json!({}), vec![seen.into_bytes()]))
            }
            Request::Fill { address, port, seconds } => {
                let lasts = Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_FILL_S));
                Ok(Answer::of(sounding::fill(address, port, lasts)?))
            }
            Request::Ping => Ok(Answer::of(clocks())),
            Request::Hello { .. } | Request::Cancel { .. } | Request::Ack | Request::Bye => {
                Err(Fault::Other("this is no work".to_owned()))
            }
        }
    }

    fn entries(&self) -> Result<Answer, Fault> {
        let entries = self.ledger.entries()?;
        let listed: Vec<_> = entries
            .iter()
            .map(|entry| {
                let living = Identity::parse(&entry.owner).is_some_and(|owner| owner.alive());
                json!({
                    "kind": entry.kind, "ident": entry.ident, "owner": entry.owner, "keep": entry.keep,
                    "living": living, "failed": entry.failed,
                })
            })
            .collect();
        Ok(Answer::with(json!({}), vec![serde_json::Value::from(listed).to_string().into_bytes()]))
    }
}

fn spare_files() -> Vec<File> {
    (0..SPARE).map_while(|_| File::open("/dev/null").ok()).collect()
}

/// This host's clocks, read together: tare aligns its own with them by the quickest of a few pings.
fn clocks() -> Value {
    let (monotonic, wall) = (nanoseconds(ClockId::Monotonic), nanoseconds(ClockId::Realtime));
    json!({"monotonic_ns": monotonic, "wall_ns": wall})
}
