//! The schemas in schemas/ are those of the types.

use std::path::Path;

use super::compare::Comparison;
use super::document::Finished;
use crate::climb::Climbed;

/// `TARE_WRITE_GOLDEN=1` writes them.
#[test]
fn the_schemas_are_those_of_the_types() {
    let schemas = [
        ("tare-load", schemars::schema_for!(Finished)),
        ("tare-load-climb", schemars::schema_for!(Climbed)),
        ("tare-load-compare", schemars::schema_for!(Comparison)),
    ];
    for (name, schema) in schemas {
        let at =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../schemas/{name}.schema.json"));
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).expect("JSON"));
        if std::env::var_os("TARE_WRITE_GOLDEN").is_some() {
            std::fs::write(&at, &text).expect("written");
        }
        let kept = std::fs::read_to_string(&at).unwrap_or_default();
        assert!(kept == text, "{} is out of date: TARE_WRITE_GOLDEN=1", at.display());
    }
}
