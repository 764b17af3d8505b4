//! The writer's thread: takes rows out of the ring, looks at them and hands them to the sinks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use tare_record::RecordError;
use tare_record::header::{Event, Target, What};

use crate::inspect::Inspector;
use crate::ring::RowReceiver;
use crate::sink::Sink;

/// What discovery tells the sinks.
#[derive(Debug)]
pub enum News {
    Target(Target),
    Event(Event),
}

/// What the pump knows at its end.
pub struct Pumped {
    pub inspector: Inspector,
    pub sinks: Vec<Box<dyn Sink>>,
    pub error: Option<RecordError>,
}

pub struct Pump {
    pub rows: RowReceiver,
    pub news: Receiver<News>,
    pub sinks: Vec<Box<dyn Sink>>,
    /// Set by the session once the sampler has ended.
    pub drained: Arc<AtomicBool>,
    /// Set here where a sink fails: it ends the recording.
    pub stop: Arc<AtomicBool>,
}

impl Pump {
    /// Runs until the sampler has ended and everything is written, or a sink fails.
    #[must_use]
    pub fn run(mut self) -> Pumped {
        let mut inspector = Inspector::default();
        let error = loop {
            let last = self.drained.load(Ordering::Acquire);
            if let Err(error) = self.turn(&mut inspector) {
                self.stop.store(true, Ordering::Relaxed);
                break Some(error);
            }
            if last {
                break None;
            }
            // Without a time limit: its timer would cost more than writing a row does.
            std::thread::park();
        };
        Pumped { inspector, sinks: self.sinks, error }
    }

    fn turn(&mut self, inspector: &mut Inspector) -> Result<(), RecordError> {
        // Counted before the news are read: a target is told before its first row is sent.
        let waiting = self.rows.waiting();
        while let Ok(news) = self.news.try_recv() {
            match &news {
                News::Target(target) => self.each(|sink| sink.target(target))?,
                News::Event(event) => {
                    if event.what == What::Vanished {
                        inspector.forget(event.target);
                    }
                    self.each(|sink| sink.event(event))?;
                }
            }
        }
        let mut events = Vec::new();
        let sinks = &mut self.sinks;
        self.rows.drain(waiting, |row| {
            inspector.look(row, |event| events.push(event));
            for sink in sinks.iter_mut() {
                sink.row(row);
            }
        });
        for event in &events {
            self.each(|sink| sink.event(event))?;
        }
        self.each(|sink| sink.flush())
    }

    fn each(
        &mut self,
        mut act: impl FnMut(&mut Box<dyn Sink>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        self.sinks.iter_mut().try_for_each(&mut act)
    }
}
