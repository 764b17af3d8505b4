//! The program as its users meet it, on the machine that runs the tests.

mod recording;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use recording::{numbers, out, probe, start, text, trace, wait_for, wait_until};

#[test]
fn a_recording_becomes_parquet_with_all_its_ticks() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let own = format!("own={}", std::process::id());
    let arguments =
        ["record", "--out", &name, "--host", "--pid", &own, "--hz", "50", "--duration", "1"];
    let output = probe(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));

    let trace = trace(&directory);
    assert_eq!(trace["complete"], true);
    let ticks = numbers(&directory, "tick", "tick");
    let missed: i64 = numbers(&directory, "tick", "missed_ticks").iter().sum();
    assert_eq!(ticks.len() as i64 + missed, ticks.last().expect("ticks") + 1);
    assert_eq!(trace["footer"]["ticks"], ticks.len());
    assert!(ticks.is_sorted());
    assert!(!numbers(&directory, "process", "cpu_ns").is_empty());
    assert!(
        numbers(&directory, "cpu", "user_ticks").len() >= 2 * 10,
        "host at 10 Hz, two rows or more"
    );
    assert!(!directory.join("journal.tare").exists());
}

#[test]
fn windows_are_ordered_and_lie_within_their_tick() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let own = format!("own={}", std::process::id());
    probe(&["record", "--out", &name, "--pid", &own, "--hz", "100", "--duration", "0.3"]);
    let t0 = numbers(&directory, "process", "stat_t0_ns");
    let t1 = numbers(&directory, "process", "stat_t1_ns");
    assert!(t0.len() > 10);
    assert!(t0.iter().zip(&t1).all(|(t0, t1)| t0 <= t1));
    let (woke, done) =
        (numbers(&directory, "tick", "woke_ns"), numbers(&directory, "tick", "done_ns"));
    let inside = woke.iter().zip(&done).zip(t0.iter().zip(&t1));
    assert!(inside.into_iter().all(|((woke, done), (t0, t1))| woke <= t0 && t1 <= done));
}

#[test]
fn sigterm_ends_a_slow_recording_at_once_and_whole() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let mut child = start(&["record", "--out", &name, "--host", "--hz", "0.2"]);
    std::thread::sleep(Duration::from_millis(700));
    Command::new("kill").arg(child.id().to_string()).status().expect("kill");
    assert!(child.wait().expect("reaped").success());
    assert_eq!(trace(&directory)["complete"], true);
    assert_eq!(numbers(&directory, "tick", "tick"), [0], "the next tick was not waited for");
    assert_eq!(trace(&directory)["footer"]["ended_by"], "signal");
}

#[test]
fn a_target_that_is_handed_in_is_sampled_from_then_on() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let file = home.path().join("targets");
    let listed = file.display().to_string();
    let mut child = start(&[
        "record",
        "--out",
        &name,
        "--host",
        "--targets",
        &listed,
        "--hz",
        "50",
        "--duration",
        "9",
    ]);
    wait_for(&directory.join("journal.tare"));
    std::fs::write(&file, format!("pid own={}\n", std::process::id())).expect("a file");
    let hang_up = |signal: &str| {
        Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
    };
    hang_up("-HUP");
    // A target stands in the journal before its first row is sampled.
    wait_until("the target in the journal", || {
        let journal = std::fs::read(directory.join("journal.tare")).expect("a journal");
        text(&journal).contains(r#""name":"own""#)
    });
    std::thread::sleep(Duration::from_millis(300));
    hang_up("-TERM");
    assert!(child.wait().expect("reaped").success());
    let sampled = numbers(&directory, "process", "cpu_ns").len();
    let missed: i64 = numbers(&directory, "tick", "missed_ticks").iter().sum();
    assert!(sampled as i64 + missed >= 10, "{sampled} samples in 0.3 s at 50 Hz");
    assert_eq!(trace(&directory)["footer"]["ended_by"], "signal");
}

#[test]
fn a_damaged_journal_is_refused_and_can_be_salvaged() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    probe(&["record", "--out", &name, "--host", "--hz", "20", "--duration", "1.6", "--no-convert"]);
    let journal = directory.join("journal.tare");
    let mut bytes = std::fs::read(&journal).expect("journal");
    let middle = bytes.len() * 3 / 4;
    bytes[middle] ^= 0x10;
    std::fs::write(&journal, &bytes).expect("written");

    let refused = probe(&["convert", &name]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("damaged"), "{}", text(&refused.stderr));
    let salvaged = probe(&["convert", &name, "--salvage"]);
    assert!(salvaged.status.success(), "{}", text(&salvaged.stderr));
    assert_eq!(trace(&directory)["complete"], false);
    assert!(!numbers(&directory, "tick", "tick").is_empty());
    assert!(journal.exists(), "a damaged journal is not thrown away");
}

#[test]
fn a_directory_with_a_recording_is_not_overwritten() {
    let home = tempfile::tempdir().expect("a directory");
    let (_, name) = out(&home);
    assert!(probe(&["record", "--out", &name, "--host", "--duration", "0.1"]).status.success());
    let again = probe(&["record", "--out", &name, "--host", "--duration", "0.1"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("another --out"), "{}", text(&again.stderr));
}

#[test]
fn a_target_that_is_not_there_ends_with_2_and_leaves_no_directory() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let output =
        probe(&["record", "--out", &name, "--cgroup", "db=/no/such/group", "--duration", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("db: no control group at /no/such/group"),
        "{}",
        text(&output.stderr)
    );
    assert!(!directory.exists());
}

#[test]
fn a_port_that_is_taken_ends_with_2_and_leaves_no_directory() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    let output = probe(&["record", "--out", &name, "--duration", "1", "--prometheus", &address]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("another --prometheus"), "{}", text(&output.stderr));
    assert!(!directory.exists());
}

#[test]
fn two_groups_of_one_name_are_refused_and_none_is_passed_over() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let output = probe(&["record", "--out", &name, "--cgroup", "a=pid:1", "--cgroup", "a=/docker"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("--cgroup: \"a\" is used twice"),
        "{}",
        text(&output.stderr)
    );
    assert!(!directory.exists());
}

#[test]
fn converting_what_is_converted_or_no_recording_says_so() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    assert!(probe(&["record", "--out", &name, "--host", "--duration", "0.1"]).status.success());
    let again = probe(&["convert", &name]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("already converted"), "{}", text(&again.stderr));
    let parent = directory.parent().expect("a parent").display().to_string();
    let empty = probe(&["convert", &parent]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(text(&empty.stderr).contains("contains no recording"), "{}", text(&empty.stderr));
}

#[test]
fn an_export_prints_rates_with_their_bounds() {
    let home = tempfile::tempdir().expect("a directory");
    let (_, name) = out(&home);
    let own = format!("own={}", std::process::id());
    probe(&["record", "--out", &name, "--pid", &own, "--hz", "10", "--duration", "0.55"]);
    let output = probe(&["export", &name, "--table", "process", "--rates"]);
    let page = text(&output.stdout);
    let mut lines = page.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let at = |name| head.iter().position(|known| *known == name).expect("a column");
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 5, "six ticks have five differences: {page}");
    for row in rows {
        let number = |name| row[at(name)].parse::<f64>().expect("a number");
        assert!(number("user_ticks_per_s_low") <= number("user_ticks_per_s"));
        assert!(number("user_ticks_per_s") < number("user_ticks_per_s_high"));
    }
    let json = probe(&["export", &name, "--table", "tick", "--format", "jsonl"]);
    for line in text(&json.stdout).lines() {
        serde_json::from_str::<BTreeMap<String, serde_json::Value>>(line).expect("JSON");
    }
}

#[test]
fn export_without_a_table_lists_what_there_is() {
    let home = tempfile::tempdir().expect("a directory");
    let (_, name) = out(&home);
    let output = probe(&["export", &name]);
    assert_eq!(output.status.code(), Some(2), "no such directory");
    probe(&["record", "--out", &name, "--hz", "20", "--duration", "0.5"]);
    let listed = text(&probe(&["export", &name]).stdout);
    assert!(listed.starts_with("table,rows\n"), "{listed}");
    assert!(
        listed.contains("\ntick,") && listed.contains("\ncpu,"),
        "the host, as nothing was named: {listed}"
    );
    let output = probe(&["export", &name, "--table", "nothing"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("lists the tables"));
}

#[test]
fn what_cannot_be_exported_says_what_to_do() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    probe(&["record", "--out", &name, "--hz", "20", "--duration", "0.2", "--no-convert"]);
    for arguments in [&["export", &name][..], &["export", &name, "--table", "cpu"]] {
        let output = probe(arguments);
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert!(said.contains(&format!("`tare-probe convert {name}` makes them")), "{said}");
    }
    let journal = directory.join("journal.tare");
    let whole = std::fs::metadata(&journal).expect("a journal").len();
    let file = std::fs::OpenOptions::new().write(true).open(&journal).expect("a journal");
    file.set_len(whole - 50).expect("cut");
    assert!(probe(&["convert", &name]).status.success());
    let said = text(&probe(&["export", &name, "--table", "cpu"]).stderr);
    assert!(said.contains("the trace is not complete"), "{said}");

    std::fs::write(directory.join("cpu.parquet"), "foreign").expect("written");
    let output = probe(&["export", &name, "--table", "cpu"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("no whole table") && !said.contains("is kept"), "{said}");
}

#[test]
fn a_journal_that_was_cut_within_its_header_holds_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    std::fs::create_dir(&directory).expect("made");
    std::fs::write(directory.join("journal.tare"), b"TAREPRB\n\x02\0\0\0\x40\0").expect("written");
    let output = probe(&["convert", &name]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("nothing was recorded") && !said.contains("salvage"), "{said}");
}

#[test]
fn files_that_somebody_else_put_there_are_not_overwritten() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    std::fs::create_dir(&directory).expect("made");
    std::fs::write(directory.join("cpu.parquet"), "mine").expect("written");
    let output = probe(&["record", "--out", &name, "--duration", "0.1"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(directory.join("cpu.parquet")).expect("kept"), b"mine");
}

#[test]
fn a_recording_takes_as_long_as_it_was_asked_to_with_a_tick_at_its_end() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let began = std::time::Instant::now();
    probe(&["record", "--out", &name, "--hz", "1", "--duration", "1"]);
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(numbers(&directory, "tick", "tick").last(), Some(&1));
    let slow = home.path().join("slow").display().to_string();
    let began = std::time::Instant::now();
    probe(&["record", "--out", &slow, "--hz", "0.1", "--duration", "0.6"]);
    assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
}

#[test]
fn rates_that_cannot_be_kept_are_refused() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    for (arguments, wanted) in [
        (["--hz", "10", "--host-hz", "100"], "give --hz 100 too"),
        (["--hz", "-5", "--duration", "1"], "give 0.1 to 1000"),
        (["--hz", "1", "--duration", "-1"], "give more than 0"),
    ] {
        let output = probe(&[&["record", "--out", &name], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(wanted), "{}", text(&output.stderr));
        assert!(!directory.exists());
    }
}

#[test]
fn a_handed_target_that_is_not_there_is_told() {
    let home = tempfile::tempdir().expect("a directory");
    let (directory, name) = out(&home);
    let file = home.path().join("targets");
    let listed = file.display().to_string();
    let mut child =
        start(&["record", "--out", &name, "--host", "--targets", &listed, "--hz", "20"]);
    wait_for(&directory.join("journal.tare"));
    std::fs::write(&file, "cgroup ghost=/no/such/group\n").expect("a file");
    let signal = |signal: &str| {
        Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
    };
    signal("-HUP");
    wait_until("what is missing in the journal", || {
        let journal = std::fs::read(directory.join("journal.tare")).expect("a journal");
        text(&journal).contains("ghost: no control group at /no/such/group")
    });
    signal("-TERM");
    assert!(child.wait().expect("reaped").success());
}

#[test]
fn the_newest_values_are_served_in_openmetrics() {
    let own = format!("own={}", std::process::id());
    let arguments =
        ["serve", "--prometheus", ":0", "--host", "--pid", &own, "--hz", "10", "--duration", "20"];
    let mut child = start(&arguments);
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("stderr");
    let mut byte = [0];
    while !said.contains("/metrics") && stderr.read(&mut byte).is_ok_and(|bytes| bytes == 1) {
        said.push(char::from(byte[0]));
    }
    let address =
        said.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("address");
    assert!(address.starts_with("127.0.0.1:"), "{said}");
    std::thread::sleep(Duration::from_millis(900));
    let mut connection = TcpStream::connect(address).expect("connects");
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("asked");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("answered");
    Command::new("kill").arg(child.id().to_string()).status().expect("kill");
    assert!(child.wait().expect("reaped").success());

    assert!(answer.contains("application/openmetrics-text"));
    assert!(answer.ends_with("# EOF\n"));
    for wanted in
        ["tare_cpu_steal_seconds_total{name=\"all\"", "tare_process_cpu_seconds_total{name=\"own\""]
    {
        assert!(answer.contains(wanted), "{wanted} is not in\n{answer}");
    }
}

#[test]
fn live_prints_a_picture_without_a_terminal() {
    let output = probe(&["live", "--host", "--hz", "10", "--duration", "2.3"]);
    let page = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(page.contains("CPU % of one") && page.contains("steal"), "{page}");
    assert!(page.contains('±'), "{page}");
}

#[test]
fn live_shows_nothing_of_what_could_not_begin_and_says_that_nothing_is_there_yet() {
    let output = probe(&["live", "--cgroup", "db=/no/such/group", "--duration", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    let arguments = ["live", "--cgroup", "db=/no/such/group", "--wait", "--duration", "1.3"];
    let page = text(&probe(&arguments).stdout);
    assert!(page.contains("no target exists"), "{page}");
}

#[test]
fn help_shows_examples() {
    let page = text(&probe(&["--help"]).stdout);
    for word in ["record", "live", "serve", "export", "convert", "Examples:"] {
        assert!(page.contains(word), "{word}");
    }
}
