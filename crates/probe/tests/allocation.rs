//! The hot path allocates nothing: a counting allocator watches a thousand ticks.
#![allow(unsafe_code)] // `GlobalAlloc` is an unsafe trait; both calls are handed on unchanged

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tare_probe::discover::cgroup;
use tare_probe::discover::hierarchy::Hierarchies;
use tare_probe::discover::{CgroupPlace, host};
use tare_probe::ring;
use tare_probe::sampler::{Lines, Sampler, Slot};
use tare_probe::schedule::Due;
use tare_probe::source::Source;
use tare_probe::source::cgroup::CgroupSource;
use tare_probe::source::device::Device;
use tare_probe::source::memory::MemorySource;
use tare_probe::source::pressure::PressureSource;
use tare_probe::source::process::ProcessSource;
use tare_probe::source::stat::{StatSource, StatTargets};
use tare_probe::tail::Memory;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator with the arguments that came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn sources() -> Vec<Box<dyn Source>> {
    let proc = Path::new("/proc");
    let own = proc.join("self");
    let devices = |names: Vec<Vec<u8>>| -> Vec<Device> {
        names.into_iter().map(|name| Device { name, target: 9 }).collect()
    };
    let targets = StatTargets { host: 1, all: 2, cpus: vec![3, 4] };
    let directories =
        Hierarchies::of_host().directories(&CgroupPlace::OfProcess(std::process::id()));
    let group =
        CgroupSource::new(5, cgroup::open(&directories, 100).expect("own group").items, None);
    let mut sources: Vec<Box<dyn Source>> = vec![
        Box::new(StatSource::open(&proc.join("stat"), targets).expect("stat")),
        Box::new(MemorySource::open(proc, 1).expect("meminfo")),
        host::open_disks(devices(host::disk_names())).expect("diskstats"),
        host::open_interfaces(&own, devices(host::interface_names(&own))).expect("net/dev"),
        Box::new(ProcessSource::open(&own, std::process::id(), 6).expect("own process")),
        Box::new(group),
    ];
    if let Some(pressure) = PressureSource::open(proc, 1) {
        sources.push(Box::new(pressure));
    }
    sources
}

#[test]
fn a_tick_allocates_nothing() {
    let (rows, mut receiver) = ring::ring(Memory::own(1 << 16));
    let (_commands, commands) = rtrb::RingBuffer::new(8);
    let (retired, _retired) = rtrb::RingBuffer::new(8);
    let here = std::thread::current();
    let lines = Lines {
        rows,
        commands,
        retired,
        pump: here.clone(),
        wake_pause_ns: 450_000_000,
        watcher: here,
    };
    let slots = sources()
        .into_iter()
        .enumerate()
        .map(|(id, source)| Slot { id: id as u32, source, every: 1, next_tick: 0 })
        .collect();
    let mut sampler = Sampler::new(slots, lines);
    let mut rows = 0;
    for tick in 0..1000 {
        let due = Due { tick, deadline_ns: tare_probe::clock::monotonic_ns(), missed: 0 };
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        sampler.tick(due, due.deadline_ns);
        let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(allocated, 0, "in tick {tick}");
        let end = receiver.written();
        assert_eq!(receiver.drain(end, |_, _| rows += 1), Ok(()));
        receiver.release();
    }
    assert!(rows >= 7000, "only {rows} rows: the sources were not read");
}
