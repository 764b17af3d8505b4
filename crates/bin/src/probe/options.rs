//! The command line.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use tare_probe::discover::Spec;
use tare_probe::session::Config;
use tare_probe::sys::Policy;

use crate::failure::Failure;
use crate::specs::{cgroup, interfaces, process};

/// Samples the kernel's counters of host, containers and processes, at 0.1 Hz to 1 kHz.
///
/// Each value is stored raw, with the time window in which it was read. Late and missed ticks
/// and the probe's own cost are stored as well.
#[derive(Debug, Parser)]
#[command(name = "tare-probe", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub action: Action,
}

const EXAMPLES: &str = "\
Examples:
  tare-probe record --out run1 --host --cgroup db=/docker/4f0c… --hz 10 --duration 60
  tare-probe record --out run2 --cgroup db=pid:4711 --pid dockerd=812,tree --hz 1000
  tare-probe profile --out db.parquet --cgroup db=pid:4711 --duration 60
  tare-probe live                    shows the machine; add --children /docker for its containers
  tare-probe serve --prometheus :9477 --host --children /docker
  tare-probe export run1             lists the tables of a recording
  tare-probe export run1 --table cgroup --rates > cgroup.csv
  tare-probe convert run1            after a crash: converts the journal to Parquet";

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Record into a directory of Parquet files
    Record(RecordOptions),
    /// Sample the stacks of all CPUs into a Parquet file: where the CPU time goes
    Profile(ProfileOptions),
    /// Show the newest rates in the terminal
    Live(LiveOptions),
    /// Serve the newest values to Prometheus in OpenMetrics
    Serve(ServeOptions),
    /// Print a table of a recording as CSV or JSON lines, raw or as rates with bounds
    Export(ExportOptions),
    /// Convert the journal of an interrupted recording to Parquet
    Convert(ConvertOptions),
    /// Read the same files at the same times and discard them: the floor of `make bench-probe`
    #[command(hide = true)]
    Floor(FloorOptions),
}

#[derive(Debug, Args)]
pub(crate) struct RecordOptions {
    /// Directory to write to; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Stop after this many seconds [default: on SIGINT or SIGTERM]
    #[arg(long, value_name = "SECONDS", value_parser = positive, allow_negative_numbers = true)]
    pub duration: Option<f64>,
    /// Also serve the newest values; a port alone means 127.0.0.1
    #[arg(long, value_name = "[ADDRESS]:PORT", value_parser = address)]
    pub prometheus: Option<SocketAddr>,
    /// File of more targets, read on SIGHUP, one per line, such as `cgroup db=/docker/4f0c`, `pid db=12,tree`,
    /// `netns db=12`
    #[arg(long, value_name = "FILE")]
    pub targets: Option<PathBuf>,
    /// Keep the journal beside the Parquet files
    #[arg(long)]
    pub keep_journal: bool,
    /// Write the journal only; `tare-probe convert` converts it later
    #[arg(long)]
    pub no_convert: bool,
    #[command(flatten)]
    pub sampling: SamplingOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ProfileOptions {
    /// File to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Samples per second on each CPU, 1 to 999; odd, to stay out of step with other timers
    #[arg(long, default_value_t = 199, value_parser = clap::value_parser!(u32).range(1..=999), allow_negative_numbers = true)]
    pub hz: u32,
    /// Stop after this many seconds [default: on SIGINT or SIGTERM]
    #[arg(long, value_name = "SECONDS", value_parser = positive, allow_negative_numbers = true)]
    pub duration: Option<f64>,
    /// Processes of a control group, given by its path or by one of its processes
    #[arg(long, value_name = "NAME=PATH|NAME=pid:PID", value_parser = cgroup)]
    pub cgroup: Vec<Spec>,
    /// A process; with `,tree` also its descendants
    #[arg(long, value_name = "NAME=PID[,tree]", value_parser = process)]
    pub pid: Vec<Spec>,
    /// File of more targets, read on SIGHUP, as for `record`
    #[arg(long, value_name = "FILE")]
    pub targets: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LiveOptions {
    /// Stop after this many seconds [default: on SIGINT or SIGTERM]
    #[arg(long, value_name = "SECONDS", value_parser = positive, allow_negative_numbers = true)]
    pub duration: Option<f64>,
    #[command(flatten)]
    pub sampling: SamplingOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// Address on which to serve /metrics; a port alone means 127.0.0.1
    #[arg(long, value_name = "[ADDRESS]:PORT", value_parser = address, default_value = "127.0.0.1:9477")]
    pub prometheus: SocketAddr,
    /// Stop after this many seconds [default: on SIGINT or SIGTERM]
    #[arg(long, value_name = "SECONDS", value_parser = positive, allow_negative_numbers = true)]
    pub duration: Option<f64>,
    #[command(flatten)]
    pub sampling: SamplingOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// Directory of a recording
    pub directory: PathBuf,
    /// Table to print, such as cgroup, process, cpu, disk, tick, event or target
    /// [default: list the tables with their numbers of rows]
    #[arg(long)]
    pub table: Option<String>,
    /// Comma-separated values, or one JSON object per line
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    pub format: Format,
    /// Print the rate of each counter since its previous reading, with the bounds that its step allows
    #[arg(long)]
    pub rates: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Format {
    Csv,
    Jsonl,
}

/// What to sample, and how often.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // switches
pub(crate) struct SamplingOptions {
    /// Ticks per second, 0.1 to 1000
    #[arg(long, default_value_t = 1.0, value_parser = rate, allow_negative_numbers = true)]
    pub hz: f64,
    /// Sample CPUs, memory, paging, pressure, disks and interfaces of the host; the default if no
    /// other target is named
    #[arg(long)]
    pub host: bool,
    /// Ticks per second for the host [default: --hz, but at most 10]
    #[arg(long, value_name = "HZ", value_parser = rate, allow_negative_numbers = true)]
    pub host_hz: Option<f64>,
    /// A control group, given by its path below the hierarchy's root or by one of its processes
    #[arg(long, value_name = "NAME=PATH|NAME=pid:PID", value_parser = cgroup)]
    pub cgroup: Vec<Spec>,
    /// All children of a control group, such as /docker, as they come and go
    #[arg(long, value_name = "PATH")]
    pub children: Vec<String>,
    /// A process; with `,tree` also its descendants
    #[arg(long, value_name = "NAME=PID[,tree]", value_parser = process)]
    pub pid: Vec<Spec>,
    /// Interfaces of a process's network namespace
    #[arg(long, value_name = "NAME=PID", value_parser = interfaces)]
    pub netns: Vec<Spec>,
    /// Start even if a target does not exist yet, and add it when it appears
    #[arg(long)]
    pub wait: bool,
    /// Do not count block requests with a tracing program
    #[arg(long)]
    pub no_bpf: bool,
    /// Read performance counters of control groups: context switches, migrations and page faults,
    /// and with a PMU also cycles, instructions and caches
    #[arg(long)]
    pub perf: bool,
    /// Policy of the sampling thread: fifo:PRIORITY, rr:PRIORITY or other
    #[arg(long, default_value = "fifo:20", value_parser = policy)]
    pub scheduler: PolicyOption,
}

#[derive(Debug, Args)]
pub(crate) struct FloorOptions {
    #[arg(long, value_parser = positive)]
    pub duration: f64,
    #[command(flatten)]
    pub sampling: SamplingOptions,
}

/// [`Policy`] as an option that clap can parse.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyOption(pub Policy);

#[derive(Debug, Args)]
pub(crate) struct ConvertOptions {
    /// Directory of a recording
    pub directory: PathBuf,
    /// Convert everything before a damaged frame
    #[arg(long)]
    pub salvage: bool,
    /// Keep the journal beside the Parquet files
    #[arg(long)]
    pub keep_journal: bool,
}

impl SamplingOptions {
    pub(crate) fn config(&self, duration_s: Option<f64>) -> Result<Config, Failure> {
        // Processes may share a name, as those of a tree do; a group or namespace has nothing else to identify it.
        for (option, specs) in [("--cgroup", &self.cgroup), ("--netns", &self.netns)] {
            if let Some(name) = named_twice(specs) {
                return Err(Failure::Usage(format!(
                    "{option}: {name:?} is used twice; give each target its own name"
                )));
            }
        }
        if let Some(host_hz) = self.host_hz.filter(|host_hz| *host_hz > self.hz) {
            return Err(Failure::Usage(format!(
                "--host-hz {host_hz} is more than --hz {}, and the host is sampled on some of these ticks; give --hz {host_hz} too",
                self.hz
            )));
        }
        let children = self.children.iter().map(|path| Spec::Children { path: path.clone() });
        let specs = [&self.cgroup, &self.pid, &self.netns].into_iter().flatten().cloned();
        Ok(Config {
            rate_hz: self.hz,
            host_rate_hz: self.host_hz.unwrap_or(self.hz.min(10.0)),
            duration_s,
            policy: self.scheduler.0,
            with_host: self.host || self.names_nothing(),
            specs: specs.chain(children).collect(),
            mailbox: None,
            wait_for_targets: self.wait,
            count_block: !self.no_bpf,
            with_perf: self.perf,
            tail: None,
        })
    }

    /// Whether the options name no target, so that the host is sampled.
    fn names_nothing(&self) -> bool {
        let named = [&self.cgroup, &self.pid, &self.netns];
        named.iter().all(|specs| specs.is_empty()) && self.children.is_empty()
    }
}

/// First name that several targets of a kind have.
fn named_twice(specs: &[Spec]) -> Option<&str> {
    let mut names = HashSet::new();
    specs.iter().map(Spec::name).find(|name| !names.insert(*name))
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.1..=1000.0).contains(&rate) { Ok(rate) } else { Err("give 0.1 to 1000".to_owned()) }
}

fn positive(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if seconds > 0.0 && seconds < 1e9 { Ok(seconds) } else { Err("give more than 0".to_owned()) }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| "give a port, or ADDRESS:PORT with a numeric address".to_owned())
}

fn policy(text: &str) -> Result<PolicyOption, String> {
    let priority = |text: &str| match text.parse::<u8>() {
        Ok(priority @ 1..=99) => Ok(priority),
        _ => Err("a real-time priority is 1 to 99".to_owned()),
    };
    let policy = match text.split_once(':') {
        Some(("fifo", number)) => Policy::Fifo(priority(number)?),
        Some(("rr", number)) => Policy::RoundRobin(priority(number)?),
        None if text == "other" => Policy::Other,
        _ => return Err("give fifo:PRIORITY, rr:PRIORITY or other".to_owned()),
    };
    Ok(PolicyOption(policy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

    #[test]
    fn who_names_nothing_sees_the_host() {
        let live = |arguments: &[&str]| {
            let all = ["tare-probe", "live"].iter().chain(arguments);
            match Options::try_parse_from(all).expect("options").action {
                Action::Live(options) => options.sampling.config(None).expect("names").with_host,
                _ => unreachable!("live"),
            }
        };
        assert!(live(&[]));
        assert!(live(&["--hz", "2"]));
        assert!(live(&["--host", "--pid", "a=1"]));
        assert!(!live(&["--pid", "a=1"]));
        assert!(!live(&["--children", "/docker"]));
    }

    #[test]
    fn a_port_alone_is_served_on_loopback() {
        let here: SocketAddr = "127.0.0.1:9477".parse().expect("an address");
        assert_eq!(address(":9477"), Ok(here));
        assert_eq!(address("9477"), Ok(here));
        assert_eq!(address("0.0.0.0:1"), Ok("0.0.0.0:1".parse().expect("an address")));
        assert!(address("localhost:1").is_err());
    }

    #[test]
    fn rates_have_bounds() {
        assert!(rate("1000").is_ok());
        assert!(rate("1001").is_err());
        assert!(rate("0").is_err());
        assert!(rate("nan").is_err());
    }
}
