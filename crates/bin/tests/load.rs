//! `tare-load` as its users meet it, against a server that answers what a test wants.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

const JOB: &str = "{format: 1, operations: [{name: get, steps: [{send: GET k}]}]}";

/// Serves each connection by `serve`, which also gets its number.
fn server(serve: fn(TcpStream, usize)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            std::thread::spawn(move || serve(stream, number));
        }
    });
    address
}

/// Answers `PING` rightly and everything else by `reply`, at most so often.
fn answer(stream: &mut TcpStream, reply: &[u8], most: usize) {
    let mut buffer = [0; 4096];
    for _ in 0..=most {
        let Ok(count @ 1..) = stream.read(&mut buffer) else { return };
        let pings = buffer[..count].windows(4).any(|word| word == b"PING");
        if stream.write_all(if pings { b"+PONG\r\n" } else { reply }).is_err() {
            return;
        }
    }
}

fn start(address: &str, more: &[&str]) -> Child {
    let job = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(job.path(), JOB).expect("written");
    let (_, job) = job.keep().expect("kept");
    let child = Command::new(env!("CARGO_BIN_EXE_tare-load"))
        .args(["run", "--protocol", "redis", "--address", address, "--job"])
        .arg(&job)
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(2));
        let _ = std::fs::remove_file(job);
    });
    child
}

/// `tare-load` with these arguments, and what it said.
fn call(words: &[&str]) -> (Option<i32>, String, String) {
    let child = Command::new(env!("CARGO_BIN_EXE_tare-load"))
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    end(child)
}

fn end(child: Child) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).expect("it runs");
}

#[test]
fn a_run_with_nothing_but_errors_is_no_success() {
    let address = server(|mut stream, _| answer(&mut stream, b"-ERR no\r\n", usize::MAX - 1));
    let (code, out, said) = end(start(&address, &["--operations", "10"]));
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("none of 10 operations had a right reply"), "{said}");
    assert!(out.contains("\"ERR no\""));
}

#[test]
fn an_interrupt_ends_the_set_up_at_once() {
    let address = server(|stream, _| {
        std::thread::sleep(Duration::from_secs(100));
        drop(stream);
    });
    let child = start(&address, &["--connect-limit", "90"]);
    std::thread::sleep(Duration::from_millis(500));
    interrupt(&child);
    let (code, out, _) = end(child);
    assert_eq!((code, out.as_str()), (Some(130), ""));
}

#[test]
fn an_interrupt_does_not_wait_for_a_server_that_is_away() {
    // The first connection answers three requests; later ones get no answer at all.
    let address = server(|mut stream, number| match number {
        0 => answer(&mut stream, b"$1\r\nv\r\n", 3),
        _ => std::thread::sleep(Duration::from_secs(100)),
    });
    let child =
        start(&address, &["--duration", "80", "--connect-limit", "90", "--reconnect-limit", "90"]);
    std::thread::sleep(Duration::from_millis(700));
    interrupt(&child);
    let (code, out, _) = end(child);
    assert_eq!(code, Some(130));
    assert!(out.contains("\"how\": \"interrupted\"") && out.contains("\"right\": 3"), "{out}");
}

#[test]
fn what_this_machine_lacks_is_not_said_of_the_server() {
    let address = server(|mut stream, _| {
        std::thread::sleep(Duration::from_millis(5));
        answer(&mut stream, b"$1\r\nv\r\n", 20);
        std::thread::sleep(Duration::from_millis(5));
    });
    let child = start(&address, &["--duration", "30", "--rate", "100"]);
    std::thread::sleep(Duration::from_millis(100));
    let none = Rlimit { current: Some(3), maximum: Some(3) };
    prlimit(Some(Pid::from_child(&child)), Resource::Nofile, none).expect("lowered");
    let (code, out, said) = end(child);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{said}");
    assert!(said.contains("this machine failed during the run: Too many open files"), "{said}");
}

#[test]
fn the_rate_that_a_server_sustains_is_searched_for() {
    // Each of two connections answers a request in 10 ms: 200 a second, and hardly 2 ms at any rate.
    let address = server(|mut stream, _| {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let pings = buffer[..count].windows(4).any(|word| word == b"PING");
            std::thread::sleep(Duration::from_millis(if pings { 0 } else { 10 }));
            if stream.write_all(if pings { b"+PONG\r\n" } else { b"$1\r\nv\r\n" }).is_err() {
                return;
            }
        }
    });
    let directory = tempfile::tempdir().expect("a directory");
    let job = directory.path().join("job.yaml");
    std::fs::write(&job, JOB).expect("written");
    let mut words = vec!["climb", "--protocol", "redis", "--address", &address, "--job"];
    words.push(job.to_str().expect("text"));
    words.extend(["--connections", "2", "--quantile", "0.5", "--from", "50"]);
    words.extend(["--resolution", "0.3", "--reply-limit", "3", "--drain-limit", "3"]);
    let (code, out, said) =
        call(&[words.as_slice(), &["--within-ms", "100", "--duration", "0.5"]].concat());
    assert_eq!(code, Some(0), "{said}");
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    // With half a second of arrivals, half of them wait for less than 100 ms up to 330 a second.
    let rate = found["rate_per_s"].as_f64().expect("a rate");
    assert!((50.0..=400.0).contains(&rate), "{out}");
    assert!(found["failed_per_s"].as_f64().is_some_and(|failed| failed > rate), "{out}");
    assert!(said.contains("held") && said.contains("did not hold"), "{said}");
    let (code, out, said) =
        call(&[words.as_slice(), &["--within-ms", "2", "--duration", "0.1"]].concat());
    assert_eq!(code, Some(5), "{out}");
    assert!(said.ends_with("tare-load: no rate kept within the limit\n"), "{said}");
    let (code, _, said) = call(&[words.as_slice(), &["--within-ms", "2", "--rate", "7"]].concat());
    assert_eq!((code, said.contains("leave --rate out")), (Some(2), true), "{said}");
}

#[test]
fn two_runs_are_compared() {
    let address = server(|mut stream, _| answer(&mut stream, b"$1\r\nv\r\n", usize::MAX - 1));
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).to_str().expect("text").to_owned();
    for (name, rate) in [("a.json", "200"), ("b.json", "100")] {
        let options = ["--duration", "1", "--window", "0.1", "--rate", rate];
        let (code, out, said) = end(start(&address, &options));
        assert_eq!(code, Some(0), "{said}");
        std::fs::write(at(name), out).expect("written");
    }
    let (code, out, said) = call(&["compare", &at("a.json"), &at("b.json")]);
    assert_eq!(code, Some(0), "{said}");
    let compared: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let throughput = &compared["metrics"][0];
    let ratio = throughput["ratio"].as_f64().expect("a ratio");
    assert!((0.45..0.55).contains(&ratio), "{out}");
    let (low, high) = (&throughput["interval"][0], &throughput["interval"][1]);
    assert!(low.as_f64() < Some(ratio) && Some(ratio) < high.as_f64(), "{out}");
    std::fs::write(at("c.json"), "{}").expect("written");
    let (code, _, said) = call(&["compare", &at("a.json"), &at("c.json")]);
    assert_eq!(code, Some(2));
    assert!(said.contains("c.json: this is no document of `tare-load run --json`"), "{said}");
}

#[test]
fn the_manual_and_completions_name_every_command() {
    for words in [&["man"][..], &["completion", "bash"], &["completion", "fish"]] {
        let (code, out, said) = call(words);
        assert_eq!((code, said.as_str()), (Some(0), ""));
        for command in ["run", "load", "climb", "compare", "plan"] {
            assert!(out.contains(command), "{words:?}: {command}");
        }
    }
}
