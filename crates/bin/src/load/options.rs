//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::echo::{AskOptions, EchoOptions};
use crate::sysbench::SysbenchOptions;

/// Sends a database requests, closed loop or at intended times, and measures each reply.
///
/// Answers are checked before their time counts. Latency is from the intended time, service time
/// from the actual send. Arrivals that could not be sent are counted as missed, never skipped.
#[derive(Debug, Parser)]
#[command(name = "tare-load", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub action: Action,
}

const EXAMPLES: &str = "\
Examples:
  tare-load run --protocol redis --address db:6379 --job job.yaml --connections 50 --duration 60
  tare-load run --protocol redis --address db:6379 --job job.yaml --rate 20000 --spacing poisson
  tare-load run --protocol redis --address db:6379 --job job.yaml --stages 10:1000,30:1000..9000
  tare-load load --protocol redis --address db:6379 -P workloada -p recordcount=100000 --connections 50
  tare-load run --protocol redis --address db:6379 -P workloada -p recordcount=100000 --duration 60
  tare-load load --protocol mysql --database sbtest --sysbench oltp_read_only --tables 8 --table-size 100000
  tare-load run --protocol mysql --database sbtest --sysbench oltp_read_only --tables 8 --table-size 100000
  tare-load plan --protocol redis --job job.yaml --seed 7 --first 20

Exit codes: 0 complete; 1 this machine failed; 2 asked wrongly; 3 no connection or log-in;
4 the server went away, with the document of what was counted until then; 5 not all records were
loaded; 130 interrupted.";

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Send, measure, and print one JSON document
    Run(Box<RunOptions>),
    /// Make and fill the tables that the operations need, or insert YCSB's records, and print the same document
    Load(Box<RunOptions>),
    /// Print the operations that a seed stands for, and send nothing
    Plan(Box<PlanOptions>),
    /// Be a server that answers RESP and does nothing else: `GET N` has a reply of N bytes
    Echo(EchoOptions),
    /// Ask a server that speaks RESP one thing, and print the answer
    Ask(AskOptions),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolName {
    /// RESP: Redis, Valkey
    Redis,
    /// Version 3 of its protocol, with prepared statements
    Postgresql,
    /// Its native protocol, version 5 or 4: Cassandra
    Cql,
    /// `MySQL`, `MariaDB`, Percona Server: prepared statements in binary
    Mysql,
    /// `OP_MSG`: `FerretDB`, which is not `MongoDB`, and what speaks like it
    Mongodb,
}

impl ProtocolName {
    /// Where such a server listens if nothing else is said.
    pub(crate) fn default_port(self) -> u16 {
        match self {
            Self::Redis => 6379,
            Self::Postgresql => 5432,
            Self::Cql => 9042,
            Self::Mysql => 3306,
            Self::Mongodb => 27017,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpacingName {
    /// As far apart as the rate says
    Even,
    /// Independent users: exponential gaps
    Poisson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyName {
    /// Nothing: whoever stands between could be the server
    None,
    /// An authority of --ca has signed it
    Ca,
    /// An authority of --ca has signed it, and it bears the host of --address
    Full,
}

#[derive(Debug, Args)]
pub(crate) struct PlanOptions {
    #[command(flatten)]
    pub run: RunOptions,
    /// So many operations of each connection
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub first: u64,
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// What the server speaks
    #[arg(long, value_enum)]
    pub protocol: ProtocolName,
    /// Where the server listens; of a cluster of Cassandra, each node [default: 127.0.0.1 with the protocol's port]
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub address: Vec<String>,
    /// Log in as this user
    #[arg(long)]
    pub user: Option<String>,
    /// Read the password from the first line of this file
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// The database to use; with Redis its number
    #[arg(long)]
    pub database: Option<String>,

    /// Encrypt every connection
    #[arg(long)]
    pub tls: bool,
    /// Certificates of the authorities that may have signed the server's, in PEM
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub ca: Option<PathBuf>,
    /// What must hold of the server's certificate
    #[arg(long, value_enum, requires = "tls", default_value_t = VerifyName::Full)]
    pub tls_verify: VerifyName,

    /// The operations: a job file in YAML or JSON
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sysbench", "property_files", "properties"])]
    pub job: Option<PathBuf>,
    /// The operations: a property file of YCSB's core workload, unchanged; later ones override
    #[arg(short = 'P', value_name = "FILE", conflicts_with = "sysbench")]
    pub property_files: Vec<PathBuf>,
    /// A property of YCSB's core workload, which overrides those of files
    #[arg(short = 'p', value_name = "NAME=VALUE", conflicts_with = "sysbench")]
    pub properties: Vec<String>,
    /// The same seed sends the same operations in the same order on each connection
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Connections [default: YCSB's threadcount, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: Option<u32>,
    /// Requests in flight on one connection
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=32_000))]
    pub depth: u16,
    /// Threads that send and read, one a core
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub threads: u16,

    /// Open loop: so many arrivals a second, all connections together [default: YCSB's target, if any]
    #[arg(long, value_name = "PER_SECOND", conflicts_with_all = ["stages", "trace"])]
    pub rate: Option<f64>,
    /// Open loop: SECONDS:RATE or SECONDS:FROM..TO, separated by commas, from the first again after the last
    #[arg(long, value_name = "STAGES", conflicts_with = "trace")]
    pub stages: Option<String>,
    /// Open loop: arrivals from a CSV file whose first column is seconds; a column `operation` says which one
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// How arrivals of --rate and --stages lie apart
    #[arg(long, value_enum, default_value_t = SpacingName::Even)]
    pub spacing: SpacingName,
    /// Arrivals that may wait to be sent; those beyond are missed [default: 10 seconds of the highest rate]
    #[arg(long, value_name = "N")]
    pub most_waiting: Option<usize>,

    /// Send and not count, before the measurement, in the same process and on the same connections
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub warm_up: f64,
    /// Measure so long [default: YCSB's maxexecutiontime and operationcount, or 10]
    #[arg(long, value_name = "SECONDS", conflicts_with = "operations")]
    pub duration: Option<f64>,
    /// Measure so many operations instead
    #[arg(long, value_name = "N")]
    pub operations: Option<u64>,
    /// Length of a window of figures [default: YCSB's status.interval, or 1]
    #[arg(long, value_name = "SECONDS")]
    pub window: Option<f64>,

    /// Give up connecting and logging in after so long
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    pub connect_limit: f64,
    /// A connection whose reply takes longer counts as lost
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub reply_limit: f64,
    /// Wait so long, after the end, for what is still under way
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub drain_limit: f64,
    /// Try so long to reach a server again that closed a connection; then it counts as gone
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    pub reconnect_limit: f64,
    /// Ask the kernel when it received one of so many reads; 0: never
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub receive_share: u32,
    /// Open loop: poll so long before an arrival at most, where this machine wakes a sleeper late; 0: never
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub poll_us: u32,

    /// Write interval logs of `HdrHistogram` into this directory
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Tell each window on standard error, as a line of JSON
    #[arg(long)]
    pub progress: bool,

    #[command(flatten)]
    pub sysbench: SysbenchOptions,
}
