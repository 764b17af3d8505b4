//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use tare_load::arrivals::Spacing;

use crate::echo::{AskOptions, EchoOptions};
use crate::sysbench::SysbenchOptions;

/// Sends requests to a database, in a closed loop or at intended times, and measures each reply.
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
  tare-load run --protocol postgresql --database bench --pgbench tpcb-like@9 --pgbench script.sql --scale 10
  tare-load run --protocol mysql --database tpcc --tpcc 10 --connections 16 --max-tries 10 --duration 60
  tare-load climb --protocol redis --address db:6379 --job job.yaml --connections 50 --within-ms 5
  tare-load run --protocol redis --job job.yaml --json > a.json; tare-load compare a.json b.json
  tare-load plan --protocol redis --job job.yaml --seed 7 --first 20
  tare-load completion bash > /etc/bash_completion.d/tare-load; tare-load man | man -l -

Exit codes: 0 complete; 1 this machine failed; 2 wrong arguments; 3 no connection or log-in;
4 the server went away (the document has the counts until then); 5 no operation had a right reply, or some
records were not loaded;
130 interrupted.";

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Send requests, measure replies, and print a table, or one JSON document unless to a terminal
    Run(Box<RunOptions>),
    /// Create and fill the tables that the operations need, or insert YCSB's records; print a JSON document
    Load(Box<RunOptions>),
    /// Find the highest rate whose latency stays within a limit: double it while it holds, then bisect
    Climb(Box<ClimbOptions>),
    /// Compare the documents of two runs: ratios with intervals from their windows
    Compare(CompareOptions),
    /// Print the operations that a seed generates; send nothing
    Plan(Box<PlanOptions>),
    /// Run a server that only answers RESP: the reply to `GET N` has N bytes
    Echo(EchoOptions),
    /// Send one command to a server that speaks RESP, and print the answer
    Ask(AskOptions),
    /// Print the completion of a shell
    Completion { shell: Shell },
    /// Print the manual page
    Man,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolName {
    /// RESP: Redis, Valkey
    Redis,
    /// PostgreSQL protocol version 3, with prepared statements
    Postgresql,
    /// CQL native protocol, version 5 or 4: Cassandra
    Cql,
    /// `MySQL`, `MariaDB`, Percona Server: binary protocol, with prepared statements
    Mysql,
    /// `MongoDB` wire protocol (`OP_MSG`): `FerretDB` (`MongoDB` itself was not tried)
    Mongodb,
}

impl ProtocolName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Postgresql => "postgresql",
            Self::Cql => "cql",
            Self::Mysql => "mysql",
            Self::Mongodb => "mongodb",
        }
    }

    /// Default port of such a server.
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
    /// Equal gaps
    Even,
    /// Exponential gaps, as from independent users
    Poisson,
}

impl SpacingName {
    pub(crate) fn of(self) -> Spacing {
        match self {
            Self::Even => Spacing::Even,
            Self::Poisson => Spacing::Poisson,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyName {
    /// Check nothing: a man in the middle could pose as the server
    None,
    /// Check that an authority of --ca signed the certificate
    Ca,
    /// Check the signature, and that the certificate names the host of --address
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompressionName {
    Lz4,
    /// By version 4 of the protocol
    Snappy,
}

impl CompressionName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    /// Document of `run --json`
    pub a: PathBuf,
    /// Another one; ratios are B / A
    pub b: PathBuf,
    /// Print JSON in a terminal too
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClimbOptions {
    /// Limit of the latency
    #[arg(long, value_name = "MS", value_parser = positive)]
    pub within_ms: f64,
    /// Quantile of the latency that must be within the limit
    #[arg(long, value_name = "SHARE", default_value_t = 0.99, value_parser = share)]
    pub quantile: f64,
    /// First rate; it doubles while it holds
    #[arg(long, value_name = "PER_SECOND", default_value_t = 1_000.0, value_parser = positive)]
    pub from: f64,
    /// Highest rate to try
    #[arg(long, value_name = "PER_SECOND", default_value_t = 10_000_000.0, value_parser = positive)]
    pub to: f64,
    /// Share by which the lowest rate that failed may be above the result
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = share)]
    pub resolution: f64,
    /// --duration is the time for which each rate is held [default: 5]
    #[command(flatten)]
    pub run: RunOptions,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (1e-6..=1e9).contains(number));
    number.ok_or_else(|| "this is no number above 0".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (1e-4..1.0).contains(number));
    number.ok_or_else(|| "this is no share between 0 and 1".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct PlanOptions {
    #[command(flatten)]
    pub run: RunOptions,
    /// Number of operations to print for each connection
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub first: u64,
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Protocol of the server
    #[arg(long, value_enum)]
    pub protocol: ProtocolName,
    /// Address of the server, `unix:PATH` for a Unix socket; for a Cassandra cluster, of each node [default: 127.0.0.1
    /// with the protocol's port]
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub address: Vec<String>,
    /// Log in as this user
    #[arg(long)]
    pub user: Option<String>,
    /// Read the password from the first line of this file
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Database to use; for Redis its number
    #[arg(long)]
    pub database: Option<String>,

    /// Compress what goes over connections of CQL
    #[arg(long, value_enum)]
    pub compression: Option<CompressionName>,
    /// Encrypt every connection
    #[arg(long)]
    pub tls: bool,
    /// Certificates of trusted authorities, in PEM
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub ca: Option<PathBuf>,
    /// Certificate of this client, in PEM, for a server that wants one
    #[arg(long, value_name = "FILE", requires_all = ["tls", "key"])]
    pub cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// What to check of the server's certificate
    #[arg(long, value_enum, requires = "tls", default_value_t = VerifyName::Full)]
    pub tls_verify: VerifyName,

    /// Operations from a job file in YAML or JSON
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sysbench", "property_files", "properties"])]
    pub job: Option<PathBuf>,
    /// Operations from a property file of YCSB's core workload; later files override earlier ones
    #[arg(short = 'P', value_name = "FILE", conflicts_with = "sysbench")]
    pub property_files: Vec<PathBuf>,
    /// A property of YCSB's core workload; overrides property files
    #[arg(short = 'p', value_name = "NAME=VALUE", conflicts_with = "sysbench")]
    pub properties: Vec<String>,
    /// Seed of the operations: each connection sends the same operations in the same order for the same seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Number of connections [default: YCSB's threadcount, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: Option<u32>,
    /// Requests in flight on one connection
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=32_000))]
    pub depth: u16,
    /// Close a connection after so many requests and open it anew; connecting is then the operation `connect`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub requests_per_connection: Option<u32>,
    /// Threads that send and read, one per core
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    pub threads: u16,

    /// Open loop: arrivals per second over all connections [default: YCSB's target, if any]
    #[arg(long, value_name = "PER_SECOND", conflicts_with_all = ["stages", "trace"])]
    pub rate: Option<f64>,
    /// Open loop: SECONDS:RATE or SECONDS:FROM..TO, separated by commas, repeated from the first
    #[arg(long, value_name = "STAGES", conflicts_with = "trace")]
    pub stages: Option<String>,
    /// Open loop: arrivals from a CSV file; first column: seconds, column `operation`: optional kind of operation
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Spacing of the arrivals of --rate and --stages
    #[arg(long, value_enum, default_value_t = SpacingName::Even)]
    pub spacing: SpacingName,
    /// Most arrivals that may wait to be sent; further ones are missed [default: 10 seconds of the highest rate]
    #[arg(long, value_name = "N")]
    pub most_waiting: Option<usize>,

    /// Send without measuring for this long first, on the same connections
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub warm_up: f64,
    /// Length of the measurement [default: YCSB's maxexecutiontime and operationcount, or 10]
    #[arg(long, value_name = "SECONDS", conflicts_with = "operations")]
    pub duration: Option<f64>,
    /// Measure this number of operations instead
    #[arg(long, value_name = "N")]
    pub operations: Option<u64>,
    /// Send only in the turns of this file (JSON), which is waited for once all connections are open
    #[arg(long, value_name = "FILE", conflicts_with_all = ["duration", "operations", "trace", "warm_up"])]
    pub turns: Option<PathBuf>,
    /// Length of a reporting window [default: YCSB's status.interval, or 1]
    #[arg(long, value_name = "SECONDS")]
    pub window: Option<f64>,

    /// Time limit for connecting and logging in
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    pub connect_limit: f64,
    /// Time limit for a reply; the connection then counts as lost
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub reply_limit: f64,
    /// Time limit for requests still in flight at the end
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub drain_limit: f64,
    /// Time limit for reconnecting after the server closed a connection; the server then counts as gone
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    pub reconnect_limit: f64,
    /// Take the kernel's receive time of one in N reads; 0: never
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub receive_share: u32,
    /// Open loop: longest polling before an arrival, on machines that wake a sleeping thread late; 0: never
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub poll_us: u32,

    /// Write `HdrHistogram` interval logs to this directory
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Print the JSON document in a terminal too, where a table is the default
    #[arg(long)]
    pub json: bool,
    /// Print each window to standard error as a line of JSON
    #[arg(long)]
    pub progress: bool,

    #[command(flatten)]
    pub sysbench: SysbenchOptions,
    #[command(flatten)]
    pub pgbench: PgbenchOptions,
    #[command(flatten)]
    pub tpcc: TpccOptions,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "pgbench's scripts")]
pub(crate) struct PgbenchOptions {
    /// Operations: transactions of tpcb-like, simple-update, select-only or a script file; several are drawn by weight
    #[arg(long, value_name = "SCRIPT[@WEIGHT]", conflicts_with_all = ["job", "sysbench", "property_files", "properties"])]
    pub pgbench: Vec<String>,
    /// Scale of the tables: 100,000 accounts each
    #[arg(long, value_name = "N", default_value_t = 1, requires = "pgbench", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub scale: u32,
    /// Set a variable of the scripts to a number
    #[arg(long, value_name = "NAME=NUMBER", requires = "pgbench", value_parser = defined)]
    pub define: Vec<(String, f64)>,
    /// Tries of a transaction that ends in a serialization failure or a deadlock
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_tries: u32,
}

fn defined(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("this is not NAME=NUMBER")?;
    let value = value.parse().map_err(|_| format!("`{value}` is no number"))?;
    Ok((name.to_owned(), value))
}

#[derive(Debug, Args)]
#[command(next_help_heading = "A workload after TPC-C (not audited, no TPC results)")]
pub(crate) struct TpccOptions {
    /// Operations: the five transactions of TPC-C on the tables of sysbench-tpcc, with so many warehouses
    #[arg(long, value_name = "WAREHOUSES", conflicts_with_all = ["job", "sysbench", "property_files", "properties", "pgbench"], value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub tpcc: Option<u32>,
    /// Sets of tables: warehouse1, warehouse2, …
    #[arg(long, value_name = "N", default_value_t = 1, requires = "tpcc", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub tpcc_tables: u32,
    /// Share of the standard's keying and think times for which a connection waits after a transaction
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "tpcc", conflicts_with_all = ["rate", "stages", "trace"])]
    pub tpcc_think: f64,
}
