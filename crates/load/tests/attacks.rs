//! Servers that attack whoever measures them: the run ends in time, in bounded memory, with one sentence, and no
//! password is sent in clear text.

mod attacker;

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use attacker::{Line, attacker};
use tare_load::LoadError;
use tare_load::drive::{End, Outcome, run};
use tare_load::measure::usage::peak_resident_kib;
use tare_load::plan::{Length, Limits, Plan};
use tare_load::protocol::cql::Cql;
use tare_load::protocol::mongodb::Mongodb;
use tare_load::protocol::mysql::Mysql;
use tare_load::protocol::postgresql::Postgresql;
use tare_load::protocol::resp::Resp;
use tare_load::protocol::{Access, Protocol};
use tare_load::tls::{Tls, Verify};
use tare_load::workload::job::{Dialect, Job};

const PASSWORD: &str = "5ec4e7-0f-this-run";
const REPLY: Duration = Duration::from_millis(400);
/// Enough for a log-in on a busy machine.
const CONNECT: Duration = Duration::from_secs(3);
const LONGEST: Duration = Duration::from_secs(6);
/// Of the attacking servers, too, which run in this process.
const MOST_KIB: u64 = 512 * 1024;

fn plan(address: &str, dialect: Dialect, send: &str) -> Plan {
    let job = format!("{{format: 1, operations: [{{name: get, steps: [{{send: {send}}}]}}]}}");
    Plan {
        address: address.to_owned(),
        access: Access {
            user: Some("user".to_owned()),
            password: Some(PASSWORD.to_owned()),
            ..Access::default()
        },
        before: Vec::new(),
        after: Vec::new(),
        others: Vec::new(),
        workload: Arc::new(Job::parse(&job, dialect).expect("a job")),
        seed: 1,
        connections: 2,
        depth: 1,
        requests_per_connection: None,
        threads: 1,
        arrivals: None,
        most_waiting: 1_000,
        warm_up: Duration::ZERO,
        length: Length::Time(Duration::from_millis(1_500)),
        turns: None,
        window: Duration::from_millis(500),
        limits: Limits { connect: CONNECT, reply: REPLY, drain: REPLY, reconnect: REPLY },
        receive_share: 4,
        most_polled: Duration::from_micros(160),
    }
}

/// Gives up a log-in soon, which has no end.
fn impatient(address: &str, dialect: Dialect, send: &str) -> Plan {
    let mut plan = plan(address, dialect, send);
    plan.limits.connect = REPLY;
    plan
}

/// Runs take turns, so that time and memory are those of one.
static TURN: Mutex<()> = Mutex::new(());

/// Carries out the plan, and checks time and memory.
fn drive<P: Protocol>(plan: &Plan) -> Result<Outcome, LoadError> {
    let _turn = TURN.lock();
    let started = Instant::now();
    let outcome = run::<P>(plan, &AtomicBool::new(false), &mut |_| Ok(()));
    let (took, most) = (started.elapsed(), peak_resident_kib().expect("Linux says it"));
    assert!(took < LONGEST, "{took:?}");
    assert!(most < MOST_KIB, "{most} KiB");
    outcome
}

/// Why the run ended: one line of text without control characters.
fn sentence(outcome: Result<Outcome, LoadError>) -> String {
    let sentence = match outcome {
        Err(error) => error.to_string(),
        Ok(Outcome { end: End::Gone(reason), .. }) => reason,
        Ok(outcome) => {
            let [error, ..] = outcome.measure.errors.as_slice() else { panic!("it has no error") };
            error.message.clone()
        }
    };
    assert!(!sentence.chars().any(char::is_control), "{sentence:?}");
    assert!(sentence.len() < 1_200, "{} bytes", sentence.len());
    sentence
}

type Drive = fn(&str) -> Result<Outcome, LoadError>;

/// Each protocol with a request of its own.
const PROTOCOLS: [(&str, Drive); 5] = [
    ("redis", |address| drive::<Resp>(&impatient(address, Dialect::Words, "GET k"))),
    ("mysql", |address| drive::<Mysql>(&impatient(address, Dialect::Sql, "SELECT 1"))),
    ("postgresql", |address| drive::<Postgresql>(&impatient(address, Dialect::Sql, "SELECT 1"))),
    ("cql", |address| drive::<Cql>(&impatient(address, Dialect::Sql, "SELECT a FROM b"))),
    ("mongodb", |address| drive::<Mongodb>(&impatient(address, Dialect::Json, "'{\"ping\": 1}'"))),
];

fn redis(attack: impl Fn(&mut Line) + Send + Sync + 'static) -> Result<Outcome, LoadError> {
    let server = attacker(Ipv4Addr::LOCALHOST, move |line| {
        for _ in ["AUTH", "PING"] {
            line.hear();
            line.say(b"+OK\r\n");
        }
        line.hear();
        attack(line);
    });
    drive::<Resp>(&plan(&server.address, Dialect::Words, "GET k"))
}

fn mysql_packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_le_bytes();
    [&length[..3], &[number], body].concat()
}

fn mysql_greeting() -> Vec<u8> {
    let mut body = vec![10];
    body.extend_from_slice(b"8.0.30\0\x01\0\0\0abcdefgh\0\xff\xf7\xff\x02\0\xff\xdf\x15");
    body.extend_from_slice(b"\0\0\0\0\0\0\0\0\0\0abcdefghijkl\0caching_sha2_password\0");
    mysql_packet(0, &body)
}

/// Greets, and answers the log-in by packets with these bodies, each after it has heard the client.
fn mysql(answers: &'static [&'static [u8]]) -> (Result<Outcome, LoadError>, Vec<u8>) {
    let server = attacker(Ipv4Addr::LOCALHOST, move |line| {
        line.say(&mysql_greeting());
        for (number, answer) in answers.iter().enumerate() {
            line.hear();
            line.say(&mysql_packet(2 + 2 * number as u8, answer));
        }
        line.hear();
    });
    let outcome = drive::<Mysql>(&plan(&server.address, Dialect::Sql, "SELECT 1"));
    let heard = server.heard.lock().expect("no panic").clone();
    (outcome, heard)
}

fn holds(heard: &[u8], word: &[u8]) -> bool {
    heard.windows(word.len()).any(|piece| piece == word)
}

#[test]
fn a_reply_without_an_end_is_given_up_however_fast_it_comes() {
    let attacks: [(&str, &[u8], &[u8]); 5] = [
        ("a string", b"$4611686018427387904\r\n", b"x"),
        ("lists in lists", b"", b"*1\r\n"),
        ("a list of nothing", b"*4611686018427387904\r\n", b"$0\r\n\r\n"),
        ("a list of lists", b"*4611686018427387904\r\n", b"*2\r\n+a\r\n%1\r\n+a\r\n+b\r\n"),
        ("pushed messages", b"", b">1\r\n"),
    ];
    for (what, first, then) in attacks {
        let said = sentence(redis(move |line| {
            line.say(first);
            line.flood(then);
        }));
        assert!(said.contains("did not answer within 0.4 s"), "{what}: {said}");
    }
}

#[test]
fn replies_that_nobody_asked_for_end_the_run() {
    let said = sentence(redis(|line| line.flood(b"$1\r\na\r\n")));
    assert!(said.ends_with("a reply that nobody asked for"), "{said}");
}

#[test]
fn a_reply_that_drips_is_given_up() {
    let said = sentence(redis(|line| {
        line.say(b"$1000\r\n");
        line.drip(b"x");
    }));
    assert!(said.contains("did not answer within 0.4 s"), "{said}");
}

#[test]
fn errors_that_all_differ_are_not_all_kept() {
    let outcome = redis(|line| {
        for number in 0_u64.. {
            line.say(format!("-E{number} \x1b]0;owned\x07\u{202e}no\r\n").as_bytes());
            line.hear();
            if !line.open {
                return;
            }
        }
    });
    let measure = outcome.expect("it ran").measure;
    assert!(measure.kinds[0].errors > 300, "{}", measure.kinds[0].errors);
    assert!(measure.errors.len() <= 130, "{}", measure.errors.len());
    let counted: u64 = measure.errors.iter().map(|error| error.count).sum();
    assert!(counted >= measure.kinds[0].errors, "each is counted");
}

#[test]
fn what_a_server_says_is_one_line_without_control_characters() {
    let server = attacker(Ipv4Addr::LOCALHOST, |line| {
        line.hear();
        let long = "no ".repeat(2_000);
        line.say(
            format!("-ERR \x1b[2J\x1b]0;owned\x07\ttare: all is well\u{9b}31m\u{61c}\u{200b}\u{feff}{long}\r\n")
                .as_bytes(),
        );
        line.hear();
    });
    let said = sentence(drive::<Resp>(&plan(&server.address, Dialect::Words, "GET k")));
    assert!(said.contains("refused the log-in: ERR \u{fffd}[2J"), "{said}");
    assert!(said.contains("31m\u{fffd}\u{fffd}\u{fffd}no no"), "{said}");
    let (outcome, _) = mysql(&[b"\xff\x15\x04#28000no\n\x1b[2Jtare: all is well"]);
    let said = sentence(outcome);
    assert!(said.ends_with("refused the log-in: no\u{fffd}\u{fffd}[2Jtare: all is well"), "{said}");
}

#[test]
fn a_log_in_without_an_end_is_given_up() {
    let floods: [&[u8]; 6] = [
        b"N\0\0\0\x05\0",                // notices of PostgreSQL
        b"\x02\0\0\x02\x01\x03",         // MySQL has it in its cache
        b"*1\r\n",                       // lists of Redis
        b"\x14\x03\x03\0\x01\x01",       // TLS: the keys change
        b"\x16\x03\x03\0\0",             // TLS: nothing
        b"\x84\0\0\0\x06\0\xff\xff\xff", // a frame of CQL, 16 MiB long
    ];
    for (name, drive) in PROTOCOLS {
        for flood in floods {
            let server = attacker(Ipv4Addr::LOCALHOST, move |line| line.flood(flood));
            let said = sentence(drive(&server.address));
            assert!(said.starts_with(&server.address), "{name}: {said}");
        }
        let server = attacker(Ipv4Addr::LOCALHOST, |line| {
            line.say(&mysql_greeting());
            line.flood(b"\x02\0\0\x02\x01\x03");
        });
        sentence(drive(&server.address));
        let server = attacker(Ipv4Addr::LOCALHOST, |line| line.drip(b"x"));
        sentence(drive(&server.address));
    }
}

#[test]
fn tls_that_was_not_asked_for_and_tls_without_an_end_end_the_run() {
    let alert = b"\x15\x03\x03\0\x02\x02\x28";
    for (name, drive) in PROTOCOLS {
        let server = attacker(Ipv4Addr::LOCALHOST, |line| {
            line.say(alert);
            line.hear();
        });
        let said = sentence(drive(&server.address));
        assert!(said.starts_with(&server.address), "{name}: {said}");
    }
    for flood in [&b"\x14\x03\x03\0\x01\x01"[..], b"\x16\x03\x03\0\0", b"\x16\x03\x03\0\x01\x02"] {
        let server = attacker(Ipv4Addr::LOCALHOST, move |line| line.flood(flood));
        let mut sealed = impatient(&server.address, Dialect::Words, "GET k");
        sealed.access.tls =
            Some(Tls::new(&server.address, Verify::None, None, None).expect("settings"));
        let said = sentence(drive::<Resp>(&sealed));
        assert!(said.starts_with(&server.address), "{said}");
    }
}

#[test]
fn frames_of_the_longest_length_on_many_connections_take_little_memory() {
    let server = attacker(Ipv4Addr::LOCALHOST, |line| {
        line.hear();
        line.say(b"\x84\0\0\0\x06\0\xff\xff\xf0");
        line.flood(b"x");
    });
    let mut many = plan(&server.address, Dialect::Sql, "SELECT a FROM b");
    many.connections = 64;
    let said = sentence(drive::<Cql>(&many));
    assert!(said.contains("is not cql"), "{said}");
}

#[test]
fn a_longest_frame_in_answer_to_use_on_many_connections_takes_little_memory() {
    let server = attacker(Ipv4Addr::LOCALHOST, |line| {
        line.hear();
        line.say(b"\x84\0\0\0\x06\0\0\0\x02\0\0"); // SUPPORTED, nothing
        line.hear();
        line.say(b"\x84\0\0\0\x03\0\0\0\x03\0\x01P"); // AUTHENTICATE
        line.hear();
        line.say(b"\x84\0\0\0\x10\0\0\0\x04\xff\xff\xff\xff"); // AUTH_SUCCESS
        line.hear();
        line.say(b"\x84\0\0\0\x08\0\xff\xff\xf0"); // RESULT
        line.flood(b"x");
    });
    let mut many = plan(&server.address, Dialect::Sql, "SELECT a FROM b");
    many.access.database = Some("ycsb".to_owned());
    many.connections = 64;
    let said = sentence(drive::<Cql>(&many));
    assert!(said.contains("a frame that is longer than its contents can be"), "{said}");
    assert!(holds(&server.heard.lock().expect("no panic"), b"USE \"ycsb\""));
}

#[test]
fn a_server_of_mysql_gets_neither_the_password_nor_a_file() {
    for plugin in ["mysql_clear_password", "mysql_old_password", "sha256_password", "dialog", ""] {
        let body = ["\u{7f}", plugin, "\0abcdefghijklmnopqrst\0"].concat();
        let mut body = body.into_bytes();
        body[0] = 0xfe;
        let (outcome, heard) = mysql(Vec::leak(vec![&*Vec::leak(body)]));
        let said = sentence(outcome);
        assert!(said.contains("refused the log-in: it asks for"), "{plugin}: {said}");
        assert!(!holds(&heard, PASSWORD.as_bytes()), "{plugin}");
    }
    // The full log-in of caching_sha2_password, which sends it as it is over TLS alone.
    let (outcome, heard) = mysql(&[b"\x01\x04", b"\x01no key"]);
    assert!(sentence(outcome).contains("refused the log-in"));
    assert!(!holds(&heard, PASSWORD.as_bytes()));
    // LOCAL INFILE in place of the answers to log-in, preparing and request.
    let ok: &[u8] = b"\0\0\0\x02\0\0\0";
    let (outcome, heard) = mysql(&[b"\xfb/etc/passwd"]);
    assert!(sentence(outcome).contains("is not mysql"));
    assert!(!holds(&heard, b"root:"));
    let (outcome, heard) = mysql(Vec::leak(vec![ok, b"\xfb/etc/passwd"]));
    sentence(outcome);
    assert!(!holds(&heard, b"root:"));
    let server = attacker(Ipv4Addr::LOCALHOST, |line| {
        line.say(&mysql_greeting());
        line.hear();
        line.say(&mysql_packet(2, b"\0\0\0\x02\0\0\0"));
        line.hear();
        line.say(&mysql_packet(1, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        line.hear();
        line.say(&mysql_packet(1, b"\xfb/etc/passwd"));
        line.hear();
    });
    let said = sentence(drive::<Mysql>(&plan(&server.address, Dialect::Sql, "SELECT 1")));
    assert!(said.ends_with("it asks for a local file, which is not sent"), "{said}");
    assert!(!holds(&server.heard.lock().expect("no panic"), b"root:"));
}

/// Asks for clear text (`R`, 3), and says that it was right.
fn asks_for_clear_text(line: &mut Line) {
    line.hear();
    line.say(b"R\0\0\0\x08\0\0\0\x03");
    line.hear();
}

#[test]
fn postgresqls_clear_text_password_leaves_the_machine_over_tls_alone() {
    // No packet is sent: it only asks the kernel for this machine's own address.
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
    let own = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
    if let Ok(std::net::SocketAddr::V4(own)) = own
        && !own.ip().is_loopback()
    {
        let server = attacker(*own.ip(), asks_for_clear_text);
        let said = sentence(drive::<Postgresql>(&plan(&server.address, Dialect::Sql, "SELECT 1")));
        assert!(said.contains("it wants the password in clear text"), "{said}");
        assert!(!holds(&server.heard.lock().expect("no panic"), PASSWORD.as_bytes()));
    }
    let server = attacker(Ipv4Addr::LOCALHOST, asks_for_clear_text);
    sentence(drive::<Postgresql>(&plan(&server.address, Dialect::Sql, "SELECT 1")));
    assert!(
        holds(&server.heard.lock().expect("no panic"), PASSWORD.as_bytes()),
        "to itself it may"
    );
}

#[test]
fn a_log_in_that_would_take_hours_to_compute_is_refused() {
    let server = attacker(Ipv4Addr::LOCALHOST, |line| {
        line.hear();
        line.say(b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0");
        line.hear();
        let heard = line.heard.lock().expect("no panic").clone();
        let text = String::from_utf8_lossy(&heard).into_owned();
        let nonce = text.rsplit("r=").next().unwrap_or_default().to_owned();
        let challenge = format!("r={nonce}more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4294967295");
        let length = (8 + challenge.len() as u32).to_be_bytes();
        line.say(&[b"R", &length[..], &[0, 0, 0, 11], challenge.as_bytes()].concat());
        line.hear();
    });
    let mut alone = plan(&server.address, Dialect::Sql, "SELECT 1");
    alone.connections = 1;
    let said = sentence(drive::<Postgresql>(&alone));
    assert!(said.contains("refused the log-in"), "{said}");
}
