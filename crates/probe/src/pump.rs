//! The writer's thread, which passes rows from the ring to the sinks.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use tare_record::header::{Event, Target};
use tare_record::tables::{self, tick};
use tare_record::{ABSENT, RecordError};

use crate::ring::RowReceiver;
use crate::sink::Sink;

/// Longest time in one frame of a journal, so that a reader can skip most frames.
const FRAME_NS: u64 = 450_000_000;

/// News from discovery to the sinks.
#[derive(Debug)]
pub enum News {
    Target(Target),
    Event(Event),
    /// Answered once the sinks have received all earlier news.
    Settle(SyncSender<()>),
}

/// Result of the pump.
pub struct Pumped {
    pub sinks: Vec<Box<dyn Sink>>,
    pub error: Option<RecordError>,
}

pub struct Pump {
    pub rows: RowReceiver,
    pub news: Receiver<News>,
    pub sinks: Vec<Box<dyn Sink>>,
    /// Where the rows are kept, for messages.
    pub waiting_in: PathBuf,
    /// Set by the session once the sampler has ended.
    pub drained: Arc<AtomicBool>,
    /// Set here if a sink fails, which ends the recording.
    pub stop: Arc<AtomicBool>,
}

impl Pump {
    /// Runs until the sampler has ended and everything is written, or a sink fails.
    #[must_use]
    pub fn run(mut self) -> Pumped {
        let error = loop {
            let last = self.drained.load(Ordering::Acquire);
            if let Err(error) = self.turn() {
                self.stop.store(true, Ordering::Relaxed);
                break Some(error);
            }
            if last {
                break None;
            }
            // Without a time limit: its timer would cost more than writing a row.
            std::thread::park();
        };
        Pumped { sinks: self.sinks, error }
    }

    fn turn(&mut self) -> Result<(), RecordError> {
        let mut events = Vec::new();
        while let Ok(news) = self.news.try_recv() {
            match news {
                News::Target(target) => self.each(|sink| sink.target(&target))?,
                News::Event(event) => events.push(event),
                // The asking thread may have ended meanwhile.
                News::Settle(asked) => drop(asked.send(())),
            }
        }
        // After the news, so that a target's events come after its last row.
        self.move_rows()?;
        for event in &events {
            self.each(|sink| sink.event(event))?;
        }
        Ok(())
    }

    fn move_rows(&mut self) -> Result<(), RecordError> {
        let end = self.rows.written();
        let sinks = &mut self.sinks;
        let (mut sealed_ns, mut failed) = (0, None);
        let drained = self.rows.drain(end, |row, upto| {
            for sink in sinks.iter_mut() {
                sink.row(row);
            }
            if row.key.table != tables::TICK || row.cells[tick::WOKE_NS] == ABSENT {
                return;
            }
            let woke_ns = row.cells[tick::WOKE_NS];
            if woke_ns >= sealed_ns + FRAME_NS {
                sealed_ns = woke_ns;
                let sealed = sinks.iter_mut().try_for_each(|sink| sink.seal(upto));
                failed = failed.take().or(sealed.err());
            }
        });
        if let Err(broken) = drained {
            return Err(RecordError::Tail {
                path: self.waiting_in.clone(),
                position: broken.position,
                why: broken.why,
            });
        }
        failed.map_or(Ok(()), Err)?;
        self.each(|sink| sink.flush(end))?;
        self.rows.release();
        Ok(())
    }

    fn each(
        &mut self,
        mut act: impl FnMut(&mut Box<dyn Sink>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        self.sinks.iter_mut().try_for_each(&mut act)
    }
}
