//! Requests of pgbench's scripts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tare_load::LoadError;
use tare_load::protocol::Access;
use tare_load::workload::pgbench::{
    Accounts, BuiltIn, Chosen, Pgbench, Settings, after_filling, before_filling,
};
use tare_load::workload::ycsb::Client;

use crate::options::{ProtocolName, RunOptions};
use crate::request::{LoadRequest, Phase, refuse_a_rate};

/// Transactions of the scripts, or their tables.
pub(crate) fn request(
    options: &RunOptions,
    phase: Phase,
    access: Access,
) -> Result<LoadRequest, LoadError> {
    let chosen = &options.pgbench;
    if options.protocol != ProtocolName::Postgresql {
        return Err(LoadError::Usage("--pgbench needs --protocol postgresql".to_owned()));
    }
    if phase == Phase::Load {
        refuse_a_rate(options)?;
        let accounts = Accounts::new(chosen.scale);
        return Ok(LoadRequest {
            access,
            before: before_filling(chosen.scale),
            client: Client { operations: Some(accounts.operations()), ..Client::default() },
            workload: Arc::new(accounts),
            after: after_filling(),
        });
    }
    let scripts = chosen.pgbench.iter().map(|text| script(text)).collect::<Result<_, _>>()?;
    let variables: BTreeMap<String, f64> = chosen.define.iter().cloned().collect();
    let (scale, most_tries) = (chosen.scale, chosen.max_tries);
    let workload = Pgbench::new(&Settings { scripts, scale, variables, most_tries })
        .map_err(|reason| LoadError::Usage(format!("--pgbench: {reason}")))?;
    let (before, after) = (Vec::new(), Vec::new());
    let workload = Arc::new(workload);
    Ok(LoadRequest { access, before, workload, after, client: Client::default() })
}

fn script(text: &str) -> Result<Chosen, LoadError> {
    let weighted =
        text.rsplit_once('@').and_then(|(name, weight)| Some((name, weight.parse().ok()?)));
    let (name, weight) = weighted.unwrap_or((text, 1.0));
    let built_in = BuiltIn::ALL.into_iter().find(|script| script.name() == name);
    let path = Path::new(name);
    let text = match built_in {
        Some(_) => String::new(),
        None => std::fs::read_to_string(path)
            .map_err(|source| LoadError::File { path: path.to_owned(), source })?,
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = if built_in.is_some() { name.to_owned() } else { stem };
    Ok(Chosen { name, built_in, text, weight })
}
