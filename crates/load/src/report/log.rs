//! Interval logs in `HdrHistogram`'s format 1.3 (V2 with compression), which its tools can read.
//!
//! Times are seconds from the end of the warm-up; values are nanoseconds.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use crate::drive::Mark;
use crate::error::LoadError;
use crate::measure::{Latencies, Phase, Window};

/// A directory with `latency.hlog`, `service.hlog`, `parts.hlog` and `warm-up.hlog`.
pub struct Logs {
    kinds: Vec<String>,
    latency: Log,
    service: Log,
    parts: Log,
    warm_up: Log,
}

impl Logs {
    /// # Errors
    /// The directory or a file cannot be created.
    pub fn create(directory: &Path, kinds: &[String]) -> Result<Self, LoadError> {
        std::fs::create_dir_all(directory)
            .map_err(|source| LoadError::File { path: directory.to_owned(), source })?;
        let log = |name: &str| Log::create(directory.join(name));
        Ok(Self {
            kinds: kinds.to_vec(),
            latency: log("latency.hlog")?,
            service: log("service.hlog")?,
            parts: log("parts.hlog")?,
            warm_up: log("warm-up.hlog")?,
        })
    }

    /// # Errors
    /// A file cannot be written.
    pub fn write(&mut self, window: &Window, mark: Mark) -> Result<(), LoadError> {
        #[allow(clippy::cast_precision_loss)] // a run lasts less than 104 days
        let span = Span {
            base_s: mark.realtime_ns as f64 / 1e9,
            start_s: (window.start_ns as f64 - mark.monotonic_ns as f64) / 1e9,
            length_s: (window.end_ns - window.start_ns) as f64 / 1e9,
        };
        let latency =
            if window.phase == Phase::WarmUp { &mut self.warm_up } else { &mut self.latency };
        // The names end with that of connecting if it is an operation.
        for (kind, name) in window.kinds.iter().chain([&window.connect]).zip(&self.kinds) {
            latency.line(&kind.latency, &span, name)?;
            if window.phase != Phase::WarmUp {
                self.service.line(&kind.service, &span, name)?;
            }
        }
        if window.phase != Phase::WarmUp {
            self.parts.line(&window.lag, &span, "lag")?;
            self.parts.line(&window.waiting, &span, "waiting")?;
            self.parts.line(&window.unread, &span, "unread")?;
        }
        for log in [&mut self.latency, &mut self.service, &mut self.parts, &mut self.warm_up] {
            log.flush()?; // what is measured stays, whatever ends this program
        }
        Ok(())
    }
}

struct Span {
    base_s: f64,
    start_s: f64,
    length_s: f64,
}

struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    serializer: V2DeflateSerializer,
    begun: bool,
}

impl Log {
    fn create(path: PathBuf) -> Result<Self, LoadError> {
        let file =
            File::create(&path).map_err(|source| LoadError::File { path: path.clone(), source })?;
        let serializer = V2DeflateSerializer::new();
        Ok(Self { path, file: BufWriter::new(file), serializer, begun: false })
    }

    fn line(&mut self, values: &Latencies, span: &Span, tag: &str) -> Result<(), LoadError> {
        let written = self.try_line(values, span, tag);
        written.map_err(|source| LoadError::File { path: self.path.clone(), source })
    }

    fn try_line(&mut self, values: &Latencies, span: &Span, tag: &str) -> std::io::Result<()> {
        if !self.begun {
            self.begun = true;
            write!(
                self.file,
                "#[Histogram log format version 1.3]\n\
                 #[BaseTime: {base:.3} (seconds since epoch)]\n\
                 #[StartTime: {base:.3} (seconds since epoch)]\n\
                 #[Values are nanoseconds; Interval_Max is milliseconds]\n\
                 \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
                base = span.base_s
            )?;
        }
        if values.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        self.serializer.serialize(values, &mut bytes).map_err(std::io::Error::other)?;
        #[allow(clippy::cast_precision_loss)] // an hour at most
        let most_ms = values.max() as f64 / 1e6;
        // A tag ends at a comma and must not contain spaces.
        let tag = tag.replace([',', ' ', '\n', '\r'], "_");
        let (start_s, length_s) = (span.start_s, span.length_s);
        let encoded = BASE64_STANDARD.encode(bytes);
        writeln!(self.file, "Tag={tag},{start_s:.3},{length_s:.3},{most_ms:.3},{encoded}")
    }

    fn flush(&mut self) -> Result<(), LoadError> {
        self.file.flush().map_err(|source| LoadError::File { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::measure::window::Outcome;

    #[test]
    fn a_log_is_read_by_histogram_tools() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut logs = Logs::create(directory.path(), &["point read".to_owned()]).expect("made");
        let mut window = Window::new(1);
        window.phase = Phase::Measure;
        (window.start_ns, window.end_ns) = (3_000_000_000, 4_000_000_000);
        (1..=100).for_each(|latency| window.end(0, Outcome::Right, latency * 1_000, None));
        let mark = Mark { monotonic_ns: 1_000_000_000, realtime_ns: 1_700_000_000_000_000_000 };
        logs.write(&window, mark).expect("written");

        let bytes = std::fs::read(directory.path().join("latency.hlog")).expect("there");
        let entries: Vec<LogEntry<'_>> =
            IntervalLogIterator::new(&bytes).map(|entry| entry.expect("well-formed")).collect();
        let interval = entries.iter().find_map(|entry| match entry {
            LogEntry::Interval(interval) => Some(interval),
            _ => None,
        });
        let interval = interval.expect("one interval");
        assert_eq!(interval.start_timestamp().as_secs(), 2);
        assert_eq!(interval.tag().map(|tag| tag.as_str().to_owned()), Some("point_read".into()));
        let bytes = BASE64_STANDARD.decode(interval.encoded_histogram()).expect("base 64");
        let found: Latencies = hdrhistogram::serialization::Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .expect("V2");
        assert_eq!(found.len(), 100);
        assert!(found.equivalent(found.value_at_quantile(0.99), 99_000));
    }
}
