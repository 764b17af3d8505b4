//! Statements that are executed once, outside the measurement: blocking, each on its own connection.

use super::connect;
use crate::error::{Fault, LoadError};
use crate::plan::Plan;
use crate::protocol::{Protocol, Reply, Statement, Status, Values};

/// Time limit of a statement: making a table may take long.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(3600);

/// # Errors
/// A statement cannot be executed; the remaining ones are not tried.
pub(super) fn execute<P: Protocol>(plan: &Plan, statements: &[Statement]) -> Result<(), LoadError> {
    for statement in statements {
        call::<P>(plan, statement)
            .map_err(|source| LoadError::Connect { address: plan.address.clone(), source })?;
    }
    Ok(())
}

fn call<P: Protocol>(plan: &Plan, statement: &Statement) -> Result<(), Fault> {
    let (mut wire, mut protocol) = connect::dial::<P>(plan, 0, std::slice::from_ref(statement))?;
    let mut out = Vec::new();
    protocol.encode(0, &Values::default(), 0, &mut out);
    wire.extend(LIMIT);
    wire.send(&out)?;
    let reply: Reply = loop {
        let decoded = protocol.decode(wire.fill(0)?);
        let decoded = decoded.map_err(|reason| Fault::Malformed { protocol: P::NAME, reason })?;
        wire.take(decoded.consumed)?;
        match decoded.reply {
            Some(reply) => break reply,
            None => wire.read_more()?,
        }
    };
    match reply.status {
        Status::Error(_) => Err(Fault::Statement {
            statement: statement.text.clone(),
            message: protocol.message().to_owned(),
        }),
        Status::Done | Status::Missing => Ok(()),
    }
}
