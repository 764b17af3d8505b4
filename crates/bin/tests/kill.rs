//! Recordings that are killed, or converted while they go on: what is lost, what is left, what is said.

mod recording;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use recording::{numbers, out, probe, start, text, trace, wait_for};

#[test]
fn kill_9_costs_at_most_the_last_second() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let mut child = start(&["record", "--out", &name, "--host", "--hz", "100"]);
    std::thread::sleep(Duration::from_millis(2700));
    let killed_ns = tare_probe::clock::monotonic_ns() as i64;
    child.kill().expect("SIGKILL");
    child.wait().expect("reaped");
    assert!(!directory.join("trace.json").exists());

    let output = probe(&["convert", &name]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("cut short"), "{}", text(&output.stderr));
    assert_eq!(trace(&directory)["complete"], false);
    let woke = numbers(&directory, "tick", "woke_ns");
    let lost_ns = killed_ns - woke.last().expect("ticks");
    assert!((0..1_000_000_000).contains(&lost_ns), "lost {lost_ns} ns");
    assert!(woke.len() > 100);
}

/// Tails of this machine, whoever's.
fn tails() -> std::collections::BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(tare_record::tail::DIRECTORY).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "tail"))
        .collect()
}

#[test]
fn kill_9_at_any_moment_leaves_no_tick_out_and_none_twice() {
    for turn in 0..12_u64 {
        let home = tempfile::tempdir().expect("a directory");
        let (directory, name) = out(&home);
        let own = format!("own={}", std::process::id());
        let mut child = start(&["record", "--out", &name, "--pid", &own, "--hz", "1000"]);
        wait_for(&directory.join("journal.tare"));
        std::thread::sleep(Duration::from_millis(200 + 83 * turn));
        child.kill().expect("SIGKILL");
        let killed_ns = tare_probe::clock::monotonic_ns() as i64;
        child.wait().expect("reaped");
        let output = probe(&["convert", &name, "--keep-journal"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("are saved"), "{}", text(&output.stderr));
        for _ in 0..2 {
            let ticks = numbers(&directory, "tick", "tick");
            let missed: i64 = numbers(&directory, "tick", "missed_ticks").iter().sum();
            assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "a tick came twice");
            assert_eq!(ticks.len() as i64 + missed, ticks.last().expect("ticks") + 1);
            let lost_ns = killed_ns - numbers(&directory, "tick", "woke_ns").last().expect("ticks");
            assert!((0..1_000_000_000).contains(&lost_ns), "lost {lost_ns} ns");
            probe(&["convert", &name]);
        }
    }
}

#[test]
fn a_slow_recording_that_is_killed_has_all_its_ticks_and_leaves_no_tail() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let mut child = start(&["record", "--out", &name, "--host", "--hz", "4"]);
    wait_for(&directory.join("journal.tare"));
    std::thread::sleep(Duration::from_millis(3100));
    let journal = std::fs::metadata(directory.join("journal.tare")).expect("a journal").len();
    std::thread::sleep(Duration::from_millis(1100));
    let later = std::fs::metadata(directory.join("journal.tare")).expect("a journal").len();
    child.kill().expect("SIGKILL");
    child.wait().expect("reaped");
    assert_eq!(journal, later, "the writer was woken before ten seconds had passed");
    probe(&["convert", &name]);
    let ticks = numbers(&directory, "tick", "tick");
    assert!(ticks.last().expect("ticks") >= &15, "{ticks:?}");
    let header = &trace(&directory)["header"];
    let tail = PathBuf::from(header["tail"]["path"].as_str().expect("it had a tail"));
    assert!(!tails().contains(&tail), "the tail stays behind");
}

#[test]
fn a_recording_that_ends_leaves_no_tail_and_says_of_no_loss() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    probe(&["record", "--out", &name, "--host", "--hz", "20", "--duration", "0.6", "--no-convert"]);
    let output = probe(&["convert", &name]);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
    let trace = trace(&directory);
    assert_eq!((&trace["complete"], &trace["recovered"]), (&true.into(), &serde_json::Value::Null));
    let tail = PathBuf::from(trace["header"]["tail"]["path"].as_str().expect("it had a tail"));
    assert!(!tails().contains(&tail), "the tail stays behind");
}

#[test]
fn a_recording_that_goes_on_is_not_converted() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let mut child = start(&["record", "--out", &name, "--host", "--hz", "20"]);
    wait_for(&directory.join("journal.tare"));
    std::thread::sleep(Duration::from_millis(300));
    let refused = probe(&["convert", &name]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("being recorded"), "{}", text(&refused.stderr));
    Command::new("kill").arg(child.id().to_string()).status().expect("kill");
    assert!(child.wait().expect("reaped").success());
    assert_eq!(trace(&directory)["complete"], true);
}

#[test]
fn a_journal_of_version_1_still_converts() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    std::fs::create_dir(&directory).expect("made");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/live");
    std::fs::copy(kept.join("journal.tare"), directory.join("journal.tare")).expect("copied");
    let output = probe(&["convert", &name]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for (table, column) in [("tick", "woke_ns"), ("cgroup", "usage_ns")] {
        assert_eq!(numbers(&directory, table, column), numbers(&kept, table, column));
    }
}
