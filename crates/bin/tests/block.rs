//! Block requests of control groups, counted by the tracing program: needs root and a kernel with BTF.
//!
//! Beside others' requests a device has no room, gives requests back, and they are issued again. Interrupts then also
//! complete several at once.

mod groups;

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use groups::{Group, number, rows, start, stop, text, wait_until};
use tare_record::parquet::read::Value;

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn block_requests_are_counted_for_the_group_and_its_parent() {
    let group = Group::new("block");
    let child = group.child("inner");
    let home = tempfile::tempdir_in("/var/tmp").expect("a directory on a disk");
    let out = home.path().join("trace");
    let (outer, inner) = (format!("outer=/{}", group.path), format!("inner=/{}", child.path));
    let arguments = ["--cgroup", &outer, "--cgroup", &inner, "--hz", "20", "--duration", "60"];
    let recording = start(&out, &arguments);
    let file = home.path().join("file");
    let script = format!(
        "dd if=/dev/zero of={0} bs=1M count=16 oflag=direct 2>/dev/null; dd if={0} of=/dev/null bs=1M count=8 iflag=direct 2>/dev/null",
        file.display()
    );
    child.shell(&script).status().expect("written and read");
    stop(recording);
    for name in ["outer", "inner"] {
        let mine: Vec<_> = rows(&out, "cgroup")
            .into_iter()
            .filter(|row| row["name"] == Value::Text(name.to_owned()))
            .collect();
        let last = mine.last().expect("rows");
        let written = number(last, "block_written_bytes").expect("counted");
        let read = number(last, "block_read_bytes").expect("counted");
        // The file's metadata comes on top.
        assert!((16 << 20..(16 << 20) + (1 << 20)).contains(&written), "{name}: {written}");
        assert!((8 << 20..(8 << 20) + (1 << 20)).contains(&read), "{name}: {read}");
    }
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn beside_others_on_the_disk_no_byte_is_lost_or_counted_twice() {
    const ROUNDS: i64 = 20;
    const MIB: i64 = 16;
    let group = Group::new("beside");
    let home = tempfile::tempdir_in("/var/tmp").expect("a directory on a disk");
    let out = home.path().join("trace");
    let file = home.path().join("file");
    let write = |options: &str| {
        format!("dd if=/dev/zero of={} bs=1M count={MIB} {options} 2>/dev/null", file.display())
    };
    // Its blocks are there before, so that no metadata comes on top.
    Command::new("sh").args(["-c", &write("conv=fsync")]).status().expect("written");
    let _others: Vec<_> = [
        "bs=1M count=64 oflag=direct",
        "bs=64k count=50 conv=fsync",
        "bs=4k count=999 oflag=direct",
    ]
    .iter()
    .enumerate()
    .map(|(at, options)| Neighbour::new(&home.path().join(format!("other{at}")), options))
    .collect();
    let named = format!("g=/{}", group.path);
    let recording = start(&out, &["--cgroup", &named, "--hz", "20", "--duration", "60"]);
    for _ in 0..ROUNDS {
        group.shell(&write("oflag=direct conv=notrunc")).status().expect("written");
    }
    stop(recording);
    let last = rows(&out, "cgroup").pop().expect("rows");
    let written = number(&last, "block_written_bytes").expect("counted");
    assert!((written - ((ROUNDS * MIB) << 20)).abs() < 1 << 19, "{written}");
}

/// Writes a file over and over, until this goes.
struct Neighbour(Child);

impl Neighbour {
    fn new(file: &Path, options: &str) -> Self {
        let script = format!(
            "while :; do dd if=/dev/zero of={} {options} 2>/dev/null; done",
            file.display()
        );
        let child = Command::new("setsid").args(["sh", "-c", &script]).spawn();
        Self(child.expect("started"))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let all = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &all]).status();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn a_group_that_is_two_targets_is_counted_for_both_from_when_each_was_opened() {
    let group = Group::new("twice");
    let child = group.child("db");
    let home = tempfile::tempdir_in("/var/tmp").expect("a directory on a disk");
    let (out, targets) = (home.path().join("trace"), home.path().join("targets"));
    fs::write(&targets, "").expect("no targets yet");
    let asked = format!(
        "--cgroup named=/{} --children /{} --targets {} --hz 20 --duration 60",
        child.path,
        group.path,
        targets.display()
    );
    let recording = start(&out, &asked.split(' ').collect::<Vec<_>>());
    let write = |mib: u32| {
        let file = home.path().join("file");
        let script = format!(
            "dd if=/dev/zero of={} bs=1M count={mib} oflag=direct 2>/dev/null",
            file.display()
        );
        child.shell(&script).status().expect("written");
    };
    write(16);
    fs::write(&targets, format!("cgroup later=/{}\n", child.path)).expect("handed in");
    Command::new("kill").args(["-HUP", &recording.id().to_string()]).status().expect("signalled");
    // A target stands in the journal once it is open.
    wait_until("the target in the journal", || {
        let journal = fs::read(out.join("journal.tare")).expect("a journal");
        String::from_utf8_lossy(&journal).contains(r#""name":"later""#)
    });
    write(4);
    stop(recording);
    // A file's metadata comes on top.
    for (name, mib) in [("named", 20), ("db", 20), ("later", 4)] {
        let name = Value::Text(name.to_owned());
        let last = rows(&out, "cgroup").into_iter().rev().find(|row| row["name"] == name);
        let written = number(&last.expect("rows"), "block_written_bytes").expect("counted");
        assert!((mib << 20..(mib << 20) + (1 << 20)).contains(&written), "{name:?}: {written}");
    }
}

#[test]
#[ignore = "needs root; `make test-probe-root` runs it"]
fn bytes_of_a_loop_device_are_counted_once_at_the_disk_below() {
    let group = Group::new("loop");
    let home = tempfile::tempdir_in("/var/tmp").expect("a directory on a disk");
    let (out, file) = (home.path().join("trace"), home.path().join("file"));
    fs::File::create(&file).and_then(|file| file.set_len(64 << 20)).expect("a file");
    let device = Loop::over(&file);
    let named = format!("g=/{}", group.path);
    let recording = start(&out, &["--cgroup", &named, "--hz", "20", "--duration", "60"]);
    let script =
        format!("dd if=/dev/zero of={} bs=1M count=16 oflag=direct 2>/dev/null", device.path);
    group.shell(&script).status().expect("written");
    stop(recording);
    let last = rows(&out, "cgroup").pop().expect("rows");
    let written = number(&last, "block_written_bytes").expect("counted");
    assert!((16 << 20..(16 << 20) + (2 << 20)).contains(&written), "{written}");
}

/// A loop device without a cache of its own; it goes when this goes.
struct Loop {
    path: String,
}

impl Loop {
    fn over(file: &Path) -> Self {
        let arguments = ["--find", "--show", "--direct-io=on"];
        let output = Command::new("losetup").args(arguments).arg(file).output().expect("losetup");
        assert!(output.status.success(), "{}", text(&output));
        Self { path: String::from_utf8_lossy(&output.stdout).trim().to_owned() }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}
