//! Failures of the program and their exit codes.

use std::process::ExitCode;

use tare_probe::ProbeError;
use tare_record::RecordError;

#[derive(Debug)]
pub(crate) enum Failure {
    Probe(ProbeError),
    Record(RecordError),
    Output(std::io::Error),
    Usage(String),
}

impl Failure {
    /// Exit code. 2: wrong arguments, or what they name does not exist. 3: rows were lost. 1: any other failure.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_)
            | Self::Probe(ProbeError::TargetNotFound { .. } | ProbeError::NothingToSample) => {
                ExitCode::from(2)
            }
            Self::Probe(ProbeError::Dropped { .. }) => ExitCode::from(3),
            Self::Probe(_) | Self::Record(_) | Self::Output(_) => ExitCode::FAILURE,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Probe(error) => error.fmt(formatter),
            Self::Record(error) => error.fmt(formatter),
            Self::Output(error) => write!(formatter, "standard output: {error}"),
            Self::Usage(text) => text.fmt(formatter),
        }
    }
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        Self::Probe(error)
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}
