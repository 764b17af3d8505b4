//! What `kill -9` leaves behind, state by state: each row is in the trace once, and nothing else is touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tare_probe::ring::{RowReceiver, RowSender, ring};
use tare_probe::tail::{TailFile, sweep};
use tare_record::header::{Footer, Header, Recovered, Target, TargetKind};
use tare_record::journal::{Entry, Reader, Writer, recover};
use tare_record::row::Key;
use tare_record::schema::Ticks;
use tare_record::tables::{self, tick};
use tare_record::tail::{self, TailFacts, file_name};
use tare_record::{RecordError, code};

const WORDS: usize = 1024;

fn header(tail: &TailFacts) -> Header {
    Header {
        trace_version: tare_record::TRACE_VERSION,
        probe_version: String::new(),
        rate_hz: 1.0,
        host_rate_hz: 1.0,
        period_ns: 1_000_000_000,
        ticks: Ticks { jiffy_ns: 4_000_000, user_hz: 100 },
        page_bytes: 4096,
        kernel: String::new(),
        cpus: 1,
        boot_id: tail.boot_id.clone(),
        scheduler: String::new(),
        scheduler_refused: None,
        cgroup_layout: String::new(),
        block_source: String::new(),
        block_refused: None,
        tail: Some(tail.clone()),
        tail_refused: None,
        started_monotonic_ns: 0,
        started_realtime_ns: 0,
    }
}

/// A recording by hand.
struct Recording {
    home: tempfile::TempDir,
    journal: PathBuf,
    tail: TailFile,
    sender: RowSender,
    receiver: RowReceiver,
    writer: Writer,
    ticks: u64,
}

impl Recording {
    fn begin() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let journal = home.path().join("journal.tare");
        let (tail, memory) =
            TailFile::create(Path::new(tail::DIRECTORY), &journal, WORDS).expect("a tail");
        let (sender, receiver) = ring(memory);
        let mut writer = Writer::create(&journal, &header(&tail.facts)).expect("a journal");
        let kind = TargetKind::Probe;
        let (name, detail) = (String::new(), String::new());
        let sources = std::collections::BTreeMap::new();
        let target = Target { id: 0, kind, name, detail, opened_ns: 0, sources };
        writer.target(&target).expect("reported");
        Self { home, journal, tail, sender, receiver, writer, ticks: 0 }
    }

    fn sample(&mut self, ticks: u64) {
        for _ in 0..ticks {
            let key = Key { table: tables::TICK, target: 0, tick: self.ticks };
            self.sender.send(key, &[self.ticks; tick::WIDTH]);
            self.ticks += 1;
        }
    }

    fn flush(&mut self) {
        let (end, writer) = (self.receiver.written(), &mut self.writer);
        self.receiver.drain(end, |row, _| writer.push(row)).expect("rows");
        writer.flush(end).expect("written");
    }

    /// Journal and tail as they are on disk and in memory now, and their paths; nobody records any more.
    fn kill(self) -> Killed {
        let tail_path = self.tail.facts.path.clone();
        let (journal, tail) = (bytes(&self.journal), bytes(&tail_path));
        Killed { journal_path: self.journal, tail_path, journal, tail, home: self.home }
    }
}

struct Killed {
    journal_path: PathBuf,
    tail_path: PathBuf,
    journal: Vec<u8>,
    tail: Vec<u8>,
    home: tempfile::TempDir,
}

impl Killed {
    /// As a crash left it.
    fn put_back(&self, journal: &[u8]) {
        assert!(self.journal_path.starts_with(self.home.path()));
        fs::write(&self.journal_path, journal).expect("written");
        fs::write(&self.tail_path, &self.tail).expect("written");
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.tail_path);
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).expect("readable")
}

/// Ticks of the rows in a journal, in order, and what was saved.
fn content(journal: &Path) -> (Vec<u64>, Vec<Recovered>) {
    let (mut ticks, mut recovered) = (Vec::new(), Vec::new());
    let mut reader = Reader::open(journal).expect("a journal");
    while let Some(entry) = reader.entry().expect("whole") {
        match entry {
            Entry::Rows { packed, .. } => {
                code::unpack(packed, |row| {
                    assert!(row.cells.iter().all(|cell| *cell == row.key.tick));
                    ticks.push(row.key.tick);
                })
                .expect("rows");
            }
            Entry::Recovered(found) => recovered.push(found),
            _ => {}
        }
    }
    (ticks, recovered)
}

#[test]
fn each_row_comes_once_whatever_byte_of_the_journal_a_crash_came_after() {
    let mut recording = Recording::begin();
    let begun = bytes(&recording.journal).len();
    for _ in 0..3 {
        recording.sample(9);
        recording.flush();
    }
    recording.sample(4);
    let killed = recording.kill();
    let all: Vec<u64> = (0..31).collect();
    for cut in begun..=killed.journal.len() {
        killed.put_back(&killed.journal[..cut]);
        drop(recover(&killed.journal_path).expect("recovered"));
        let (ticks, recovered) = content(&killed.journal_path);
        assert_eq!(ticks, all, "cut after byte {cut}");
        assert_eq!(recovered.len(), 1);
        assert_eq!(recovered[0].missing, None, "nothing was lost");
        assert!(!killed.tail_path.exists());

        drop(recover(&killed.journal_path).expect("a second time"));
        assert_eq!(content(&killed.journal_path), (ticks, recovered));
    }
}

#[test]
fn a_crash_while_rows_are_saved_doubles_and_loses_none() {
    let mut recording = Recording::begin();
    recording.sample(9);
    recording.flush();
    recording.sample(9);
    let killed = recording.kill();
    killed.put_back(&killed.journal);
    drop(recover(&killed.journal_path).expect("recovered"));
    let saved = bytes(&killed.journal_path);
    for cut in killed.journal.len()..=saved.len() {
        killed.put_back(&saved[..cut]);
        drop(recover(&killed.journal_path).expect("recovered"));
        let (ticks, recovered) = content(&killed.journal_path);
        assert_eq!(ticks, (0..18).collect::<Vec<_>>(), "cut after byte {cut}");
        assert_eq!(recovered.iter().filter(|one| one.missing.is_some()).count(), 0);
        assert!(!killed.tail_path.exists());
    }
}

#[test]
fn room_of_rows_in_the_journal_is_used_again_and_they_still_come_once() {
    let mut recording = Recording::begin();
    for _ in 0..20 {
        recording.sample(50);
        recording.flush();
        recording.receiver.release();
    }
    recording.sample(50);
    assert_eq!(recording.sender.dropped_rows(), 0);
    let killed = recording.kill();
    drop(recover(&killed.journal_path).expect("recovered"));
    assert_eq!(content(&killed.journal_path).0, (0..1050).collect::<Vec<_>>());
}

#[test]
fn a_row_that_was_not_published_and_one_that_was_damaged_end_what_is_saved() {
    let mut recording = Recording::begin();
    recording.sample(10);
    let mut killed = recording.kill();
    let row_bytes = 8 * tail::framed_words(tick::WIDTH);
    let at = 8 * tail::HEAD_WORDS + 7 * row_bytes + 40;
    killed.tail[at] ^= 1;
    killed.put_back(&killed.journal);
    drop(recover(&killed.journal_path).expect("recovered"));
    let (ticks, recovered) = content(&killed.journal_path);
    assert_eq!(ticks, (0..7).collect::<Vec<_>>());
    let missing = recovered[0].missing.as_deref().expect("reported");
    assert!(missing.contains("checksum"), "{missing}");

    killed.tail[at] ^= 1;
    let written = 8 * tail::head::WRITTEN;
    let position = (9 * tail::framed_words(tick::WIDTH)) as u64;
    killed.tail[written..][..8].copy_from_slice(&position.to_le_bytes());
    killed.put_back(&killed.journal);
    drop(recover(&killed.journal_path).expect("recovered"));
    let (ticks, recovered) = content(&killed.journal_path);
    assert_eq!(ticks, (0..9).collect::<Vec<_>>());
    assert_eq!(recovered[0].missing, None);
}

#[test]
fn a_recording_that_ended_well_is_not_touched_and_its_tail_goes() {
    let mut recording = Recording::begin();
    recording.sample(5);
    recording.flush();
    recording.writer.finish(&Footer::default()).expect("finished");
    let killed = recording.kill();
    drop(recover(&killed.journal_path).expect("whole"));
    assert_eq!(bytes(&killed.journal_path), killed.journal);
    assert!(!killed.tail_path.exists());
}

#[test]
fn a_journal_that_is_being_recorded_is_left_to_who_does() {
    let mut recording = Recording::begin();
    recording.sample(5);
    let before = bytes(&recording.journal);
    let refused = recover(&recording.journal).map(drop);
    assert!(matches!(refused, Err(RecordError::InUse { .. })), "{refused:?}");
    assert_eq!(bytes(&recording.journal), before);
    assert!(recording.tail.facts.path.exists());
    recording.tail.remove().expect("removed");
}

/// Recovers a journal whose header names `facts`; what it says is missing.
fn missing_with(facts: &TailFacts) -> String {
    let home = tempfile::tempdir().expect("a directory");
    let journal = home.path().join("journal.tare");
    drop(Writer::create(&journal, &header(facts)).expect("a journal"));
    drop(recover(&journal).expect("recovered"));
    let (_, recovered) = content(&journal);
    recovered[0].missing.clone().expect("reported")
}

#[test]
fn a_tail_of_another_boot_is_neither_read_nor_removed() {
    let mut recording = Recording::begin();
    recording.sample(5);
    let facts = recording.tail.facts.clone();
    let other = TailFacts { boot_id: "0f0e0d0c-0b0a-0908-0706-050403020100".into(), ..facts };
    assert!(missing_with(&other).contains("another boot"));
    assert!(other.path.exists());
    recording.tail.remove().expect("removed");
}

#[test]
fn only_the_journals_own_tail_is_ever_removed() {
    let mut recording = Recording::begin();
    recording.sample(5);
    let facts = recording.tail.facts.clone();
    let home = tempfile::tempdir().expect("a directory");

    let elsewhere = TailFacts { path: home.path().join(file_name(&facts.id)), ..facts.clone() };
    fs::copy(&facts.path, &elsewhere.path).expect("copied");
    assert!(missing_with(&elsewhere).contains("not where tails are"));
    assert!(elsewhere.path.exists());

    let id = "11111111-2222-3333-4444-555555555555".to_owned();
    let path = Path::new(tail::DIRECTORY).join(file_name(&id));
    let foreign = TailFacts { path: path.clone(), id, ..facts.clone() };
    fs::copy(&facts.path, &path).expect("copied");
    assert!(missing_with(&foreign).contains("not this journal's"));
    assert!(path.exists());
    fs::remove_file(&path).expect("removed");

    symlink(&facts.path, &path).expect("linked");
    assert!(missing_with(&foreign).contains("tare-probe-1111"));
    assert!(path.is_symlink() && facts.path.exists());
    fs::remove_file(&path).expect("removed");

    fs::create_dir(&path).expect("made");
    assert!(missing_with(&foreign).contains("no file of this user's"));
    fs::remove_dir(&path).expect("removed");

    assert!(missing_with(&foreign).contains("not there any more"));
    recording.tail.remove().expect("removed");
}

#[test]
fn only_tails_without_recorder_and_journal_are_swept() {
    let directory = Path::new(tail::DIRECTORY);
    let going_on = Recording::begin();
    sweep(directory);
    assert!(going_on.tail.facts.path.exists(), "it is being recorded");
    let killed = going_on.kill();
    sweep(directory);
    assert!(killed.tail_path.exists(), "its journal is there to be converted");
    fs::remove_file(&killed.journal_path).expect("removed");
    sweep(directory);
    assert!(!killed.tail_path.exists(), "nobody can want it");
}

#[test]
fn where_there_is_no_memory_file_system_there_is_no_tail() {
    let home = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let refused = TailFile::create(home.path(), &home.path().join("journal.tare"), WORDS);
    let error = refused.map(drop).expect_err("no tail on a disk");
    assert!(error.to_string().contains("memory"), "{error}");
    assert_eq!(fs::read_dir(home.path()).expect("listed").count(), 0, "nothing stays");
}
