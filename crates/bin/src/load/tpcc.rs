//! Requests of a workload after TPC-C.

use std::sync::Arc;

use tare_load::LoadError;
use tare_load::protocol::Access;
use tare_load::workload::tpcc::{Fill, Settings, Tpcc, after_filling, before_filling};
use tare_load::workload::ycsb::Client;

use crate::options::RunOptions;
use crate::request::{LoadRequest, Phase, engine, refuse_a_rate};

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
