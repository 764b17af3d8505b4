//! Settings from YCSB's properties: each is respected, or refused with a message.

use std::path::Path;
use std::time::Duration;

use super::binding::Binding;
use super::keys::{Chooser, EXPONENT, KeyNames, MOST_DIGITS, Scrambled};
use super::properties::{Properties, Property};
use super::store::{Store, Verb};
use super::unparsed::{Unparsed, boolean, number, refused};
use super::values::{Fields, Lengths, MOST_BYTES};
use crate::error::LoadError;
use crate::workload::numbers::{Numbers, Zipfian};

/// One of YCSB's two phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// `-load`: inserts every record.
    Load,
    /// `-t`: the transactions.
    Run,
}

/// Settings of YCSB's client, rather than its workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Client {
    /// `operationcount`, or the number of records in the load phase.
    pub operations: Option<u64>,
    /// `maxexecutiontime`.
    pub time: Option<Duration>,
    /// `threadcount`; each thread of YCSB has one connection.
    pub connections: Option<u32>,
    /// `target`.
    pub per_s: Option<f64>,
    /// `status.interval`.
    pub window: Option<Duration>,
    /// Of a job file.
    pub requests_per_connection: Option<u32>,
}

/// Share of each kind of operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shares {
    pub(super) read: f64,
    pub(super) update: f64,
    pub(super) insert: f64,
    pub(super) scan: f64,
    pub(super) read_modify_write: f64,
}

/// Settings of YCSB's core workload.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // as many as YCSB has
pub struct Settings {
    pub client: Client,
    pub(super) phase: Phase,
    pub(super) table: String,
    pub binding: Binding,
    pub(super) fields: Fields,
    pub(super) keys: KeyNames,
    /// `recordcount`.
    pub(super) records: u64,
    pub(super) insert_start: u64,
    pub(super) shares: Shares,
    pub(super) chooser: Chooser,
    pub(super) read_all_fields: bool,
    pub(super) read_by_name: bool,
    pub(super) write_all_fields: bool,
    pub(super) scan_lengths: ScanLengths,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ScanLengths {
    pub(super) least: u32,
    pub(super) numbers: Numbers,
}

const MOST: u64 = i32::MAX as u64;

impl Settings {
    /// # Errors
    /// A property is wrong; the message names it, its file and line.
    pub fn new(mut properties: Properties, phase: Phase, store: Store) -> Result<Self, LoadError> {
        let unparsed = &mut Unparsed(&mut properties);
        unparsed.workload(phase)?;
        unparsed.reporting()?;
        let records = unparsed.whole("recordcount", 1..=MOST)?.ok_or_else(|| {
            LoadError::Usage("the property recordcount is missing: say how many records there are, as with -p recordcount=1000".to_owned())
        })?;
        let insert_start = unparsed.whole("insertstart", 0..=records - 1)?.unwrap_or(0);
        let most = records - insert_start;
        let insert_count = unparsed.whole("insertcount", 1..=most)?.unwrap_or(most);
        let shares = unparsed.shares()?;
        let client = unparsed.client(phase, insert_count)?;
        let chooser = unparsed.chooser(&Space {
            records,
            insert_start,
            insert_count,
            inserts: client.operations.map_or(0.0, |all| real(all) * shares.insert_share_given),
        })?;
        let fields = unparsed.fields()?;
        let settings = Self {
            binding: unparsed.binding(store)?,
            client,
            phase,
            table: unparsed.name("table")?.unwrap_or_else(|| "usertable".to_owned()),
            fields,
            keys: KeyNames {
                hashed: unparsed.word("insertorder", &["hashed", "ordered"])? == "hashed",
                padding: unparsed.whole("zeropadding", 0..=MOST_DIGITS as u64)?.unwrap_or(1)
                    as usize,
            },
            records,
            insert_start,
            shares: shares.shares,
            chooser,
            read_all_fields: unparsed.flag("readallfields", true)?,
            read_by_name: unparsed.flag("readallfieldsbyname", false)?,
            write_all_fields: unparsed.flag("writeallfields", false)?,
            scan_lengths: unparsed.scan_lengths()?,
        };
        unparsed.refuse_the_rest()?;
        Ok(settings)
    }

    /// Whether an operation of the phase needs it.
    pub(super) fn asks_for(&self, verb: Verb) -> bool {
        let shares = &self.shares;
        match (self.phase, verb) {
            (Phase::Load, _) => verb == Verb::Insert,
            (Phase::Run, Verb::Read) => shares.read + shares.read_modify_write > 0.0,
            (Phase::Run, Verb::Update) => shares.update + shares.read_modify_write > 0.0,
            (Phase::Run, Verb::Insert) => shares.insert > 0.0,
            (Phase::Run, Verb::Scan) => shares.scan > 0.0,
        }
    }

    /// Whether to sum the contents of replies, as they are known.
    #[must_use]
    pub fn checks_contents(&self) -> bool {
        self.fields.known
    }
}

/// The key space over which a distribution is being chosen.
struct Space {
    records: u64,
    insert_start: u64,
    insert_count: u64,
    /// Expected number of inserts in the run.
    inserts: f64,
}

struct GivenShares {
    shares: Shares,
    /// Before shares are made to add up to 1.
    insert_share_given: f64,
}

impl Unparsed<'_> {
    fn workload(&mut self, phase: Phase) -> Result<(), LoadError> {
        const CORE: [&str; 2] =
            ["site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload"];
        if let Some(property) = self.0.take("workload")
            && !CORE.contains(&property.value.as_str())
        {
            return Err(
                property.refused("workload", "only site.ycsb.workloads.CoreWorkload is known")
            );
        }
        let transactions = phase == Phase::Run;
        if let Some(property) = self.0.take("dotransactions") {
            let asked = boolean("dotransactions", &property)?;
            if asked != transactions {
                let command = if asked { "run" } else { "load" };
                let reason = format!("say `tare-load {command}` for this phase");
                return Err(property.refused("dotransactions", &reason));
            }
        }
        Ok(())
    }

    /// What says how to report: an `HdrHistogram` of 1 ns to hours is as fine as any of YCSB's.
    fn reporting(&mut self) -> Result<(), LoadError> {
        if let Some(property) = self.0.take("measurementtype") {
            let reason = match property.value.as_str() {
                "hdrhistogram" | "histogram" | "hdrhistogram+histogram" => None,
                "timeseries" => {
                    Some("use --window SECONDS instead, for the figures of each window")
                }
                "raw" | "hdrhistogram+raw" => Some(
                    "single latencies are not written; --logs DIR writes histograms of each window",
                ),
                _ => Some("must be hdrhistogram, histogram, timeseries or raw"),
            };
            if let Some(reason) = reason {
                return Err(property.refused("measurementtype", reason));
            }
        }
        self.word("measurement.interval", &["both", "op", "intended"])?; // both are always there
        self.whole("histogram.buckets", 1..=MOST)?; // a histogram here has no bound that matters
        self.whole("timeseries.granularity", 1..=MOST)?; // of a type that is refused
        self.only("measurement.trackjvm", "false", "there is no JVM here")?;
        self.only(
            "reportlatencyforeacherror",
            "false",
            "failures are counted by kind and have no latency",
        )?;
        self.only(
            "spin.sleep",
            "false",
            "the kernel's timers wake this program, which never spins",
        )?;
        let why = "a failed insert is counted, and not tried again";
        self.only("core_workload_insertion_retry_limit", "0", why)?;
        self.whole("core_workload_insertion_retry_interval", 0..=MOST)?; // nothing is tried again
        Ok(())
    }

    fn client(&mut self, phase: Phase, insert_count: u64) -> Result<Client, LoadError> {
        let operations = self.whole("operationcount", 0..=MOST)?.filter(|&count| count > 0);
        let seconds = self.whole("maxexecutiontime", 0..=MOST)?.filter(|&seconds| seconds > 0);
        Ok(Client {
            operations: match phase {
                Phase::Load => Some(insert_count),
                Phase::Run => operations,
            },
            time: seconds.map(Duration::from_secs),
            connections: self.whole("threadcount", 1..=1_000_000)?.map(|count| count as u32),
            per_s: self.whole("target", 0..=MOST)?.filter(|&rate| rate > 0).map(real),
            window: self.whole("status.interval", 1..=MOST)?.map(Duration::from_secs),
            requests_per_connection: None,
        })
    }

    fn shares(&mut self) -> Result<GivenShares, LoadError> {
        let mut share = |name: &str, default: f64| {
            self.real(&format!("{name}proportion"), 0.0..=1e9).map(|share| share.unwrap_or(default))
        };
        let (read, update) = (share("read", 0.95)?, share("update", 0.05)?);
        let (insert, scan) = (share("insert", 0.0)?, share("scan", 0.0)?);
        let read_modify_write = share("readmodifywrite", 0.0)?;
        let sum = read + update + insert + scan + read_modify_write;
        if sum <= 0.0 {
            return Err(LoadError::Usage(
                "all of readproportion, updateproportion, insertproportion, scanproportion and readmodifywriteproportion are 0: nothing would be done".to_owned(),
            ));
        }
        Ok(GivenShares {
            shares: Shares {
                read: read / sum,
                update: update / sum,
                insert: insert / sum,
                scan: scan / sum,
                read_modify_write: read_modify_write / sum,
            },
            insert_share_given: insert,
        })
    }

    fn chooser(&mut self, space: &Space) -> Result<Chooser, LoadError> {
        const NAMES: [&str; 7] =
            ["uniform", "zipfian", "ycsb-compat", "latest", "hotspot", "sequential", "exponential"];
        let (from, items) = (space.insert_start, space.insert_count);
        let data = self.real("hotspotdatafraction", 0.0..=1.0)?.unwrap_or(0.2);
        let operations = self.real("hotspotopnfraction", 0.0..=1.0)?.unwrap_or(0.8);
        let percentile = self.real("exponential.percentile", 0.001..=99.999)?.unwrap_or(95.0);
        let fraction = self.real("exponential.frac", 1e-9..=1e9)?.unwrap_or(0.857_142_857_1);
        // YCSB spreads it over the records to come, too, twice as many as are expected, so that
        // popular ones stay so, and draws again where one is not yet there.
        let to_come = (space.inserts * 2.0) as u64;
        Ok(match self.word("requestdistribution", &NAMES)? {
            "uniform" => Chooser::Plain { from, numbers: Numbers::Uniform { items } },
            "zipfian" => Chooser::zipfian(from, items + to_come),
            "ycsb-compat" => Chooser::YcsbCompat {
                from,
                items: items + to_come + 1, // its upper bound is one too far
                scrambled: Scrambled::new(),
            },
            "latest" => Chooser::Latest,
            "hotspot" => {
                Chooser::Plain { from, numbers: Numbers::Hotspot { items, data, operations } }
            }
            "sequential" => Chooser::Sequential { from, items },
            _ => Chooser::Exponential {
                mean: real(space.records) * fraction / -(1.0 - percentile / 100.0).ln(),
            },
        })
    }

    fn fields(&mut self) -> Result<Fields, LoadError> {
        let prefix = self.name("fieldnameprefix")?.unwrap_or_else(|| "field".to_owned());
        let count = self.whole("fieldcount", 1..=10_000)?.unwrap_or(10);
        let distribution = self.0.take("fieldlengthdistribution");
        let length = self.whole("fieldlength", 0..=u64::from(MOST_BYTES))?.unwrap_or(100) as u32;
        let least = self.0.take("minfieldlength");
        let from = match &least {
            Some(property) => number("minfieldlength", property, 0..=u64::from(length))? as u32,
            None => length.min(1),
        };
        let histogram = self.0.take("fieldlengthhistogram");
        let kind = distribution.as_ref().map_or("constant", |property| property.value.as_str());
        let lengths = match kind {
            "constant" => Lengths::Constant(length),
            "uniform" => Lengths::Uniform { from, to: length },
            "zipfian" => {
                let zipfian = Zipfian::new(u64::from(length - from) + 1, EXPONENT);
                Lengths::Zipfian { from, zipfian }
            }
            "histogram" => lengths_of(histogram.as_ref())?,
            _ => {
                let reason = "must be constant, uniform, zipfian or histogram";
                return Err(refused(distribution.as_ref(), "fieldlengthdistribution", reason));
            }
        };
        let known = self.0.take("dataintegrity");
        let integrity =
            known.as_ref().map_or(Ok(false), |property| boolean("dataintegrity", property))?;
        if integrity && kind != "constant" {
            let reason = "content is known only of fields of constant length: leave it out, or fieldlengthdistribution";
            return Err(refused(known.as_ref(), "dataintegrity", reason));
        }
        let names = (0..count).map(|number| format!("{prefix}{number}")).collect();
        Ok(Fields { names, lengths, known: integrity })
    }

    fn scan_lengths(&mut self) -> Result<ScanLengths, LoadError> {
        let most = self.whole("maxscanlength", 1..=1_000_000)?.unwrap_or(1_000);
        let least = self.whole("minscanlength", 1..=most)?.unwrap_or(1);
        let items = most - least + 1;
        let numbers = match self.word("scanlengthdistribution", &["uniform", "zipfian"])? {
            "uniform" => Numbers::Uniform { items },
            _ => Numbers::Zipfian(Zipfian::new(items, EXPONENT)),
        };
        Ok(ScanLengths { least: least as u32, numbers })
    }
}

fn lengths_of(histogram: Option<&Property>) -> Result<Lengths, LoadError> {
    let file = histogram.map_or("hist.txt", |property| property.value.as_str());
    let name = "fieldlengthhistogram";
    let text = std::fs::read_to_string(Path::new(file))
        .map_err(|error| refused(histogram, name, &format!("{file}: {error}")))?;
    Lengths::histogram(&text).map_err(|reason| refused(histogram, name, reason))
}

#[allow(clippy::cast_precision_loss)] // of a number below 2^31
const fn real(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
