//! The reference page and the declared tables are the same.

use std::path::Path;

const MARK: &str =
    "<!-- Written by `TARE_WRITE_DOCS=1 cargo test -p tare-record --test reference`. -->\n\n";

#[test]
fn the_reference_page_tells_every_column() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/trace-format.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (before, documented) =
        text.split_once(MARK).expect("the mark after which the tables stand");
    let declared = tare_record::reference::markdown();
    if std::env::var_os("TARE_WRITE_DOCS").is_some() {
        std::fs::write(&page, format!("{before}{MARK}{declared}")).expect("written");
        return;
    }
    assert!(
        documented == declared,
        "docs/reference/trace-format.md is stale: run what its mark says"
    );
}
