//! Writing of a profile's table.

use std::fs::File;
use std::path::Path;

use ::parquet::basic::{Compression, Encoding};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::columns::{Columns, Given, Holds};
use super::part_of;
use crate::error::RecordError;
use crate::profile::{Facts, Row};

/// Key of the [`Facts`] in the file's footer, as JSON.
const FACTS_KEY: &str = "tare.profile";
const WORDS: [&str; 3] = ["subject", "command", "stack"];
/// Large enough for all stacks of a row group, which are long.
const DICTIONARY_BYTES: usize = 16 << 20;

/// Creates the file under its temporary name, by which others see that the profile has started.
///
/// # Errors
/// Where the disk refuses.
pub fn begin_profile(path: &Path) -> Result<(), RecordError> {
    let part = part_of(path);
    File::create(&part).map(|_| ()).map_err(|error| RecordError::io(&part, error))
}

/// Writes a profile, with rows sorted by stack, so that they compress well.
///
/// # Errors
/// Where the disk refuses.
pub fn write_profile(path: &Path, facts: &Facts, rows: &[Row]) -> Result<(), RecordError> {
    let columns = [("at_ns", Holds::Numbers), ("samples", Holds::Numbers)]
        .into_iter()
        .chain(WORDS.map(|name| (name, Holds::Words)));
    let mut file = Columns::create(path, columns, properties())?;
    let facts = serde_json::to_string(facts)
        .map_err(|source| RecordError::Json { path: path.to_path_buf(), source })?;
    file.tell(FACTS_KEY, facts);
    for row in rows {
        let numbers = [row.at_ns, row.samples].map(|number| Given::Number(Some(number)));
        let words =
            [&row.subject, &row.command, &row.stack].map(|word| Given::Word(Some(word.as_str())));
        file.push(numbers.into_iter().chain(words))?;
    }
    file.close().map(|_| ())
}

fn properties() -> WriterProperties {
    let builder = WriterProperties::builder()
        .set_created_by(format!("tare-probe {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_statistics_enabled(EnabledStatistics::None);
    let of_words = |builder: ::parquet::file::properties::WriterPropertiesBuilder, name: &str| {
        builder
            .set_column_encoding(name.into(), Encoding::PLAIN)
            .set_column_dictionary_enabled(name.into(), true)
    };
    WORDS.iter().fold(builder, |builder, name| of_words(builder, name)).build()
}
