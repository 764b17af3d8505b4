//! `tare-load plan`: prints the requests that would be sent.

use std::io::Write;

use tare_load::LoadError;
use tare_load::plan::Plan;
use tare_load::protocol::{Value, Values};
use tare_load::workload::Stream;

/// One line per request: connection, operation, kind, statement, and its values as JSON.
pub(crate) fn operations(plan: &Plan, first: u64) -> Result<(), LoadError> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut values = Values::default();
    let connections = plan.connections as u64;
    for connection in 0..connections {
        let mut stream = Stream::new(plan.seed, connection, connections);
        for number in 0..first {
            let mut operation = plan.workload.draw(&mut stream);
            let kind = &plan.workload.kinds()[usize::from(operation.kind)];
            loop {
                values.clear();
                let request = plan.workload.request(&mut operation, &mut values);
                let text = &plan.workload.statements()[request.statement].text;
                let values: Vec<serde_json::Value> = values.iter().map(shown).collect();
                let values = serde_json::Value::from(values);
                writeln!(out, "{connection} {number} {kind}: {text} {values}")
                    .map_err(LoadError::Output)?;
                if request.last {
                    break;
                }
            }
            plan.workload.ended(&operation);
        }
    }
    out.flush().map_err(LoadError::Output)
}

fn shown(value: Value<'_>) -> serde_json::Value {
    match value {
        Value::Integer(number) => number.into(),
        Value::Text(text) => String::from_utf8_lossy(text).into(),
    }
}
