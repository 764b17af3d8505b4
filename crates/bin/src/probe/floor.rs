//! `tare-probe floor` (hidden): the least that reading the same files at the same times can cost.
//!
//! It opens what `record` would open of control groups, reads each file when `record` would read it
//! and throws the bytes away. `make bench-probe` divides the probe's cost by this.

use std::sync::atomic::Ordering;

use tare_probe::clock;
use tare_probe::discover::Spec;
use tare_probe::discover::cgroup;
use tare_probe::discover::hierarchy::Hierarchies;
use tare_probe::handle;
use tare_probe::schedule::Schedule;
use tare_probe::source::SCRATCH_BYTES;
use tare_probe::source::item::Item;
use tare_probe::sys;

use crate::failure::Failure;
use crate::options::FloorOptions;
use crate::signals::stop_on_signals;

pub(crate) fn run(options: &FloorOptions) -> Result<(), Failure> {
    handle::allow_most_open();
    let mut items = open(options)?;
    let files = items.len();
    let stop = stop_on_signals()?;
    if let Err(error) = sys::set_policy(options.sampling.scheduler.0) {
        eprintln!("tare-probe: {error}: running under the default policy");
    }
    let config = options.sampling.config(Some(options.duration))?;
    let start_ns = clock::monotonic_ns() + 1_000_000;
    let mut schedule = Schedule::new(start_ns, (1e9 / config.rate_hz) as u64);
    let end_ns = start_ns + (options.duration * 1e9) as u64;
    let mut buffer = vec![0; SCRATCH_BYTES];
    let (mut ticks, before_ns) = (0_u64, clock::process_cpu_ns());
    while !stop.load(Ordering::Relaxed) && schedule.deadline_ns() <= end_ns {
        clock::sleep_until(schedule.deadline_ns());
        let now_ns = clock::monotonic_ns();
        if schedule.take(now_ns).is_some() {
            for item in &mut items {
                item.read_only(now_ns, &mut buffer);
            }
            ticks += 1;
        }
    }
    let cpu_ns = clock::process_cpu_ns() - before_ns;
    println!("{{\"files\": {files}, \"ticks\": {ticks}, \"cpu_ns\": {cpu_ns}}}");
    Ok(())
}

fn open(options: &FloorOptions) -> Result<Vec<Item>, Failure> {
    let hierarchies = Hierarchies::of_host();
    let user_hz = clock::ticks().user_hz;
    let groups = options.sampling.cgroup.iter().filter_map(|spec| match spec {
        Spec::Cgroup { place, .. } => Some(place),
        _ => None,
    });
    let mut items = Vec::new();
    for place in groups {
        items.append(&mut cgroup::open(&hierarchies.directories(place), user_hz)?.items);
    }
    Ok(items)
}
