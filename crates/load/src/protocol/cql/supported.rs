//! What a server says that it can: the answer to `OPTIONS`.

use super::compress::Compression;
use super::reader::Reader;
use crate::error::Fault;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Supported {
    pub(super) version_5: bool,
    pub(super) compressions: Vec<String>,
}

impl Supported {
    pub(super) fn offers(&self, wanted: Compression) -> Result<(), Fault> {
        if self.compressions.iter().any(|name| name.eq_ignore_ascii_case(wanted.name())) {
            return Ok(());
        }
        let offered = match self.compressions.as_slice() {
            [] => "nothing".to_owned(),
            names => names.join(" and "),
        };
        let name = wanted.name();
        Err(Fault::Unsupported(format!("the server compresses by {offered}, not by {name}")))
    }
}

/// `PROTOCOL_VERSIONS` is such as `4/v4`, and `5/v5-beta` in Cassandra 3.11.
pub(super) fn supported(body: &[u8]) -> Result<Supported, Fault> {
    let mut reader = Reader(body);
    let mut found = Supported::default();
    for _ in 0..reader.short()? {
        let name = reader.string()?;
        let values = reader.strings()?;
        match name.as_str() {
            "PROTOCOL_VERSIONS" => found.version_5 = values.iter().any(|value| value == "5/v5"),
            "COMPRESSION" => found.compressions = values,
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::cql::encode::short_bytes;

    fn options(options: &[(&str, &[&str])]) -> Supported {
        let mut body = (options.len() as u16).to_be_bytes().to_vec();
        for (name, values) in options {
            short_bytes(name.as_bytes(), &mut body);
            body.extend_from_slice(&(values.len() as u16).to_be_bytes());
            values.iter().for_each(|value| short_bytes(value.as_bytes(), &mut body));
        }
        supported(&body).expect("well-formed")
    }

    #[test]
    fn a_draft_of_version_5_is_none() {
        let of = |version: &str| options(&[("PROTOCOL_VERSIONS", &["4/v4", version])]).version_5;
        assert!(of("5/v5") && !of("5/v5-beta"));
        assert!(!options(&[]).version_5);
    }

    #[test]
    fn what_a_server_does_not_offer_is_refused() {
        let both = options(&[("COMPRESSION", &["snappy", "lz4"])]);
        assert!(both.offers(Compression::Lz4).is_ok() && both.offers(Compression::Snappy).is_ok());
        let fault = options(&[("COMPRESSION", &["lz4"])]).offers(Compression::Snappy);
        assert!(fault.expect_err("no").to_string().contains("by lz4, not by snappy"));
        let fault = options(&[]).offers(Compression::Lz4);
        assert!(fault.expect_err("no").to_string().contains("by nothing"));
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = supported(&bytes);
        }
    }
}
