//! What needs root: control groups, namespaces, tracing, a disk of a few kilobytes.
//!
//! `cargo test -p tare-bin --test root -- --ignored`, as root. Each test makes and removes its own
//! control groups.

mod groups;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use groups::{Group, PROBE, finish, number, rows, start, stop, text, wait_until};
use tare_record::parquet::read::Value;

fn last_number(out: &Path, column: &str) -> Option<i64> {
    rows(out, "cgroup").iter().filter_map(|row| number(row, column)).next_back()
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn cpu_of_a_group_is_what_its_process_used() {
    let group = Group::new("cpu");
    let home = tempfile::tempdir().expect("a directory");
    let out = home.path().join("trace");
    let path = format!("g=/{}", group.path);
    let own = format!("own={}", std::process::id());
    let arguments = ["--cgroup", &path, "--pid", &own, "--hz", "20", "--duration", "60"];
    let recording = start(&out, &arguments);
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; cat /proc/$$/schedstat";
    let output = group.shell(burn).output().expect("burnt");
    stop(recording);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let shell_ns: i64 =
        printed.split(' ').next().and_then(|word| word.parse().ok()).expect("schedstat");
    let used_ns = last_number(&out, "usage_ns").expect("usage");
    // The group has the `cat` on top, and lacks what the shell did before it entered.
    let apart = (used_ns - shell_ns).abs();
    assert!(shell_ns > 50_000_000, "the shell burnt too little to tell: {shell_ns}");
    assert!(apart < 20_000_000, "the group says {used_ns}, its shell {shell_ns}");
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn a_group_that_vanishes_ends_and_its_return_is_a_new_target() {
    let group = Group::new("gone");
    let home = tempfile::tempdir().expect("a directory");
    let out = home.path().join("trace");
    let path = format!("g=/{}", group.path);
    let recording = start(&out, &["--cgroup", &path, "--hz", "50", "--duration", "3.5"]);
    std::thread::sleep(Duration::from_millis(600));
    group.remove();
    std::thread::sleep(Duration::from_millis(700));
    group.make();
    finish(recording);
    let vanished = rows(&out, "event")
        .iter()
        .filter(|row| row["what"] == Value::Text("vanished".to_owned()))
        .count();
    assert_eq!(vanished, 1);
    let mut targets: Vec<i64> =
        rows(&out, "cgroup").iter().filter_map(|row| number(row, "target")).collect();
    targets.dedup();
    assert_eq!(targets.len(), 2, "before and after: {targets:?}");
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn five_hundred_groups_are_sampled_without_a_drop() {
    let group = Group::new("many");
    let children: Vec<Group> = (0..500).map(|number| group.child(&format!("c{number}"))).collect();
    let home = tempfile::tempdir().expect("a directory");
    let out = home.path().join("trace");
    let record = recorder(&out, &group, "--duration 2");
    // What a shell gives, of which five hundred groups would need seven times as much.
    finish(shell(&format!("ulimit -Sn 1024; {record}")).spawn().expect("tare-probe starts"));
    drop(children);
    let rows = rows(&out, "cgroup");
    let ticks = rows.iter().filter_map(|row| number(row, "tick")).max().expect("ticks") + 1;
    assert_eq!(rows.len() as i64 % 500, 0, "a tick has all groups");
    assert!(rows.len() as i64 >= 500 * (ticks - 2), "{} rows in {ticks} ticks", rows.len());
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// A shell's command that records a group's children.
fn recorder(out: &Path, group: &Group, more: &str) -> String {
    let out = out.display();
    format!("exec '{PROBE}' record --out '{out}' --children /{} --hz 5 {more}", group.path)
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn a_group_for_whose_files_there_is_no_room_is_refused_and_not_passed_over() {
    let group = Group::new("room");
    let children: Vec<Group> = (0..20).map(|number| group.child(&format!("c{number}"))).collect();
    let home = tempfile::tempdir().expect("a directory");
    let out = home.path().join("trace");
    let record = recorder(&out, &group, "--duration 1");
    let output = shell(&format!("ulimit -n 100; {record}")).output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("Too many open files"), "{}", text(&output));
    assert!(text(&output).contains("ulimit -Hn"), "{}", text(&output));
    let waiting = recorder(&out, &group, "--duration 2 --wait");
    finish(shell(&format!("ulimit -n 100; {waiting}")).spawn().expect("tare-probe starts"));
    drop(children);
    // Names of groups that are sampled, and of those that are named.
    let named = |table: &str, column: &str| -> std::collections::BTreeSet<String> {
        let texts = rows(&out, table).into_iter().filter_map(|mut row| match row.remove(column) {
            Some(Value::Text(text)) => text.split(':').next().map(str::to_owned),
            _ => None,
        });
        texts.filter(|name| name.starts_with('c') && name[1..].parse::<u8>().is_ok()).collect()
    };
    let (sampled, refused) = (named("target", "name"), named("event", "detail"));
    assert!(!sampled.is_empty() && !refused.is_empty());
    assert_eq!(sampled.union(&refused).count(), 20, "{sampled:?} {refused:?}");
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn children_of_one_name_are_all_sampled() {
    let (one, other) = (Group::new("one"), Group::new("other"));
    let (_a, _b) = (one.child("init.scope"), other.child("init.scope"));
    let home = tempfile::tempdir().expect("a directory");
    let out = home.path().join("trace");
    let paths = [&one, &other].map(|group| format!("/{}", group.path));
    let arguments =
        ["--children", &paths[0], "--children", &paths[1], "--hz", "5", "--duration", "1.5"];
    finish(start(&out, &arguments));
    let mut names: Vec<String> = rows(&out, "target")
        .iter()
        .filter(|row| row["kind"] == Value::Text("cgroup".to_owned()))
        .map(|row| match &row["name"] {
            Value::Text(name) => name.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    names.sort();
    assert_eq!(names, [format!("{}/init.scope", paths[1]), "init.scope".to_owned()]);
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn groups_that_come_and_go_below_a_parent_are_followed() {
    let group = Group::new("flux");
    let first = group.child("first");
    let home = tempfile::tempdir().expect("a directory");
    let out = home.path().join("trace");
    let path = format!("/{}", group.path);
    let recording = start(&out, &["--children", &path, "--hz", "20", "--duration", "4"]);
    std::thread::sleep(Duration::from_millis(500));
    drop(first);
    let second = group.child("second");
    finish(recording);
    drop(second);
    let names: std::collections::BTreeSet<String> = rows(&out, "cgroup")
        .iter()
        .filter_map(|row| match &row["name"] {
            Value::Text(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["first", "second"]);
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn a_group_that_is_being_made_is_opened_once_it_is_in_all_hierarchies() {
    let group = Group::new("making");
    let home = tempfile::tempdir().expect("a directory");
    let out = home.path().join("trace");
    let path = format!("/{}", group.path);
    let recording = start(&out, &["--children", &path, "--hz", "20", "--duration", "3.5"]);
    // Looks are a second apart: one of them falls between the first hierarchy and the others.
    std::thread::sleep(Duration::from_millis(500));
    let first = group.directories().remove(0).join("slow");
    fs::create_dir(&first).expect("made in one hierarchy");
    std::thread::sleep(Duration::from_millis(900));
    let child = group.child("slow");
    finish(recording);
    drop(child);
    let last = rows(&out, "cgroup").pop().expect("rows");
    for column in ["usage_ns", "memory_bytes", "pids"] {
        assert!(number(&last, column).is_some(), "{column} was not there when it was opened");
    }
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn a_full_disk_is_told_and_ends_with_a_failure() {
    let home = tempfile::tempdir().expect("a directory");
    let script = format!(
        "mount -t tmpfs -o size=64k tmpfs '{0}' && exec '{PROBE}' record --out '{0}/trace' --host --hz 200",
        home.path().display()
    );
    let output = Command::new("timeout")
        .args(["20", "unshare", "--mount", "sh", "-c", &script])
        .output()
        .expect("unshare runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("disk is full"), "{}", text(&output));
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn interfaces_of_a_namespace_end_with_the_process_that_lent_it() {
    let home = tempfile::tempdir().expect("a directory");
    let out = home.path().join("trace");
    let mut lender =
        Command::new("unshare").args(["--net", "sleep", "60"]).spawn().expect("unshare runs");
    let network = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    wait_until("the namespace", || network(&lender.id().to_string()) != network("self"));
    let space = format!("inner={}", lender.id());
    let recording = start(&out, &["--netns", &space, "--hz", "10", "--duration", "3.5"]);
    std::thread::sleep(Duration::from_secs(1));
    lender.kill().expect("SIGKILL");
    lender.wait().expect("reaped");
    finish(recording);
    let interfaces = rows(&out, "interface");
    assert!(interfaces.iter().all(|row| row["name"] == Value::Text("inner/lo".to_owned())));
    let last = interfaces.iter().filter_map(|row| number(row, "tick")).max().expect("rows");
    assert!((5..30).contains(&last), "the namespace was held until tick {last}");
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn performance_counters_of_a_group_count_its_context_switches() {
    let group = Group::new("perf");
    let home = tempfile::tempdir().expect("a directory");
    let out = home.path().join("trace");
    let path = format!("g=/{}", group.path);
    let recording = start(&out, &["--cgroup", &path, "--perf", "--hz", "20", "--duration", "60"]);
    group.shell("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01; done").status().expect("slept");
    stop(recording);
    let switches =
        rows(&out, "perf").iter().filter_map(|row| number(row, "context_switches")).next_back();
    assert!(switches.expect("counted") >= 10, "{switches:?}");
}
