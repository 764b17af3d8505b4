//! Numbering of targets, and announcing them to the writer.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Sender};
use std::thread::Thread;

use tare_record::header::{Event, Target, TargetKind, What};

use crate::clock::monotonic_ns;
use crate::pump::News;
use crate::sampler::PROBE_TARGET;

/// Group of columns → file that it is read from, or why there is none.
pub type Sources = BTreeMap<String, String>;

pub struct Registry {
    next: u32,
    news: Sender<News>,
    /// The writer's thread, which is woken when there are news; `None` until it runs.
    pump: Option<Thread>,
}

impl Registry {
    /// The first target is the probe itself.
    #[must_use]
    pub fn new(news: Sender<News>) -> Self {
        let mut registry = Self { next: PROBE_TARGET, news, pump: None };
        let detail = format!("pid {}", std::process::id());
        registry.add(TargetKind::Probe, "tare-probe", &detail, Sources::new());
        registry
    }

    /// Numbers a target. Its rows may be sent after [`Self::settle`].
    pub fn add(&mut self, kind: TargetKind, name: &str, detail: &str, sources: Sources) -> u32 {
        let id = self.next;
        self.next += 1;
        self.tell(News::Target(Target {
            id,
            kind,
            name: name.to_owned(),
            detail: detail.to_owned(),
            opened_ns: monotonic_ns(),
            sources,
        }));
        id
    }

    /// Number of targets so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.next as usize
    }

    pub fn event(&self, what: What, target: u32, tick: u64, at_ns: u64, detail: String) {
        self.tell(News::Event(Event { tick, target, at_ns, what, detail }));
    }

    /// Sets the thread to wake.
    pub fn wake(&mut self, pump: Thread) {
        self.pump = Some(pump);
    }

    /// Waits until everything announced so far is written, so that the journal knows the targets of
    /// all rows that outlive the program.
    pub fn settle(&self) {
        let (answer, answered) = mpsc::sync_channel(1);
        self.tell(News::Settle(answer));
        // If the pump has ended, no rows are sent any more.
        let _ = answered.recv();
    }

    /// Sends news. If the pump has ended, the recording has failed, which is reported elsewhere.
    fn tell(&self, news: News) {
        let _ = self.news.send(news);
        if let Some(pump) = &self.pump {
            pump.unpark();
        }
    }
}
