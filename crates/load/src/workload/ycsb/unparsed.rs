//! Parsing of properties: each known property is taken out, and the rest is refused.

use std::ops::RangeInclusive;

use super::properties::{Properties, Property};
use crate::error::LoadError;

/// Names of unsupported properties, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("db", "Java classes are not used: leave it out and use --protocol"),
    ("exporter", "there is one document, on standard output: leave it out"),
    ("exportfile", "the document goes to standard output: leave it out and redirect stdout"),
    ("label", "there are no status lines to label: leave it out"),
    ("status", "use --progress instead"),
    ("hdrhistogram.fileoutput", "use --logs DIR instead"),
    ("hdrhistogram.output.path", "use --logs DIR instead"),
    (
        "hdrhistogram.percentiles",
        "the document's quantiles are fixed, and --logs DIR writes whole histograms",
    ),
    ("measurement.histogram.verbose", "use --logs DIR instead, which writes whole histograms"),
    ("measurement.raw.no_summary", "single latencies are not written: leave it out"),
    ("measurement.raw.output_file", "single latencies are not written: leave it out"),
    ("latencytrackederrors", "failures are counted by kind and have no latency: leave it out"),
    (
        "core_workload_insertion_keep_going_on_error",
        "YCSB 0.17 has no such property, and a failed insert does not end the load: leave it out",
    ),
    ("redis.host", "use --address HOST:PORT instead"),
    ("redis.port", "use --address HOST:PORT instead"),
    ("redis.password", "use --password-file FILE instead"),
    ("redis.timeout", "use --reply-limit SECONDS instead"),
    ("redis.cluster", "Redis Cluster is not supported"),
    ("hosts", "use --address HOST:PORT instead"),
    ("port", "use --address HOST:PORT instead"),
    ("mongodb.url", "use --address HOST:PORT and --database instead"),
    ("mongodb.maxconnections", "use --connections instead"),
    ("cassandra.username", "use --user instead"),
    ("cassandra.password", "use --password-file FILE instead"),
    ("cassandra.coreconnections", "use --connections instead"),
    ("cassandra.maxconnections", "use --connections instead"),
    ("cassandra.connecttimeoutmillis", "use --connect-limit SECONDS instead"),
    ("cassandra.readtimeoutmillis", "use --reply-limit SECONDS instead"),
    ("jdbc.fetchsize", "a scan's rows come in one reply: leave it out"),
    ("jdbc.batchupdateapi", "inserts are single statements: leave it out"),
    ("db.batchsize", "inserts are single statements: leave it out"),
    ("batchsize", "inserts are single commands: leave it out"),
    ("db.driver", "use --protocol instead"),
    ("db.url", "use --address HOST:PORT and --database instead"),
    ("db.user", "use --user instead"),
    ("db.passwd", "use --password-file FILE instead"),
];

/// Properties that are not parsed yet; each method takes some of them.
pub(super) struct Unparsed<'a>(pub(super) &'a mut Properties);

impl Unparsed<'_> {
    pub(super) fn refuse_the_rest(&self) -> Result<(), LoadError> {
        match self.0.rest().next() {
            None => Ok(()),
            Some((name, property)) => {
                let reason = REFUSED.iter().find(|(known, _)| known == name).map(|(_, why)| *why);
                Err(property.refused(name, reason.unwrap_or("tare-load has no such property; docs/reference/workloads/tare-load-ycsb.md lists them")))
            }
        }
    }

    /// One of the words; the first if the property is not set.
    pub(super) fn word<'w>(&mut self, name: &str, words: &[&'w str]) -> Result<&'w str, LoadError> {
        match self.0.take(name) {
            None => Ok(words[0]),
            Some(property) => {
                let known = words.iter().find(|word| **word == property.value);
                known.copied().ok_or_else(|| {
                    property.refused(name, &format!("must be one of {}", words.join(", ")))
                })
            }
        }
    }

    pub(super) fn whole(
        &mut self,
        name: &str,
        bounds: RangeInclusive<u64>,
    ) -> Result<Option<u64>, LoadError> {
        self.0.take(name).map(|property| number(name, &property, bounds)).transpose()
    }

    pub(super) fn real(
        &mut self,
        name: &str,
        bounds: RangeInclusive<f64>,
    ) -> Result<Option<f64>, LoadError> {
        let Some(property) = self.0.take(name) else { return Ok(None) };
        let found = property.value.parse().ok().filter(|value| bounds.contains(value));
        let reason = || format!("must be a number from {} to {}", bounds.start(), bounds.end());
        found.map(Some).ok_or_else(|| property.refused(name, &reason()))
    }

    pub(super) fn flag(&mut self, name: &str, default: bool) -> Result<bool, LoadError> {
        self.0.take(name).map_or(Ok(default), |property| boolean(name, &property))
    }

    /// Refuses any value other than the only supported one.
    pub(super) fn only(&mut self, name: &str, value: &str, reason: &str) -> Result<(), LoadError> {
        match self.0.take(name).filter(|property| property.value != value) {
            None => Ok(()),
            Some(property) => Err(property.refused(name, &format!("{reason}: leave it out"))),
        }
    }

    /// A plain word that can be used in statements.
    pub(super) fn name(&mut self, name: &str) -> Result<Option<String>, LoadError> {
        let Some(property) = self.0.take(name) else { return Ok(None) };
        let plain = |text: &str| {
            text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
                && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        if plain(&property.value) {
            Ok(Some(property.value))
        } else {
            Err(property.refused(name, "must be letters, digits and _, and not start with a digit"))
        }
    }
}

/// Makes the error for a property that may not be set.
pub(super) fn refused(property: Option<&Property>, name: &str, reason: &str) -> LoadError {
    property.map_or_else(
        || LoadError::Usage(format!("{name}: {reason}")),
        |property| property.refused(name, reason),
    )
}

pub(super) fn number(
    name: &str,
    property: &Property,
    bounds: RangeInclusive<u64>,
) -> Result<u64, LoadError> {
    let reason = || format!("must be a whole number from {} to {}", bounds.start(), bounds.end());
    let found = property.value.parse().ok().filter(|value| bounds.contains(value));
    found.ok_or_else(|| property.refused(name, &reason()))
}

pub(super) fn boolean(name: &str, property: &Property) -> Result<bool, LoadError> {
    match property.value.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(property.refused(name, "must be true or false")),
    }
}
