//! A whole session with sinks that misbehave: nothing is lost in silence.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tare_probe::ProbeError;
use tare_probe::discover::Spec;
use tare_probe::session::{self, Config};
use tare_probe::sink::Sink;
use tare_probe::sys::Policy;
use tare_record::header::{Event, Footer, Header, Target, What};
use tare_record::journal::Writer;
use tare_record::row::Row;
use tare_record::{RecordError, tables};

fn config(rate_hz: f64, duration_s: f64) -> Config {
    let own = Spec::Process { name: "own".to_owned(), pid: std::process::id(), tree: false };
    Config {
        rate_hz,
        host_rate_hz: rate_hz,
        duration_s: Some(duration_s),
        policy: Policy::Other,
        with_host: true,
        specs: vec![own],
        mailbox: None,
        wait_for_targets: false,
        count_block: false,
        with_perf: false,
        tail: None,
    }
}

fn record(config: &Config, sink: impl Sink + 'static) -> Result<Footer, ProbeError> {
    session::record(config, vec![Box::new(sink)], &Arc::new(AtomicBool::new(false)))
}

/// Takes everything; each flush takes `pause`, as on a disk that is busy.
#[derive(Clone, Default)]
struct Slow {
    pause: Duration,
    rows: Arc<Mutex<Vec<(u32, u32, u64)>>>,
    targets: Arc<Mutex<Vec<Target>>>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Sink for Slow {
    fn begin(&mut self, _: &Header) -> Result<(), RecordError> {
        Ok(())
    }
    fn target(&mut self, target: &Target) -> Result<(), RecordError> {
        self.targets.lock().expect("no sink panicked").push(target.clone());
        Ok(())
    }
    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        self.events.lock().expect("no sink panicked").push(event.clone());
        Ok(())
    }
    fn row(&mut self, row: Row<'_>) {
        let known = self
            .targets
            .lock()
            .expect("no sink panicked")
            .iter()
            .any(|target| target.id == row.key.target);
        assert!(known, "a row of target {} came before the target", row.key.target);
        self.rows.lock().expect("no sink panicked").push((
            row.key.table,
            row.key.target,
            row.key.tick,
        ));
    }
    fn flush(&mut self, _: u64) -> Result<(), RecordError> {
        std::thread::sleep(self.pause);
        Ok(())
    }
    fn finish(&mut self, _: &Footer) -> Result<(), RecordError> {
        Ok(())
    }
}

#[test]
fn every_tick_of_the_grid_is_served_or_counted_as_missed() {
    let sink = Slow::default();
    let rows = Arc::clone(&sink.rows);
    let footer = record(&config(200.0, 0.5), sink).expect("recorded");
    let rows = rows.lock().expect("no sink panicked");
    let last = rows.iter().filter(|(table, ..)| *table == tables::TICK).map(|row| row.2).max();
    assert_eq!(footer.ticks + footer.missed_ticks, last.expect("ticks") + 1);
    // The newest of several deadlines that have passed is served, also where the end is among them.
    assert!(last.expect("ticks") <= 100 + footer.missed_ticks);
}

#[test]
fn all_host_tables_have_rows() {
    let sink = Slow::default();
    let rows = Arc::clone(&sink.rows);
    record(&config(10.0, 0.35), sink).expect("recorded");
    let rows = rows.lock().expect("no sink panicked");
    for table in [tables::CPU, tables::SYSTEM, tables::MEMORY, tables::INTERFACE, tables::PROCESS] {
        let name = tables::ALL[table as usize].name;
        assert!(rows.iter().any(|row| row.0 == table), "no row in {name}");
    }
}

#[test]
fn a_writer_that_cannot_keep_up_is_an_error_of_the_trace() {
    let pid = std::process::id();
    let specs =
        (0..40).map(|number| Spec::Process { name: format!("own{number}"), pid, tree: false });
    let config = Config { specs: specs.collect(), ..config(1000.0, 3.8) };
    let sink = Slow { pause: Duration::from_secs(4), ..Slow::default() };
    match record(&config, sink) {
        Err(ProbeError::Dropped { rows }) => assert!(rows > 0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_process_that_exits_ends_with_an_event_and_its_rows_stop() {
    let mut child = std::process::Command::new("sleep").arg("0.2").spawn().expect("sleep");
    let spec = Spec::Process { name: "short".to_owned(), pid: child.id(), tree: false };
    let sink = Slow::default();
    let (rows, events) = (Arc::clone(&sink.rows), Arc::clone(&sink.events));
    let reaper = std::thread::spawn(move || child.wait());
    let config = Config { with_host: false, specs: vec![spec], ..config(50.0, 0.6) };
    record(&config, sink).expect("recorded");
    reaper.join().expect("joined").expect("reaped");
    let events = events.lock().expect("no sink panicked");
    let ended: Vec<&Event> = events.iter().filter(|event| event.what == What::Vanished).collect();
    assert_eq!(ended.len(), 1, "{events:?}");
    let rows = rows.lock().expect("no sink panicked");
    let last = rows.iter().filter(|row| row.0 == tables::PROCESS).map(|row| row.2).max();
    assert!(last.expect("rows while it lived") < 25);
}

#[test]
fn a_tree_takes_in_children_that_come_later() {
    let script = "sleep 0.1; sleep 3 & wait";
    let mut parent = std::process::Command::new("sh").args(["-c", script]).spawn().expect("sh");
    let spec = Spec::Process { name: "tree".to_owned(), pid: parent.id(), tree: true };
    let sink = Slow::default();
    let targets = Arc::clone(&sink.targets);
    let config = Config { with_host: false, specs: vec![spec], ..config(20.0, 1.6) };
    record(&config, sink).expect("recorded");
    let pids = targets
        .lock()
        .expect("no sink panicked")
        .iter()
        .filter(|target| target.name == "tree")
        .count();
    for pid in tare_probe::discover::process::descendants(parent.id()) {
        let _ = std::process::Command::new("kill").arg(pid.to_string()).status();
    }
    parent.wait().expect("reaped");
    assert!(pids >= 2, "only {pids} of the tree's processes");
}

#[test]
fn a_target_that_is_not_there_is_refused_by_name() {
    let spec = Spec::Process { name: "ghost".to_owned(), pid: 4_194_304, tree: false };
    let config = Config { specs: vec![spec], ..config(10.0, 0.1) };
    match record(&config, Slow::default()) {
        Err(ProbeError::TargetNotFound { name, .. }) => assert_eq!(name, "ghost"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn with_wait_a_missing_target_is_an_event() {
    let spec = Spec::Process { name: "ghost".to_owned(), pid: 4_194_304, tree: false };
    let config = Config { specs: vec![spec], wait_for_targets: true, ..config(10.0, 0.2) };
    let sink = Slow::default();
    let events = Arc::clone(&sink.events);
    record(&config, sink).expect("recorded");
    assert!(
        events.lock().expect("no sink panicked").iter().any(|event| event.what == What::NotFound)
    );
}

/// A disk that is full after so many bytes.
struct Full {
    left: usize,
}

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.left -= bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A journal on such a disk.
struct FullJournal {
    bytes: usize,
    writer: Option<Writer<Full>>,
}

impl Sink for FullJournal {
    fn begin(&mut self, header: &Header) -> Result<(), RecordError> {
        self.writer =
            Some(Writer::new(Full { left: self.bytes }, Path::new("/full/journal"), header)?);
        Ok(())
    }
    fn target(&mut self, target: &Target) -> Result<(), RecordError> {
        self.writer.as_mut().expect("begun").target(target)
    }
    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        self.writer.as_mut().expect("begun").event(event)
    }
    fn row(&mut self, row: Row<'_>) {
        self.writer.as_mut().expect("begun").push(row);
    }
    fn flush(&mut self, upto: u64) -> Result<(), RecordError> {
        self.writer.as_mut().expect("begun").flush(upto)
    }
    fn finish(&mut self, footer: &Footer) -> Result<(), RecordError> {
        self.writer.as_mut().expect("begun").finish(footer)
    }
}

#[test]
fn a_full_disk_ends_the_recording_at_once_with_its_name() {
    let sink = FullJournal { bytes: 20_000, writer: None };
    let error = record(&config(100.0, 30.0), sink).expect_err("the disk is full");
    let text = error.to_string();
    assert!(text.contains("/full/journal") && text.contains("disk is full"), "{text}");
}
