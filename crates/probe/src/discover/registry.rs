//! Numbers the targets and tells the writer of them.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use tare_record::header::{Event, Target, TargetKind, What};

use crate::clock::monotonic_ns;
use crate::pump::News;
use crate::sampler::PROBE_TARGET;

/// Group of columns → file that serves it, or why none does.
pub type Sources = BTreeMap<String, String>;

pub struct Registry {
    next: u32,
    news: Sender<News>,
}

impl Registry {
    /// The first target is the probe itself.
    #[must_use]
    pub fn new(news: Sender<News>) -> Self {
        let mut registry = Self { next: PROBE_TARGET, news };
        let detail = format!("pid {}", std::process::id());
        registry.add(TargetKind::Probe, "tare-probe", &detail, Sources::new());
        registry
    }

    /// Numbers a target. Its rows may be sent from now on.
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

    pub fn event(&self, what: What, target: u32, tick: u64, at_ns: u64, detail: String) {
        self.tell(News::Event(Event { tick, target, at_ns, what, detail }));
    }

    /// Where the pump has ended, the recording has failed and says so itself.
    fn tell(&self, news: News) {
        let _ = self.news.send(news);
    }
}
