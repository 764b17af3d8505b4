//! From options to YCSB's core workload.

use std::sync::Arc;

use tare_load::LoadError;
use tare_load::protocol::{Access, Statement};
use tare_load::workload::ycsb::{self, Properties, Settings, Store, Ycsb};

use crate::options::{ProtocolName, RunOptions};
use crate::request::{LoadRequest, Phase, refuse_what_loading_decides};

pub(crate) fn request(
    options: &RunOptions,
    phase: Phase,
    mut access: Access,
) -> Result<LoadRequest, LoadError> {
    let store = match options.protocol {
        ProtocolName::Redis => Store::Redis,
        ProtocolName::Postgresql | ProtocolName::Mysql => Store::Sql,
        ProtocolName::Cql => Store::Cassandra,
        ProtocolName::Mongodb => Store::Mongodb,
    };
    let ycsb_phase = match phase {
        Phase::Load => ycsb::Phase::Load,
        Phase::Run => ycsb::Phase::Run,
    };
    let properties = Properties::read(&options.property_files, &options.properties)?;
    let mut settings = Settings::new(properties, ycsb_phase, store)?;
    if phase == Phase::Load {
        refuse_what_loading_decides(options)?;
    }
    access.check_contents = settings.checks_contents();
    access.read_level.clone_from(&settings.binding.read_level);
    access.write_level.clone_from(&settings.binding.write_level);
    if store == Store::Cassandra {
        let keyspace = access.database.unwrap_or(settings.binding.keyspace);
        access.database = Some(keyspace.clone());
        settings.binding.keyspace = keyspace;
    }
    let client = settings.client;
    let statement = |text| Statement { text, ..Statement::default() };
    let before = ycsb::preparations(&settings, store).into_iter().map(statement).collect();
    let workload = Arc::new(Ycsb::new(settings, store));
    Ok(LoadRequest { access, before, workload, after: Vec::new(), client })
}
