//! `tare-probe profile`.

use tare_probe::profile::{self, Config, Profile};
use tare_probe::sys;
use tare_record::parquet::{begin_profile, write_profile};

use crate::failure::Failure;
use crate::options::ProfileOptions;
use crate::record::read_on_hangup;
use crate::signals::stop_on_signals;

pub(crate) fn run(options: &ProfileOptions) -> Result<(), Failure> {
    if options.out.exists() {
        let out = options.out.display();
        return Err(Failure::Usage(format!("{out}: already exists; choose another --out")));
    }
    let stop = stop_on_signals()?;
    let mailbox = options.targets.as_deref().map(read_on_hangup).transpose()?;
    sys::take_stop_signals(true);
    let config = Config {
        rate_hz: options.hz,
        specs: options.cgroup.iter().chain(&options.pid).cloned().collect(),
        mailbox,
        duration_ns: options.duration.map(|seconds| (seconds * 1e9) as u64),
    };
    let at_work = || begin_profile(&options.out).map_err(Into::into);
    let found = profile::record(&config, &stop, at_work)?;
    write_profile(&options.out, &found.facts, &found.rows)?;
    tell(&found);
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // for people
fn tell(found: &Profile) {
    let facts = &found.facts;
    if let Some(why) = &facts.kernel_symbols_missing {
        eprintln!("tare-probe: the kernel's functions cannot be named: {why}");
    }
    eprintln!(
        "tare-probe: {} samples of {} CPUs at {} Hz, {} lost, {} different counts, CPU {:.1} ms",
        facts.samples,
        facts.cpus,
        facts.rate_hz,
        facts.lost,
        found.rows.len(),
        facts.cpu_ns as f64 / 1e6,
    );
}
