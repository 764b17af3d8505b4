//! A control group on each layout of hierarchies, laid out in a directory: which file serves which columns.

use std::fs;
use std::path::Path;

use tare_probe::discover::cgroup::{self, Opened};
use tare_probe::discover::hierarchy::Hierarchies;
use tare_probe::discover::spec::CgroupPlace;
use tare_probe::ring;
use tare_probe::source::cgroup::CgroupSource;
use tare_probe::source::{Life, SCRATCH_BYTES, Source};
use tare_probe::tail::Memory;
use tare_record::tables::cgroup as cell;
use tare_record::{ABSENT, Cell};

const CPU_STAT: &str = "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnice_usec 0\n\
core_sched.force_idle_usec 0\nnr_periods 7\nnr_throttled 3\nthrottled_usec 90\nnr_bursts 0\nburst_usec 0\n";
const MEMORY_STAT: &str = "anon 4096\nfile 8192\nkernel 512\nshmem 100\nfile_mapped 200\nfile_dirty 300\n\
file_writeback 400\ninactive_anon 10\nactive_anon 20\ninactive_file 30\nactive_file 40\nunevictable 0\n\
workingset_refault_file 0\npgscan 0\npgfault 50\npgmajfault 60\n";
const PRESSURE: &str = "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";

/// Hierarchies below a directory: a mount and its files in the group `docker/ab` each.
fn layout(root: &Path, mounts: &[(&str, &[(&str, &str)])]) -> Hierarchies {
    let mut mountinfo = Vec::new();
    for (controller, files) in mounts {
        let mount = root.join(if controller.is_empty() { "unified" } else { controller });
        let group = mount.join("docker/ab");
        fs::create_dir_all(&group).expect("a group");
        for (name, content) in *files {
            fs::write(group.join(name), content).expect("a file");
        }
        let kind = if controller.is_empty() { "cgroup2 cgroup2 rw" } else { "cgroup cgroup rw," };
        mountinfo.push(format!("31 30 0:26 / {} rw - {kind}{controller}", mount.display()));
    }
    Hierarchies::parse(&mountinfo.join("\n"))
}

fn opened(hierarchies: &Hierarchies) -> Opened {
    let place = CgroupPlace::Path("/docker/ab".to_owned());
    cgroup::open(&hierarchies.directories(&place), 100).expect("room for its files")
}

/// One row of the group.
fn row(opened: Opened) -> Vec<Cell> {
    let (mut sender, mut receiver) = ring::ring(Memory::own(1 << 10));
    let mut source = CgroupSource::new(7, opened.items, None);
    assert_eq!(source.sample(0, &mut vec![0; SCRATCH_BYTES], &mut sender), Life::Alive);
    let mut cells = Vec::new();
    let end = receiver.written();
    assert_eq!(receiver.drain(end, |row, _| cells = row.cells.to_vec()), Ok(()));
    cells
}

fn of<const N: usize>(row: &[Cell], columns: [usize; N]) -> [Cell; N] {
    columns.map(|column| row[column])
}

#[test]
fn all_of_version_2_is_read() {
    let home = tempfile::tempdir().expect("a directory");
    let files = [
        ("cpu.stat", CPU_STAT),
        ("memory.current", "123456\n"),
        ("memory.stat", MEMORY_STAT),
        ("memory.max", "1048576\n"),
        ("pids.current", "5\n"),
        (
            "io.stat",
            "8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n253:0 rbytes=5 wbytes=6 rios=3 wios=4 dbytes=0 dios=0\n",
        ),
        ("cpu.max", "50000 100000\n"),
        ("cpu.pressure", PRESSURE),
        ("memory.pressure", PRESSURE),
        ("io.pressure", PRESSURE),
    ];
    let hierarchies = layout(home.path(), &[("", &files)]);
    assert_eq!(hierarchies.layout(), "v2");
    let opened = opened(&hierarchies);
    let absent: Vec<&String> = opened
        .sources
        .iter()
        .filter(|(_, by)| by.starts_with("absent"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(absent, ["bfq bytes", "bfq operations"]);
    let row = row(opened);
    assert_eq!(
        of(&row, [cell::USAGE_NS, cell::USER_NS, cell::SYSTEM_NS]),
        [1_500_000, 1_000_000, 500_000]
    );
    assert_eq!(
        of(&row, [cell::PERIODS, cell::THROTTLED_PERIODS, cell::THROTTLED_NS]),
        [7, 3, 90_000]
    );
    assert_eq!(of(&row, [cell::MEMORY_BYTES, cell::MEMORY_LIMIT_BYTES]), [123_456, 1_048_576]);
    assert_eq!(
        of(&row, [cell::ANON_BYTES, cell::CACHE_BYTES, cell::INACTIVE_FILE_BYTES]),
        [4096, 8192, 30]
    );
    assert_eq!(of(&row, [cell::DIRTY_BYTES, cell::FAULTS, cell::MAJOR_FAULTS]), [300, 50, 60]);
    assert_eq!(
        of(&row, [cell::READ_BYTES, cell::WRITTEN_BYTES, cell::READS, cell::WRITES]),
        [15, 26, 4, 6]
    );
    assert_eq!(of(&row, [cell::PIDS, cell::QUOTA_US, cell::PERIOD_US]), [5, 50_000, 100_000]);
    assert_eq!(of(&row, [cell::CPU_SOME_US, cell::IO_FULL_US]), [11, 12]);
    // One reading of cpu.stat is the window of three groups of columns.
    let windows = [cell::USAGE_T0_NS, cell::SPLIT_T0_NS, cell::THROTTLE_T0_NS];
    assert!(of(&row, windows).iter().all(|at| *at == row[cell::USAGE_T0_NS] && *at != ABSENT));
}

#[test]
fn what_version_2_does_not_limit_or_count_is_absent_and_not_0() {
    let home = tempfile::tempdir().expect("a directory");
    // Without the controllers cpu, memory and io a group has these alone.
    let files = [
        ("cpu.stat", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n"),
        ("io.stat", ""),
        ("memory.max", "max\n"),
        ("cpu.max", "max 100000\n"),
    ];
    let row = row(opened(&layout(home.path(), &[("", &files)])));
    assert_eq!(row[cell::USAGE_NS], 1_500_000);
    let unknown = [
        cell::PERIODS,
        cell::THROTTLED_NS,
        cell::MEMORY_BYTES,
        cell::READ_BYTES,
        cell::MEMORY_LIMIT_BYTES,
        cell::QUOTA_US,
    ];
    assert_eq!(of(&row, unknown), [ABSENT; 6]);
    assert_eq!(row[cell::PERIOD_US], 100_000);
    assert_ne!(row[cell::IO_T0_NS], ABSENT, "it was asked");
    assert_eq!(row[cell::MEMORY_T0_NS], ABSENT, "there was nobody to ask");
}

#[test]
fn on_a_hybrid_host_each_column_has_the_file_of_version_1_where_there_is_one() {
    let home = tempfile::tempdir().expect("a directory");
    let hierarchies = layout(
        home.path(),
        &[
            ("cpuacct", &[("cpuacct.usage", "2000\n"), ("cpuacct.stat", "user 3\nsystem 4\n")]),
            (
                "cpu",
                &[
                    ("cpu.stat", "nr_periods 1\nnr_throttled 2\nthrottled_time 3\n"),
                    ("cpu.cfs_quota_us", "-1\n"),
                    ("cpu.cfs_period_us", "100000\n"),
                ],
            ),
            (
                "memory",
                &[
                    ("memory.usage_in_bytes", "77\n"),
                    (
                        "memory.stat",
                        "cache 1\ntotal_cache 10\ntotal_rss 20\ntotal_inactive_file 5\n",
                    ),
                    ("memory.limit_in_bytes", "9223372036854771712\n"),
                ],
            ),
            (
                "blkio",
                &[
                    ("blkio.throttle.io_service_bytes_recursive", "Total 0\n"),
                    ("blkio.throttle.io_serviced_recursive", "Total 0\n"),
                ],
            ),
            ("", &[("cpu.stat", CPU_STAT), ("cpu.pressure", PRESSURE)]),
        ],
    );
    assert_eq!(hierarchies.layout(), "hybrid");
    let opened = opened(&hierarchies);
    assert!(opened.sources["usage"].ends_with("cpuacct/docker/ab/cpuacct.usage"));
    assert!(opened.sources["throttle"].ends_with("cpu/docker/ab/cpu.stat"));
    assert!(opened.sources["cpu pressure"].ends_with("unified/docker/ab/cpu.pressure"));
    assert_eq!(opened.sources["io pressure"], "absent: no such file");
    let row = row(opened);
    assert_eq!(
        of(&row, [cell::USAGE_NS, cell::USER_NS, cell::SYSTEM_NS]),
        [2000, 30_000_000, 40_000_000]
    );
    assert_eq!(of(&row, [cell::PERIODS, cell::THROTTLED_PERIODS, cell::THROTTLED_NS]), [1, 2, 3]);
    assert_eq!(
        of(
            &row,
            [cell::MEMORY_BYTES, cell::CACHE_BYTES, cell::ANON_BYTES, cell::INACTIVE_FILE_BYTES]
        ),
        [77, 10, 20, 5]
    );
    assert_eq!(of(&row, [cell::CPU_SOME_US, cell::CPU_FULL_US]), [11, 12]);
    let unknown = [
        cell::READ_BYTES,
        cell::WRITES,
        cell::MEMORY_LIMIT_BYTES,
        cell::QUOTA_US,
        cell::IO_SOME_US,
    ];
    assert_eq!(of(&row, unknown), [ABSENT; 5]);
}

#[test]
fn a_file_that_may_not_be_read_says_why() {
    let home = tempfile::tempdir().expect("a directory");
    let hierarchies = layout(home.path(), &[("", &[("cpu.stat", CPU_STAT)])]);
    // A directory in the place of the file is refused to root too.
    fs::create_dir(home.path().join("unified/docker/ab/memory.current")).expect("a directory");
    let opened = opened(&hierarchies);
    assert!(opened.sources["memory"].contains("Is a directory"), "{}", opened.sources["memory"]);
    assert_eq!(row(opened)[cell::MEMORY_BYTES], ABSENT);
}
