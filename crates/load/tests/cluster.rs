//! Two nodes that speak as much of CQL as a run needs: which requests each is sent, and what becomes of a run that
//! loses one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tare_load::drive::{End, Outcome, run};
use tare_load::error::LoadError;
use tare_load::plan::{Length, Limits, Plan};
use tare_load::protocol::Access;
use tare_load::protocol::cql::Cql;
use tare_load::workload::job::{Dialect, Job};

const JOB: &str = "{format: 1, generators: {id: {choice: ['123', user1715321609418666813, '9223372036854775807']}}, \
     operations: [{name: get, steps: [{send: 'SELECT v FROM k.t WHERE id = {id}', expect: {rows: 1}}]}]}";
/// Of those keys, the ones whose token is below 0, which the first node has; the second has the other.
const BELOW: [&str; 2] = ["123", "user1715321609418666813"];

const MURMUR3: &[u8] = b"org.apache.cassandra.dht.Murmur3Partitioner";

struct Node {
    address: String,
    keys: Arc<Mutex<Vec<String>>>,
}

/// A node with one token, which goes away after `lives` requests.
fn node(number: u8, token: i64, lives: usize) -> Node {
    node_of(number, token, lives, MURMUR3)
}

fn node_of(number: u8, token: i64, lives: usize, partitioner: &'static [u8]) -> Node {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let keys = Arc::new(Mutex::new(Vec::new()));
    let (seen, left) = (Arc::clone(&keys), Arc::new(AtomicUsize::new(lives)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (keys, left) = (Arc::clone(&seen), Arc::clone(&left));
            let answer = move |asked: &str| answer_to(asked, number, token, partitioner);
            // Whoever is served may go at any time.
            std::thread::spawn(move || drop(serve(stream, &answer, &keys, &left)));
        }
    });
    Node { address, keys }
}

fn serve(
    mut stream: TcpStream,
    answer: &dyn Fn(&str) -> Vec<u8>,
    keys: &Mutex<Vec<String>>,
    left: &AtomicUsize,
) -> std::io::Result<()> {
    while left.load(Ordering::Relaxed) > 0 {
        let mut header = [0; 9];
        stream.read_exact(&mut header)?;
        let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        let mut body = vec![0; length as usize];
        stream.read_exact(&mut body)?;
        let (opcode, body) = match header[4] {
            0x05 => (0x06, vec![0, 0]), // OPTIONS: SUPPORTED
            0x01 => (0x02, Vec::new()), // STARTUP: READY
            0x07 => (0x08, answer(&String::from_utf8_lossy(&body))),
            0x09 => (0x08, prepared()),
            _ => {
                let one_less = |left: usize| left.checked_sub(1);
                if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
                    return Ok(());
                }
                let key = &body[2 + 2 + 2 + 1 + 2 + 4..];
                keys.lock().expect("no panic").push(String::from_utf8_lossy(key).into_owned());
                (0x08, rows(&[&[b"v"]]))
            }
        };
        let length = (body.len() as u32).to_be_bytes();
        let head = [0x84, 0, header[2], header[3], opcode];
        stream.write_all(&[&head[..], &length, &body].concat())?;
    }
    Ok(())
}

/// What a node answers about itself, about others and about keyspaces.
fn answer_to(asked: &str, number: u8, token: i64, partitioner: &[u8]) -> Vec<u8> {
    let sized = |text: &str| [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
    if asked.contains("system.local") {
        let tokens = [&[0, 0, 0, 1][..], &sized(&token.to_string())].concat();
        return rows(&[&[&[number], b"dc", b"rack", &tokens, partitioner]]);
    }
    if asked.contains("system.peers") {
        return rows(&[]);
    }
    let pairs = ["class", "org.apache.cassandra.locator.SimpleStrategy", "replication_factor", "1"];
    let map = [vec![0, 0, 0, 2], pairs.map(sized).concat()].concat();
    rows(&[&[b"k", &map]])
}

/// Without a description of their columns.
fn rows(rows: &[&[&[u8]]]) -> Vec<u8> {
    let number = |count: usize| (count as u32).to_be_bytes();
    let mut out = [[0, 0, 0, 2], [0, 0, 0, 4]].concat();
    out.extend(number(rows.first().map_or(1, |row| row.len())));
    out.extend(number(rows.len()));
    for cell in rows.iter().copied().flatten() {
        out.extend(number(cell.len()));
        out.extend_from_slice(cell);
    }
    out
}

/// One parameter of type text, which is the partition key.
fn prepared() -> Vec<u8> {
    let body = b"\0\0\0\x04\0\x02id\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01k\0\x01t\0\x02id\0\x0d";
    [&body[..], &[0, 0, 0, 4, 0, 0, 0, 0]].concat()
}

fn drive(nodes: [&Node; 2], length: Length) -> Outcome {
    tried(nodes, length).expect("it ran")
}

fn tried(nodes: [&Node; 2], length: Length) -> Result<Outcome, LoadError> {
    run::<Cql>(&plan(nodes, length), &AtomicBool::new(false), &mut |_| Ok(()))
}

fn plan(nodes: [&Node; 2], length: Length) -> Plan {
    Plan {
        address: nodes[0].address.clone(),
        others: vec![nodes[1].address.clone()],
        access: Access::default(),
        before: Vec::new(),
        after: Vec::new(),
        workload: Arc::new(Job::parse(JOB, Dialect::Sql).expect("a job")),
        seed: 1,
        connections: 3,
        depth: 4,
        requests_per_connection: None,
        threads: 2,
        arrivals: None,
        most_waiting: 100,
        warm_up: Duration::ZERO,
        length,
        turns: None,
        window: Duration::from_secs(1),
        limits: Limits {
            connect: Duration::from_secs(2),
            reply: Duration::from_secs(5),
            drain: Duration::from_secs(5),
            reconnect: Duration::from_millis(300),
        },
        receive_share: 4,
        most_polled: Duration::ZERO,
    }
}

#[test]
fn a_request_goes_to_the_node_that_has_its_row() {
    let nodes = [node(1, -1, usize::MAX), node(2, i64::MAX, usize::MAX)];
    let outcome = drive([&nodes[0], &nodes[1]], Length::Operations(600));
    assert_eq!(outcome.end, End::Complete);
    assert_eq!(outcome.measure.right(), 600);
    let sent = nodes.map(|node| node.keys.lock().expect("no panic").clone());
    assert_eq!(sent[0].len() + sent[1].len(), 600);
    assert!(sent[0].iter().all(|key| BELOW.contains(&key.as_str())), "{:?}", sent[0]);
    assert!(!sent[1].is_empty());
    assert!(sent[1].iter().all(|key| !BELOW.contains(&key.as_str())), "{:?}", sent[1]);
}

#[test]
fn where_rows_are_placed_otherwise_each_node_is_asked_in_turn() {
    let random = b"org.apache.cassandra.dht.RandomPartitioner";
    let nodes = [node_of(1, -1, usize::MAX, random), node_of(2, i64::MAX, usize::MAX, random)];
    let outcome = drive([&nodes[0], &nodes[1]], Length::Operations(600));
    assert_eq!(outcome.measure.right(), 600);
    let sent = nodes.map(|node| node.keys.lock().expect("no panic").len());
    assert_eq!(sent, [300, 300]);
}

#[test]
fn a_connection_is_renewed_to_all_nodes() {
    let nodes = [node(1, -1, usize::MAX), node(2, i64::MAX, usize::MAX)];
    let often = Plan {
        requests_per_connection: Some(20),
        ..plan([&nodes[0], &nodes[1]], Length::Operations(600))
    };
    let outcome = run::<Cql>(&often, &AtomicBool::new(false), &mut |_| Ok(())).expect("it ran");
    assert_eq!((outcome.end, outcome.measure.right()), (End::Complete, 600));
    let connect = &outcome.measure.connect;
    // 3 connections to 2 nodes are closed each 20 requests; the last 3 times nobody waits for the new ones.
    assert!((40..=60).contains(&connect.right), "{}", connect.right);
    assert_eq!((connect.failed(), outcome.measure.counts.disconnects), (0, 0));
}

#[test]
fn a_node_that_cannot_be_asked_for_its_rows_is_named() {
    let nodes = [node(1, -1, usize::MAX), node(2, i64::MAX, 0)];
    let Err(LoadError::Connect { address, .. }) =
        tried([&nodes[0], &nodes[1]], Length::Operations(600))
    else {
        panic!("the second node answers nothing")
    };
    assert_eq!(address, nodes[1].address);
}

#[test]
fn a_node_that_is_away_stops_no_request_to_the_others() {
    let nodes = [node(1, -1, usize::MAX), node(2, i64::MAX, 50)];
    let mut patient = plan([&nodes[0], &nodes[1]], Length::Time(Duration::from_secs(1)));
    patient.limits.reconnect = Duration::from_secs(30);
    let outcome = run::<Cql>(&patient, &AtomicBool::new(false), &mut |_| Ok(())).expect("it ran");
    assert_eq!(outcome.end, End::Complete);
    let sent = nodes.map(|node| node.keys.lock().expect("no panic").clone());
    assert_eq!(sent[1].len(), 50);
    // The first node answers for the rows of the second, too, as it coordinates.
    let strangers = sent[0].iter().filter(|key| !BELOW.contains(&key.as_str())).count();
    assert!(strangers > 200, "{strangers} of {}", sent[0].len());
    let lost = outcome.measure.kinds[0].lost;
    assert!((1..=12).contains(&lost), "at most four on each of three connections: {lost}");
    // Its last replies may be lost with the connections.
    let unanswered = (sent[0].len() + sent[1].len()) as u64 - outcome.measure.right();
    assert!(unanswered <= lost, "{unanswered} of {lost}");
}

#[test]
fn a_node_that_goes_away_ends_the_run_and_is_named() {
    let nodes = [node(1, -1, usize::MAX), node(2, i64::MAX, 50)];
    let outcome = drive([&nodes[0], &nodes[1]], Length::Time(Duration::from_secs(30)));
    let End::Gone(reason) = &outcome.end else { panic!("{:?}", outcome.end) };
    assert!(reason.starts_with(&nodes[1].address), "{reason}");
    assert!(outcome.measure.right() > 50);
    assert!(outcome.measure.counts.disconnects >= 1);
}
