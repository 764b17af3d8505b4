//! What the kernel prints, damaged: no parser panics, whatever a process calls itself or a later kernel adds.
//!
//! `make fuzz-probe` sets `PROPTEST_CASES` to many more cases than a test takes.

use proptest::prelude::*;
use tare_probe::discover::hierarchy::Hierarchies;
use tare_probe::parse::keyed::{Plan, Wanted};
use tare_probe::parse::stat::Line;
use tare_probe::parse::{blkio, diskstats, fields, io_stat, net_dev, pid_stat, pressure, stat};
use tare_record::ABSENT;
use tare_record::tables::{cpu, disk, interface, process, system};

const SAMPLES: [&[u8]; 12] = [
    include_bytes!("data/host/diskstats"),
    include_bytes!("data/host/meminfo"),
    include_bytes!("data/host/net_dev"),
    include_bytes!("data/host/pressure_io"),
    include_bytes!("data/host/stat"),
    include_bytes!("data/host/vmstat"),
    include_bytes!("data/process/io"),
    include_bytes!("data/process/stat"),
    include_bytes!("data/v1/memory.stat"),
    include_bytes!("data/v1/throttle_bytes"),
    b"8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n",
    b"31 23 0:28 / /sys/fs/cgroup rw - cgroup2 x rw\n33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup x rw,cpuacct\n",
];
const WANTED: [Wanted; 3] = [
    Wanted { key: b"MemFree:", cell: 0, scale: 1024 },
    Wanted { key: b"total_rss ", cell: 1, scale: 1 },
    Wanted { key: b"write_bytes: ", cell: 2, scale: u64::MAX },
];
/// What numbers, names and lines may turn into.
const PIECES: [&[u8]; 14] = [
    b"\n",
    b" ",
    b"",
    b"-1",
    b"18446744073709551615",
    b"99999999999999999999999999999999",
    b"(",
    b") Z 1",
    b"cpu",
    b"cpu4294967296 1",
    b"total=",
    b"\0",
    b"\xff\xfe",
    b":",
];

/// A sample, a piece of it replaced by another piece, again and again, and then cut.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), 0_usize..12, 0..PIECES.len());
    (0..SAMPLES.len(), prop::collection::vec(change, 0..8), any::<prop::sample::Index>()).prop_map(
        |(sample, changes, cut)| {
            let mut bytes = SAMPLES[sample].to_vec();
            for (at, length, piece) in changes {
                let from = at.index(bytes.len() + 1);
                let to = (from + length).min(bytes.len());
                bytes.splice(from..to, PIECES[piece].iter().copied());
            }
            if cut.index(4) == 0 {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
            bytes
        },
    )
}

/// Every parser on it.
fn parse_all(bytes: &[u8]) {
    let mut of_disk = [ABSENT; disk::WIDTH];
    for (_, words) in diskstats::devices(bytes) {
        let _used = diskstats::was_used(words);
        diskstats::counters(words, &mut of_disk);
    }
    let mut of_interface = [ABSENT; interface::WIDTH];
    for (_, words) in net_dev::interfaces(bytes) {
        net_dev::counters(words, &mut of_interface);
    }
    let (mut of_cpu, mut of_system) = ([ABSENT; cpu::WIDTH], [ABSENT; system::WIDTH]);
    for line in stat::entries(bytes) {
        match line {
            Line::Cpu { words, .. } => stat::cpu_times(words, &mut of_cpu),
            Line::Other { key, words } => stat::system_line(key, words, &mut of_system),
        }
    }
    let mut of_process = [ABSENT; process::WIDTH];
    pid_stat::counters(bytes, 4096, &mut of_process);
    let _ = (pid_stat::parent(bytes), pid_stat::flags(bytes), pid_stat::command(bytes));
    let _ = (
        pid_stat::has_ended(bytes),
        pressure::totals(bytes),
        io_stat::sums(bytes),
        blkio::sums(bytes),
    );
    let _ = (fields::leading_number(bytes), fields::whole_number(bytes));
    let mut cells = [ABSENT; 3];
    Plan::learn(&WANTED, bytes).read(bytes, &mut cells);
    for sample in SAMPLES {
        Plan::learn(&WANTED, sample).read(bytes, &mut cells);
    }
    let mounts = Hierarchies::parse(&String::from_utf8_lossy(bytes));
    let _ = mounts.layout();
}

proptest! {
    #[test]
    fn no_damaged_file_of_the_kernels_makes_a_parser_panic(bytes in damaged()) {
        parse_all(&bytes);
    }

    #[test]
    fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        parse_all(&bytes);
    }
}
