//! Opening of a control group's files: for each group of columns, the first candidate that exists.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tare_record::tables::cgroup as cell;

use super::hierarchy::{Directories, UNIFIED};
use super::registry::Sources;
use crate::handle::Handle;
use crate::parse::keyed::{Plan, Wanted};
use crate::source::Seldom;
use crate::source::item::{Cadence, Item, Shape, Window, Windows};

const fn want(key: &'static [u8], cell: usize) -> Wanted {
    Wanted { key, cell, scale: 1 }
}

const fn scaled(key: &'static [u8], cell: usize, scale: u64) -> Wanted {
    Wanted { key, cell, scale }
}

const THROTTLE_V1: [Wanted; 3] = [
    want(b"nr_periods ", cell::PERIODS),
    want(b"nr_throttled ", cell::THROTTLED_PERIODS),
    want(b"throttled_time ", cell::THROTTLED_NS),
];

/// One file of v2 replaces three files of v1.
const CPU_STAT_V2: [Wanted; 6] = [
    scaled(b"usage_usec ", cell::USAGE_NS, 1000),
    scaled(b"user_usec ", cell::USER_NS, 1000),
    scaled(b"system_usec ", cell::SYSTEM_NS, 1000),
    want(b"nr_periods ", cell::PERIODS),
    want(b"nr_throttled ", cell::THROTTLED_PERIODS),
    scaled(b"throttled_usec ", cell::THROTTLED_NS, 1000),
];

const MEMORY_STAT_V1: [Wanted; 12] = [
    want(b"total_rss ", cell::ANON_BYTES),
    want(b"total_cache ", cell::CACHE_BYTES),
    want(b"total_shmem ", cell::SHMEM_BYTES),
    want(b"total_mapped_file ", cell::MAPPED_BYTES),
    want(b"total_dirty ", cell::DIRTY_BYTES),
    want(b"total_writeback ", cell::WRITEBACK_BYTES),
    want(b"total_active_anon ", cell::ACTIVE_ANON_BYTES),
    want(b"total_inactive_anon ", cell::INACTIVE_ANON_BYTES),
    want(b"total_active_file ", cell::ACTIVE_FILE_BYTES),
    want(b"total_inactive_file ", cell::INACTIVE_FILE_BYTES),
    want(b"total_pgfault ", cell::FAULTS),
    want(b"total_pgmajfault ", cell::MAJOR_FAULTS),
];

const MEMORY_STAT_V2: [Wanted; 12] = [
    want(b"anon ", cell::ANON_BYTES),
    want(b"file ", cell::CACHE_BYTES),
    want(b"shmem ", cell::SHMEM_BYTES),
    want(b"file_mapped ", cell::MAPPED_BYTES),
    want(b"file_dirty ", cell::DIRTY_BYTES),
    want(b"file_writeback ", cell::WRITEBACK_BYTES),
    want(b"active_anon ", cell::ACTIVE_ANON_BYTES),
    want(b"inactive_anon ", cell::INACTIVE_ANON_BYTES),
    want(b"active_file ", cell::ACTIVE_FILE_BYTES),
    want(b"inactive_file ", cell::INACTIVE_FILE_BYTES),
    want(b"pgfault ", cell::FAULTS),
    want(b"pgmajfault ", cell::MAJOR_FAULTS),
];

macro_rules! window {
    ($($t0:ident, $t1:ident);+) => {{
        const WINDOWS: &[Window] = &[$(Window { t0: cell::$t0, t1: cell::$t1 }),+];
        WINDOWS
    }};
}

/// One possible source of a group of columns.
struct Candidate {
    controller: &'static str,
    file: &'static str,
    shape: fn(&[u8], u64) -> Shape,
}

/// A group of columns with its candidates, in the order in which they are tried.
struct Group {
    name: &'static str,
    windows: &'static [Window],
    cadence: Cadence,
    candidates: &'static [Candidate],
}

macro_rules! file {
    ($controller:expr, $file:literal, $shape:expr) => {
        Candidate { controller: $controller, file: $file, shape: $shape }
    };
}

const CPU_STAT: Candidate =
    file!(UNIFIED, "cpu.stat", |text, _| Shape::Keyed(Plan::learn(&CPU_STAT_V2, text)));

/// `cpu.stat` of v2 is in three groups; it is opened for the first that needs it, with the windows
/// of all that do.
const GROUPS: [Group; 14] = [
    Group {
        name: "usage",
        windows: window!(USAGE_T0_NS, USAGE_T1_NS),
        cadence: Cadence::EachTick,
        candidates: &[
            file!("cpuacct", "cpuacct.usage", |_, _| Shape::Number(cell::USAGE_NS)),
            CPU_STAT,
        ],
    },
    Group {
        name: "split",
        windows: window!(SPLIT_T0_NS, SPLIT_T1_NS),
        cadence: Cadence::EachTick,
        candidates: &[file!("cpuacct", "cpuacct.stat", split_v1), CPU_STAT],
    },
    Group {
        name: "throttle",
        windows: window!(THROTTLE_T0_NS, THROTTLE_T1_NS),
        cadence: Cadence::EachTick,
        candidates: &[
            file!("cpu", "cpu.stat", |text, _| Shape::Keyed(Plan::learn(&THROTTLE_V1, text))),
            CPU_STAT,
        ],
    },
    Group {
        name: "memory",
        windows: window!(MEMORY_T0_NS, MEMORY_T1_NS),
        cadence: Cadence::EachTick,
        candidates: &[
            file!("memory", "memory.usage_in_bytes", |_, _| Shape::Number(cell::MEMORY_BYTES)),
            file!(UNIFIED, "memory.current", |_, _| Shape::Number(cell::MEMORY_BYTES)),
        ],
    },
    Group {
        name: "memstat",
        windows: window!(MEMSTAT_T0_NS, MEMSTAT_T1_NS),
        cadence: Cadence::EachTick,
        candidates: &[
            file!("memory", "memory.stat", |text, _| Shape::Keyed(Plan::learn(
                &MEMORY_STAT_V1,
                text
            ))),
            file!(UNIFIED, "memory.stat", |text, _| Shape::Keyed(Plan::learn(
                &MEMORY_STAT_V2,
                text
            ))),
        ],
    },
    Group {
        name: "pids",
        windows: window!(PIDS_T0_NS, PIDS_T1_NS),
        cadence: Cadence::EachTick,
        candidates: &[
            file!("pids", "pids.current", |_, _| Shape::Number(cell::PIDS)),
            file!(UNIFIED, "pids.current", |_, _| Shape::Number(cell::PIDS)),
        ],
    },
    Group {
        name: "io bytes",
        windows: window!(IO_T0_NS, IO_T1_NS),
        cadence: Cadence::EachTickOnceFilled,
        candidates: &[
            file!("blkio", "blkio.throttle.io_service_bytes_recursive", |_, _| Shape::ReadWrite {
                read: cell::READ_BYTES,
                write: cell::WRITTEN_BYTES
            }),
            file!(UNIFIED, "io.stat", |_, _| Shape::IoStat),
        ],
    },
    Group {
        name: "io operations",
        windows: window!(IO_T0_NS, IO_T1_NS),
        cadence: Cadence::EachTickOnceFilled,
        candidates: &[
            file!("blkio", "blkio.throttle.io_serviced_recursive", |_, _| Shape::ReadWrite {
                read: cell::READS,
                write: cell::WRITES
            }),
            file!(UNIFIED, "io.stat", |_, _| Shape::IoStat),
        ],
    },
    Group {
        name: "bfq bytes",
        windows: window!(BFQ_T0_NS, BFQ_T1_NS),
        cadence: Cadence::EachTickOnceFilled,
        candidates: &[file!("blkio", "blkio.bfq.io_service_bytes_recursive", |_, _| {
            Shape::ReadWrite { read: cell::BFQ_READ_BYTES, write: cell::BFQ_WRITTEN_BYTES }
        })],
    },
    Group {
        name: "bfq operations",
        windows: window!(BFQ_T0_NS, BFQ_T1_NS),
        cadence: Cadence::EachTickOnceFilled,
        candidates: &[file!("blkio", "blkio.bfq.io_serviced_recursive", |_, _| Shape::ReadWrite {
            read: cell::BFQ_READS,
            write: cell::BFQ_WRITES
        })],
    },
    Group {
        name: "cpu pressure",
        windows: window!(PRESSURE_T0_NS, PRESSURE_T1_NS),
        cadence: Cadence::EachTenth,
        candidates: &[file!(UNIFIED, "cpu.pressure", |_, _| Shape::Pressure {
            some: cell::CPU_SOME_US,
            full: cell::CPU_FULL_US
        })],
    },
    Group {
        name: "memory pressure",
        windows: window!(PRESSURE_T0_NS, PRESSURE_T1_NS),
        cadence: Cadence::EachTenth,
        candidates: &[file!(UNIFIED, "memory.pressure", |_, _| Shape::Pressure {
            some: cell::MEMORY_SOME_US,
            full: cell::MEMORY_FULL_US
        })],
    },
    Group {
        name: "io pressure",
        windows: window!(PRESSURE_T0_NS, PRESSURE_T1_NS),
        cadence: Cadence::EachTenth,
        candidates: &[file!(UNIFIED, "io.pressure", |_, _| Shape::Pressure {
            some: cell::IO_SOME_US,
            full: cell::IO_FULL_US
        })],
    },
    Group {
        name: "memory limit",
        windows: window!(LIMIT_T0_NS, LIMIT_T1_NS),
        cadence: Cadence::EachSecond,
        candidates: &[
            file!("memory", "memory.limit_in_bytes", |_, _| Shape::Limit(cell::MEMORY_LIMIT_BYTES)),
            file!(UNIFIED, "memory.max", |_, _| Shape::Limit(cell::MEMORY_LIMIT_BYTES)),
        ],
    },
];

/// Quota and period are two files of v1 and one of v2.
const QUOTA: [Group; 2] = [
    Group {
        name: "quota",
        windows: window!(LIMIT_T0_NS, LIMIT_T1_NS),
        cadence: Cadence::EachSecond,
        candidates: &[
            file!("cpu", "cpu.cfs_quota_us", |_, _| Shape::Limit(cell::QUOTA_US)),
            file!(UNIFIED, "cpu.max", |_, _| Shape::CpuMax),
        ],
    },
    Group {
        name: "period",
        windows: window!(LIMIT_T0_NS, LIMIT_T1_NS),
        cadence: Cadence::EachSecond,
        candidates: &[
            file!("cpu", "cpu.cfs_period_us", |_, _| Shape::Number(cell::PERIOD_US)),
            file!(UNIFIED, "cpu.max", |_, _| Shape::CpuMax),
        ],
    },
];

/// `cpuacct.stat` counts in units of `1 / USER_HZ`.
fn split_v1(text: &[u8], user_hz: u64) -> Shape {
    let unit_ns = 1_000_000_000 / user_hz.max(1);
    let wanted =
        [scaled(b"user ", cell::USER_NS, unit_ns), scaled(b"system ", cell::SYSTEM_NS, unit_ns)];
    Shape::Keyed(Plan::learn(&wanted, text))
}

/// The open files of a control group, and the source of each group of columns.
pub struct Opened {
    pub items: Vec<Item>,
    pub sources: Sources,
}

/// Opens all existing files of a control group.
///
/// # Errors
/// No more files can be opened: a part of a group would look like a whole one.
pub fn open(directories: &Directories, user_hz: u64) -> io::Result<Opened> {
    let mut opened = Opened { items: Vec::new(), sources: Sources::new() };
    let mut paths: Vec<PathBuf> = Vec::new();
    for group in GROUPS.iter().chain(&QUOTA) {
        let (path, item) = match first_of(group, directories, user_hz)? {
            Served::By(path, item) => (path, item),
            Served::Not(why) => {
                opened.sources.insert(group.name.to_owned(), format!("absent: {why}"));
                continue;
            }
        };
        opened.sources.insert(group.name.to_owned(), path.display().to_string());
        // A file for several groups is opened once; items and paths have the same indexes.
        if let Some(at) = paths.iter().position(|known| *known == path) {
            opened.items[at].windows.add(group.windows);
        } else {
            paths.push(path);
            opened.items.push(item);
        }
    }
    Ok(opened)
}

/// The source of a group of columns, or why there is none.
enum Served {
    By(PathBuf, Item),
    Not(String),
}

fn first_of(group: &Group, directories: &Directories, user_hz: u64) -> io::Result<Served> {
    let mut why = "no such file".to_owned();
    for candidate in group.candidates {
        let Some(directory) = directories.of(candidate.controller) else { continue };
        let path = directory.join(candidate.file);
        match open_one(&path, candidate, group, user_hz) {
            Ok(item) => return Ok(Served::By(path, item)),
            Err(error) if is_no_room(&error) => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => why = format!("{}: {error}", path.display()),
        }
    }
    Ok(Served::Not(why))
}

/// Whether the limit of open files of this program or machine is reached.
fn is_no_room(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

fn open_one(path: &Path, candidate: &Candidate, group: &Group, user_hz: u64) -> io::Result<Item> {
    let sample = std::fs::read(path)?;
    let mut windows = Windows::default();
    windows.add(group.windows);
    Ok(Item {
        handle: Handle::open(path)?,
        shape: (candidate.shape)(&sample, user_hz),
        windows,
        cadence: group.cadence,
        seldom: Seldom::default(),
    })
}
