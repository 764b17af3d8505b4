//! A workload after TPC-C: its options.

use std::sync::Arc;

use clap::Args;
use tare_load::LoadError;
use tare_load::protocol::Access;
use tare_load::workload::tpcc::{Fill, Settings, Tpcc, after_filling, before_filling};
use tare_load::workload::ycsb::Client;

use crate::options::RunOptions;
use crate::request::{LoadRequest, Phase, engine, refuse_a_rate};

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

/// Transactions, or their tables.
pub(crate) fn request(
    options: &RunOptions,
    warehouses: u32,
    phase: Phase,
    access: Access,
) -> Result<LoadRequest, LoadError> {
    let think = options.tpcc.tpcc_think;
    if !(0.0..=10.0).contains(&think) {
        return Err(LoadError::Usage("--tpcc-think must be from 0 to 10".to_owned()));
    }
    let settings = Settings {
        engine: engine(options.protocol, "--tpcc")?,
        tables: options.tpcc.tpcc_tables,
        warehouses,
        most_tries: options.pgbench.max_tries,
        think,
    };
    if phase == Phase::Load {
        refuse_a_rate(options)?;
        let fill = Fill::new(settings);
        return Ok(LoadRequest {
            access,
            before: before_filling(&settings),
            client: Client { operations: Some(fill.operations()), ..Client::default() },
            workload: Arc::new(fill),
            after: after_filling(&settings),
        });
    }
    let (before, after) = (Vec::new(), Vec::new());
    let workload = Arc::new(Tpcc::new(settings));
    Ok(LoadRequest { access, before, workload, after, client: Client::default() })
}
