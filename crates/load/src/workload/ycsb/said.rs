//! Parsing of properties: each is taken out, and the rest is refused.

use std::ops::RangeInclusive;

use super::properties::{Properties, Property};
use crate::error::LoadError;

/// Names of unsupported properties, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("db", "a Java class drives nothing here: leave it out and say --protocol"),
    ("exporter", "there is one document, on standard output: leave it out"),
    ("exportfile", "the document goes to standard output: leave it out and redirect that"),
    ("label", "there are no status lines to be labelled: leave it out"),
    ("status", "say --progress instead"),
    ("hdrhistogram.fileoutput", "say --logs DIR instead"),
    ("hdrhistogram.output.path", "say --logs DIR instead"),
    (
        "hdrhistogram.percentiles",
        "the document's quantiles are fixed, and --logs DIR writes whole histograms",
    ),
    ("measurement.histogram.verbose", "say --logs DIR instead, which writes whole histograms"),
    ("measurement.raw.no_summary", "single latencies are not written: leave it out"),
    ("measurement.raw.output_file", "single latencies are not written: leave it out"),
    ("latencytrackederrors", "failures are counted by kind and have no latency: leave it out"),
    (
        "core_workload_insertion_keep_going_on_error",
        "YCSB 0.17 has no such property, and a failed insert ends nothing here: leave it out",
    ),
    ("redis.host", "say --address HOST:PORT instead"),
    ("redis.port", "say --address HOST:PORT instead"),
    ("redis.password", "say --password-file FILE instead"),
    ("redis.timeout", "say --reply-limit SECONDS instead"),
    ("redis.cluster", "a cluster of Redis is not driven"),
    ("hosts", "say --address HOST:PORT instead"),
    ("port", "say --address HOST:PORT instead"),
    ("mongodb.url", "say --address HOST:PORT and --database instead"),
    ("mongodb.maxconnections", "say --connections instead"),
    ("cassandra.username", "say --user instead"),
    ("cassandra.password", "say --password-file FILE instead"),
    ("cassandra.coreconnections", "say --connections instead"),
    ("cassandra.maxconnections", "say --connections instead"),
    ("cassandra.connecttimeoutmillis", "say --connect-limit SECONDS instead"),
    ("cassandra.readtimeoutmillis", "say --reply-limit SECONDS instead"),
    ("jdbc.fetchsize", "a scan's rows come in one reply: leave it out"),
    ("jdbc.batchupdateapi", "inserts are single statements: leave it out"),
    ("db.batchsize", "inserts are single statements: leave it out"),
    ("batchsize", "inserts are single commands: leave it out"),
    ("db.driver", "say --protocol instead"),
    ("db.url", "say --address HOST:PORT and --database instead"),
    ("db.user", "say --user instead"),
    ("db.passwd", "say --password-file FILE instead"),
];

/// Properties that were not parsed yet; each method takes some.
pub(super) struct Said<'a>(pub(super) &'a mut Properties);

impl Said<'_> {
    pub(super) fn refuse_the_rest(&self) -> Result<(), LoadError> {
        match self.0.rest().next() {
            None => Ok(()),
            Some((name, said)) => {
                let reason = REFUSED.iter().find(|(known, _)| known == name).map(|(_, why)| *why);
                Err(said.refused(name, reason.unwrap_or("tare-load knows no such property; docs/reference/workloads/tare-load-ycsb.md lists them")))
            }
        }
    }

    /// One of the words; the first if the property is not set.
    pub(super) fn word<'w>(&mut self, name: &str, words: &[&'w str]) -> Result<&'w str, LoadError> {
        match self.0.take(name) {
            None => Ok(words[0]),
            Some(said) => {
                let known = words.iter().find(|word| **word == said.value);
                known.copied().ok_or_else(|| {
                    said.refused(name, &format!("must be one of {}", words.join(", ")))
                })
            }
        }
    }

    pub(super) fn whole(
        &mut self,
        name: &str,
        bounds: RangeInclusive<u64>,
    ) -> Result<Option<u64>, LoadError> {
        self.0.take(name).map(|said| number(name, &said, bounds)).transpose()
    }

    pub(super) fn real(
        &mut self,
        name: &str,
        bounds: RangeInclusive<f64>,
    ) -> Result<Option<f64>, LoadError> {
        let Some(said) = self.0.take(name) else { return Ok(None) };
        let found = said.value.parse().ok().filter(|value| bounds.contains(value));
        let reason = || format!("must be a number from {} to {}", bounds.start(), bounds.end());
        found.map(Some).ok_or_else(|| said.refused(name, &reason()))
    }

    pub(super) fn flag(&mut self, name: &str, default: bool) -> Result<bool, LoadError> {
        self.0.take(name).map_or(Ok(default), |said| boolean(name, &said))
    }

    /// Refuses any value other than the only supported one.
    pub(super) fn only(&mut self, name: &str, value: &str, reason: &str) -> Result<(), LoadError> {
        match self.0.take(name).filter(|said| said.value != value) {
            None => Ok(()),
            Some(said) => Err(said.refused(name, &format!("{reason}: leave it out"))),
        }
    }

    /// A plain word that can be used in statements.
    pub(super) fn name(&mut self, name: &str) -> Result<Option<String>, LoadError> {
        let Some(said) = self.0.take(name) else { return Ok(None) };
        let plain = |text: &str| {
            text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
                && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        if plain(&said.value) {
            Ok(Some(said.value))
        } else {
            Err(said.refused(name, "must be letters, digits and _, and start with no digit"))
        }
    }
}

/// Makes the error for a property that may not be set.
pub(super) fn refused(said: Option<&Property>, name: &str, reason: &str) -> LoadError {
    said.map_or_else(
        || LoadError::Usage(format!("{name}: {reason}")),
        |said| said.refused(name, reason),
    )
}

pub(super) fn number(
    name: &str,
    said: &Property,
    bounds: RangeInclusive<u64>,
) -> Result<u64, LoadError> {
    let reason = || format!("must be a whole number from {} to {}", bounds.start(), bounds.end());
    let found = said.value.parse().ok().filter(|value| bounds.contains(value));
    found.ok_or_else(|| said.refused(name, &reason()))
}

pub(super) fn boolean(name: &str, said: &Property) -> Result<bool, LoadError> {
    match said.value.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(said.refused(name, "must be true or false")),
    }
}
