//! Errors with a trace's files: what failed, where, and what to do next.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("{path}: {source}; {advice}")]
    Io { path: PathBuf, source: io::Error, advice: &'static str },
    #[error(
        "{path}: not a journal of tare-probe; give the directory that `tare-probe record` wrote"
    )]
    NotAJournal { path: PathBuf },
    #[error("{path}: written in version {found}, this program reads versions 1 to {newest}; use the tare-probe that wrote it", newest = crate::JOURNAL_VERSION)]
    Version { path: PathBuf, found: u32 },
    #[error(
        "{path}: frame at byte {offset} is damaged ({why}); nothing after it was read; `--salvage` converts what stands before it"
    )]
    Damaged { path: PathBuf, offset: u64, why: &'static str },
    #[error("{path}: {source}; the journal is kept, run `tare-probe convert` on it again")]
    Parquet { path: PathBuf, source: ::parquet::errors::ParquetError },
    #[error(
        "{path}: {source}; no whole table of tare-probe: where a journal is still beside it, `tare-probe convert` makes it anew"
    )]
    Table { path: PathBuf, source: ::parquet::errors::ParquetError },
    #[error(
        "{path}: cut short before its header, so nothing was recorded; remove it and record again"
    )]
    NoHeader { path: PathBuf },
    #[error("{path}: being recorded or converted by another tare-probe; wait until that ends")]
    InUse { path: PathBuf },
    #[error(
        "{path}: {source}, so it cannot be locked; choose a directory on a file system that has locks"
    )]
    Lock { path: PathBuf, source: io::Error },
    #[error(
        "{path}: the rows that wait there are damaged at position {position} ({why}); the recording ends"
    )]
    Tail { path: PathBuf, position: u64, why: &'static str },
    #[error("{path}: {source}")]
    Json { path: PathBuf, source: serde_json::Error },
}

impl RecordError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let advice = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "the disk is full: the trace ends here and is not complete; free room or choose another --out"
            }
            io::ErrorKind::PermissionDenied => {
                "choose a directory that this user may read and write"
            }
            io::ErrorKind::NotFound => "check the path",
            _ => "check the path and the disk",
        };
        Self::Io { path: path.to_path_buf(), source, advice }
    }
}
