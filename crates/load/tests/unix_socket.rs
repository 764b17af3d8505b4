//! Servers that are reached over a Unix socket.

mod server;

use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use server::mongodb::{PING, answer};
use server::plan::{drive, plan};
use tare_load::drive::{End, run};
use tare_load::plan::{Length, Plan};
use tare_load::protocol::mongodb::Mongodb;
use tare_load::workload::job::{Dialect, Job};
use tare_load::{Fault, LoadError};

#[test]
fn a_server_is_driven_over_a_unix_socket() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    for connections in [1, 4] {
        let over = Plan {
            length: Length::Operations(400),
            connections,
            requests_per_connection: Some(20),
            workload: Arc::new(Job::parse(PING, Dialect::Json).expect("a job")),
            ..plan(format!("unix:{}", path.display()), None, 1.0)
        };
        let outcome =
            run::<Mongodb>(&over, &AtomicBool::new(false), &mut |_| Ok(())).expect("it ran");
        assert_eq!((outcome.end, outcome.measure.right()), (End::Complete, 400));
        assert!(outcome.measure.connect.right >= 16);
        assert_eq!(outcome.measure.split.count(), 0, "the kernel does not say when it had replies");
    }
}

#[test]
fn a_socket_that_is_not_there_or_full_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let mut there = plan(format!("unix:{}", path.display()), None, 1.0);
    there.limits.connect = Duration::from_millis(200);
    match drive(&there) {
        Err(LoadError::Connect { source: Fault::Refused, .. }) => {}
        other => panic!("{:?}", other.map(|outcome| outcome.end)),
    }
    let listener = UnixListener::bind(&path).expect("bound");
    rustix::net::listen(&listener, 0).expect("a queue of one");
    let error = drive(&there).err().expect("nobody answers").to_string();
    assert!(error.ends_with("the server did not answer within 0.2 s"), "{error}");
    let long = plan(format!("unix:/{}", "x".repeat(200)), None, 1.0);
    let error = drive(&long).err().expect("too long").to_string();
    assert!(error.ends_with("File name too long (os error 36)"), "{error}");
}
