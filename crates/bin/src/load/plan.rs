//! Converts options to a plan, and finds every mistake in them before anything is sent.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tare_load::LoadError;
use tare_load::arrivals::{Arrivals, Stage, Stages, read_trace};
use tare_load::plan::{CONNECT, Length, Limits, Plan};
use tare_load::protocol::{Access, UNIX};
use tare_load::tls::{OwnCertificate, Tls, Verify};
use tare_load::workload::Workload;
use tare_load::workload::job::{Dialect, Job};
use tare_load::workload::sysbench::{Fill, Script, Sysbench, after_filling, before_filling};
use tare_load::workload::ycsb::Client;

use crate::options::{ProtocolName, RunOptions, VerifyName};
use crate::pgbench;
use crate::request::{LoadRequest, Phase, engine, refuse_a_rate};
use crate::sysbench;
use crate::tpcc;
use crate::ycsb;

/// Default time that arrivals may wait.
pub(crate) const WAITING_S: f64 = 10.0;

pub(crate) fn of(options: &RunOptions, phase: Phase) -> Result<Plan, LoadError> {
    may_be_unix(options)?;
    let LoadRequest { mut access, before, workload, after, client } = request(options, phase)?;
    access.keeps_rows = workload.keeps_rows();
    if access.keeps_rows && options.protocol == ProtocolName::Cql {
        return Err(LoadError::Usage("`keep` does not support this protocol".to_owned()));
    }
    let connections = options.connections.or(client.connections).unwrap_or(1);
    if workload.has_steps() && options.depth > 1 {
        return Err(LoadError::Usage(
            "an operation of several steps waits for each reply, so --depth must be 1".to_owned(),
        ));
    }
    if options.threads > 1 && u32::from(options.threads) > connections {
        return Err(LoadError::Usage("there are more --threads than --connections".to_owned()));
    }
    let arrivals = arrivals(options, client.per_s, workload.kinds())?;
    let requests_per_connection = renewal(options, &client, workload.kinds())?;
    Ok(Plan {
        address: address(options),
        others: others(options)?,
        access,
        before,
        workload,
        after,
        seed: options.seed,
        connections: connections as usize,
        depth: options.depth,
        requests_per_connection,
        threads: usize::from(options.threads),
        most_waiting: most_waiting(options, connections, arrivals.as_ref()),
        arrivals,
        warm_up: seconds("--warm-up", options.warm_up, 0.0)?,
        length: length(options, &client)?,
        turns: options.turns.clone(),
        window: match (options.window, client.window) {
            (None, Some(window)) => window,
            (window, _) => seconds("--window", window.unwrap_or(1.0), 0.01)?,
        },
        limits: Limits {
            connect: seconds("--connect-limit", options.connect_limit, 0.001)?,
            reply: seconds("--reply-limit", options.reply_limit, 0.001)?,
            drain: seconds("--drain-limit", options.drain_limit, 0.0)?,
            reconnect: seconds("--reconnect-limit", options.reconnect_limit, 0.0)?,
        },
        receive_share: options.receive_share,
        most_polled: Duration::from_micros(options.poll_us.into()),
    })
}

fn renewal(
    options: &RunOptions,
    client: &Client,
    kinds: &[String],
) -> Result<Option<u32>, LoadError> {
    let every = options.requests_per_connection.or(client.requests_per_connection);
    let wrong = |what: &str| Err(LoadError::Usage(what.to_owned()));
    match every {
        Some(0) => wrong("requests_per_connection must be 1 or more"),
        Some(_) if kinds.iter().any(|kind| kind == CONNECT) => wrong(
            "with requests_per_connection, connecting is the operation `connect`: give yours another name",
        ),
        every => Ok(every),
    }
}

/// The command line takes precedence.
fn length(options: &RunOptions, client: &Client) -> Result<Length, LoadError> {
    if options.turns.is_some() && client.operations.is_some() {
        return Err(LoadError::Usage(
            "--turns says when the run ends: leave operationcount out".to_owned(),
        ));
    }
    if let Some(operations) = options.operations {
        return Ok(Length::Operations(operations));
    }
    if let Some(duration) = options.duration {
        return Ok(Length::Time(seconds("--duration", duration, 0.001)?));
    }
    Ok(match (client.operations, client.time) {
        (Some(operations), Some(time)) => Length::First { operations, time },
        (Some(operations), None) => Length::Operations(operations),
        (None, Some(time)) => Length::Time(time),
        (None, None) => Length::Time(Duration::from_secs(10)),
    })
}

fn request(options: &RunOptions, phase: Phase) -> Result<LoadRequest, LoadError> {
    if let Some(script) = options.sysbench.sysbench {
        return sysbench_request(options, script, phase);
    }
    if let Some(warehouses) = options.tpcc.tpcc {
        return tpcc::request(options, warehouses, phase, access(options)?);
    }
    if !options.pgbench.pgbench.is_empty() {
        return pgbench::request(options, phase, access(options)?);
    }
    if !(options.property_files.is_empty() && options.properties.is_empty()) {
        return ycsb::request(options, phase, access(options)?);
    }
    let Some(job) = &options.job else {
        return Err(LoadError::Usage(
            "there is nothing to do: give a job with --job FILE, a script with --sysbench SCRIPT or --pgbench SCRIPT, TPC-C's transactions with --tpcc WAREHOUSES, or YCSB's properties with -P FILE or -p NAME=VALUE".to_owned(),
        ));
    };
    if phase == Phase::Load {
        return Err(LoadError::Usage(
            "a job file does not describe loading: give a sysbench script with --sysbench, YCSB's properties with -P or -p, or `run` the job".to_owned(),
        ));
    }
    let dialect = match options.protocol {
        ProtocolName::Redis => Dialect::Words,
        ProtocolName::Postgresql | ProtocolName::Mysql | ProtocolName::Cql => Dialect::Sql,
        ProtocolName::Mongodb => Dialect::Json,
    };
    let workload = Arc::new(Job::read(job, dialect)?);
    if options.protocol == ProtocolName::Cql && workload.keeps_rows() {
        return Err(LoadError::Usage("`keep` does not support --protocol cql".to_owned()));
    }
    let (before, after) = (Vec::new(), Vec::new());
    let client =
        Client { requests_per_connection: workload.requests_per_connection, ..Client::default() };
    Ok(LoadRequest { access: access(options)?, before, workload, after, client })
}

/// Events of a sysbench script, or its tables.
fn sysbench_request(
    options: &RunOptions,
    script: Script,
    phase: Phase,
) -> Result<LoadRequest, LoadError> {
    let engine = engine(options.protocol, "--sysbench")?;
    let settings = sysbench::settings(&options.sysbench, script, engine)?;
    let access = access(options)?;
    if phase == Phase::Run {
        let workload = Sysbench::new(settings)
            .map_err(|reason| LoadError::Usage(format!("--sysbench: {reason}")))?;
        let (before, after) = (Vec::new(), Vec::new());
        let workload = Arc::new(workload);
        return Ok(LoadRequest { access, before, workload, after, client: Client::default() });
    }
    refuse_a_rate(options)?;
    let fill = Fill::new(&settings);
    Ok(LoadRequest {
        access,
        before: before_filling(engine, settings.tables),
        client: Client { operations: Some(fill.operations()), ..Client::default() },
        workload: Arc::new(fill),
        after: after_filling(engine, settings.tables, settings.table_size),
    })
}

fn arrivals(
    options: &RunOptions,
    target_per_s: Option<f64>,
    kinds: &[String],
) -> Result<Option<Arrivals>, LoadError> {
    let spacing = options.spacing.of();
    let rate = |stages| Some(Arrivals::Rate { stages, spacing });
    if let Some(text) = &options.stages {
        let stages =
            Stages::parse(text).map_err(|why| LoadError::Usage(format!("--stages: {why}")))?;
        return Ok(rate(stages));
    }
    if let Some(path) = &options.trace {
        return Ok(Some(Arrivals::Trace(Arc::new(read_trace(path, kinds)?))));
    }
    match options.rate.or(target_per_s) {
        None => Ok(None),
        Some(per_s) => {
            let stage = Stage { seconds: 1.0, from_per_s: per_s, to_per_s: per_s };
            Stages::new(vec![stage]).map_err(|_| {
                LoadError::Usage(format!("--rate: {per_s} is not a number of arrivals above 0"))
            })?;
            Ok(rate(Stages::constant(per_s)))
        }
    }
}

fn most_waiting(options: &RunOptions, connections: u32, arrivals: Option<&Arrivals>) -> usize {
    let of_rate = match arrivals {
        Some(Arrivals::Rate { stages, .. }) => (stages.highest_per_s() * WAITING_S) as usize,
        Some(Arrivals::Trace(trace)) => trace.times_ns.len(),
        None => 0,
    };
    options.most_waiting.unwrap_or(of_rate.max(connections as usize))
}

fn may_be_unix(options: &RunOptions) -> Result<(), LoadError> {
    let wrong = |what: &str| Err(LoadError::Usage(what.to_owned()));
    if !options.address.iter().any(|address| address.starts_with(UNIX)) {
        return Ok(());
    }
    if options.protocol == ProtocolName::Cql {
        return wrong("Cassandra has no Unix socket: --address needs HOST:PORT");
    }
    if options.tls {
        return wrong("nobody else reads what goes over a Unix socket: leave --tls out");
    }
    Ok(())
}

/// The first one. PostgreSQL's tools name the directory of its socket.
fn address(options: &RunOptions) -> String {
    let port = options.protocol.default_port();
    let address = options.address.first().cloned().unwrap_or_else(|| format!("127.0.0.1:{port}"));
    match address.strip_prefix(UNIX) {
        Some(at) if options.protocol == ProtocolName::Postgresql && Path::new(at).is_dir() => {
            format!("{}/.s.PGSQL.{port}", address.trim_end_matches('/'))
        }
        _ => address,
    }
}

fn others(options: &RunOptions) -> Result<Vec<String>, LoadError> {
    let others: Vec<String> = options.address.iter().skip(1).cloned().collect();
    let wrong = |what: &str| Err(LoadError::Usage(what.to_owned()));
    if others.is_empty() {
        return Ok(others);
    }
    if options.protocol != ProtocolName::Cql {
        return wrong(
            "several nodes in --address form a cluster, which only --protocol cql supports",
        );
    }
    if options.tls && options.tls_verify == VerifyName::Full {
        return wrong("the nodes of a cluster have different names: use --tls-verify ca");
    }
    Ok(others)
}

fn access(options: &RunOptions) -> Result<Access, LoadError> {
    let password = options.password_file.as_deref().map(first_line).transpose()?;
    if options.compression.is_some() && options.protocol != ProtocolName::Cql {
        return Err(LoadError::Usage("--compression is for --protocol cql alone".to_owned()));
    }
    Ok(Access {
        user: options.user.clone(),
        password,
        database: options.database.clone(),
        compression: options.compression.map(|it| it.name().to_owned()),
        tls: tls(options)?,
        ..Access::default()
    })
}

fn tls(options: &RunOptions) -> Result<Option<Tls>, LoadError> {
    let verify = match options.tls_verify {
        VerifyName::None => Verify::None,
        VerifyName::Ca => Verify::Ca,
        VerifyName::Full => Verify::Full,
    };
    let own = options.cert.as_deref().zip(options.key.as_deref());
    let own = own.map(|(chain, key)| OwnCertificate { chain, key });
    let tls = || Tls::new(&address(options), verify, options.ca.as_deref(), own);
    options.tls.then(tls).transpose()
}

fn first_line(path: &Path) -> Result<String, LoadError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| LoadError::File { path: path.to_owned(), source })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn seconds(option: &str, seconds: f64, least: f64) -> Result<Duration, LoadError> {
    if (least..1e7).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(LoadError::Usage(format!("{option}: {seconds} s is not from {least} to 10000000 s")))
    }
}
