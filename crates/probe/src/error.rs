//! Errors while sampling: what failed, where, and what to do next.

use std::io;
use std::path::PathBuf;

use tare_record::RecordError;

#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error("{name}: {reason}; {advice}")]
    TargetNotFound { name: String, reason: String, advice: &'static str },
    #[error("{path}: {source}; tare-probe needs a mounted /proc")]
    Proc { path: PathBuf, source: io::Error },
    #[error("nothing to sample; give --host, --cgroup, --pid or --netns")]
    NothingToSample,
    #[error("stacks of all CPUs cannot be sampled: {source}; {advice}")]
    Profile { source: io::Error, advice: String },
    #[error("thread {name}: {source}; the machine has no room for another thread")]
    Thread { name: &'static str, source: io::Error },
    #[error("thread {name} ended in a panic; the journal up to there can be converted")]
    Panicked { name: &'static str },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(
        "{rows} rows were dropped because the writer did not keep up: the trace is not complete; lower --hz or name fewer targets"
    )]
    Dropped { rows: u64 },
}
