//! Writing, reading and listing of files.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::answer::Fault;
use crate::frame::MOST_DATA;

/// File systems of the kernel, where no file can be replaced by renaming.
const PSEUDO: [&str; 2] = ["/proc/", "/sys/"];
/// Largest file that is read together with others.
const SMALL: usize = 1 << 18;
/// Counter for temporary names.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Writes a file atomically, except below /proc and /sys.
pub(crate) fn put(path: &str, mode: u32, content: &[u8]) -> Result<(), Fault> {
    if PSEUDO.iter().any(|place| path.starts_with(place)) {
        return Ok(OpenOptions::new().write(true).open(path)?.write_all(content)?);
    }
    let scratch =
        format!("{path}.{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let written = write_new(&scratch, mode, content).and_then(|()| fs::rename(&scratch, path));
    if written.is_err() {
        let _absent = fs::remove_file(&scratch);
    }
    Ok(written?)
}

fn write_new(path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?; // whatever the umask
    file.write_all(content)
}

/// Temporary files that arrive in parts, so that those of a lost tare can be removed.
#[derive(Default)]
pub(crate) struct Parts(Mutex<BTreeSet<String>>);

impl Parts {
    pub(crate) fn put(&self, scratch: &str, offset: u64, content: &[u8]) -> Result<(), Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(scratch.to_owned());
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(scratch)?;
        let written = file.write_all_at(content, offset);
        if written.is_err() {
            // Keeping the part would only fill the disk.
            let _absent = fs::remove_file(scratch);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(scratch);
        }
        Ok(written?)
    }

    /// Moves a file to its place, if all of its parts have arrived.
    pub(crate) fn whole(
        &self,
        scratch: &str,
        path: &str,
        mode: u32,
        size: u64,
    ) -> Result<(), Fault> {
        let file = File::open(scratch)?;
        let length = file.metadata()?.len();
        if length != size {
            return Err(Fault::Other(format!("{length} of {size} bytes have arrived")));
        }
        file.set_permissions(Permissions::from_mode(mode))?;
        fs::rename(scratch, path)?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(scratch);
        Ok(())
    }

    pub(crate) fn remove_all(&self) {
        for scratch in std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            let _absent = fs::remove_file(scratch);
        }
    }
}

/// Reads up to `limit` bytes from `offset`, and whether the file ends there. `Fault::Absent` if there is no file, or it
/// was of a process that has ended. `regular`: only read a regular file, not through a link.
pub(crate) fn read(
    path: &str,
    offset: u64,
    limit: u64,
    regular: bool,
) -> Result<(Vec<u8>, bool), Fault> {
    let limit = limit.min(MOST_DATA as u64) as usize;
    let opened = if regular { open_regular(path)? } else { File::open(path) };
    opened
        .and_then(|file| read_file(file, offset, limit))
        .map_err(|error| if is_missing(path, &error) { Fault::Absent } else { error.into() })
}

/// Whether a read failed because the file, or what it tells about, does not exist any more: its process has ended
/// (ESRCH), or its control group or device was removed after it was opened (ENODEV). The mounts of a process that is
/// exiting have gone before its directory in /proc (EINVAL, `fs/proc_namespace.c`).
fn is_missing(path: &str, error: &io::Error) -> bool {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::SRCH | Errno::NODEV) => true,
        Some(Errno::INVAL) => is_of_mounts(path),
        _ => false,
    }
}

fn is_of_mounts(path: &str) -> bool {
    let mut parts = path.strip_prefix("/proc/").unwrap_or_default().split('/');
    let is_process = parts.next().is_some_and(|pid| pid.parse::<u32>().is_ok());
    is_process && matches!(parts.next(), Some("mountinfo" | "mounts" | "mountstats"))
}

/// Reads many small files. Returns lengths and contents: the length is -1 if there is no such file, and -2 if the file
/// is longer than `SMALL` or unreadable, so it must be requested alone.
pub(crate) fn read_all(paths: &[String], regular: bool) -> (Vec<i64>, Vec<Vec<u8>>) {
    let (mut lengths, mut contents) = (Vec::new(), Vec::new());
    let mut left = MOST_DATA;
    for path in paths {
        lengths.push(match read(path, 0, SMALL.min(left) as u64, regular) {
            Ok((content, true)) => {
                left -= content.len();
                contents.push(content);
                contents.last().map_or(0, Vec::len) as i64
            }
            Err(Fault::Absent) => -1,
            _ => -2,
        });
    }
    (lengths, contents)
}

/// Opens a file without following a link or waiting for the other end of a pipe.
fn open_regular(path: &str) -> Result<io::Result<File>, Fault> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    match &opened {
        Ok(file) if !file.metadata()?.is_file() => {
            Err(Fault::Other("it is no regular file".to_owned()))
        }
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            Err(Fault::Other("it is a link".to_owned()))
        }
        _ => Ok(opened),
    }
}

fn read_file(mut file: File, offset: u64, limit: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut content = Vec::new();
    let mut block = vec![0; limit.min(1 << 16)];
    loop {
        let wanted = block.len().min(limit - content.len());
        let read = if offset == 0 {
            file.read(&mut block[..wanted]) // pseudo-files may know no other way
        } else {
            file.read_at(&mut block[..wanted], offset + content.len() as u64)
        };
        match read {
            Ok(0) => return Ok((content, wanted > 0)),
            Ok(length) => content.extend_from_slice(&block[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if content.len() == limit {
            return Ok((content, false));
        }
    }
}

/// Lists `path` and, for a directory, everything below it, parents first. Paths are relative to it.
pub(crate) fn list(path: &str) -> Result<Vec<Value>, Fault> {
    let mut found = Vec::new();
    let root = Path::new(path);
    let about = fs::symlink_metadata(root)?;
    found.push(entry("", &about, None)?);
    if about.is_dir() {
        below(root, "", &mut found)?;
    }
    Ok(found)
}

fn below(folder: &Path, prefix: &str, found: &mut Vec<Value>) -> Result<(), Fault> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for each in entries {
        let name = each.file_name().into_string().map_err(|name| {
            Fault::Other(format!("the name {} is not UTF-8", name.to_string_lossy()))
        })?;
        let relative = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let about = each.path().symlink_metadata()?;
        let link = if about.is_symlink() { Some(fs::read_link(each.path())?) } else { None };
        found.push(entry(&relative, &about, link.as_deref())?);
        if about.is_dir() {
            below(&each.path(), &relative, found)?;
        }
    }
    Ok(())
}

fn entry(path: &str, about: &fs::Metadata, link: Option<&Path>) -> Result<Value, Fault> {
    let kind = match () {
        () if about.is_symlink() => "link",
        () if about.is_dir() => "directory",
        () if about.is_file() => "file",
        () => return Err(Fault::Other(format!("{path} is neither file, directory nor link"))),
    };
    let modified_ns = i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec());
    Ok(json!({
        "path": path, "kind": kind, "mode": about.mode() & 0o7777, "size": about.len(),
        "modified_ns": modified_ns as i64, "link": link,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_with_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f").into_os_string().into_string().unwrap();
        put(&path, 0o644, b"old and longer").ok().unwrap();
        put(&path, 0o600, b"new").ok().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn parts_count_only_when_all_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let [scratch, path] =
            ["scratch", "file"].map(|name| folder.path().join(name).display().to_string());
        let parts = Parts::default();
        parts.put(&scratch, 0, b"abc").ok().unwrap();
        assert!(parts.whole(&scratch, &path, 0o640, 6).is_err() && !Path::new(&path).exists());
        parts.put(&scratch, 3, b"def").ok().unwrap();
        parts.put(&scratch, 3, b"def").ok().unwrap();
        parts.whole(&scratch, &path, 0o640, 6).ok().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abcdef");
    }

    #[test]
    fn parts_of_nobody_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = folder.path().join("scratch").display().to_string();
        let parts = Parts::default();
        parts.put(&scratch, 0, b"abc").ok().unwrap();
        parts.remove_all();
        assert!(!Path::new(&scratch).exists());
    }

    #[test]
    fn absent_is_told_from_empty_and_from_forbidden() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("empty"), b"").unwrap();
        assert!(
            matches!(read(&path("empty"), 0, 10, false), Ok((content, true)) if content.is_empty())
        );
        assert!(matches!(read(&path("absent"), 0, 10, false), Err(Fault::Absent)));
        assert!(matches!(read(&path("empty/below"), 0, 10, false), Err(Fault::Absent)));
        assert!(matches!(
            read(&folder.path().display().to_string(), 0, 10, false),
            Err(Fault::System(_))
        ));
        assert!(matches!(read("/proc/self/status", 0, 1 << 20, false), Ok((_, true))));
    }

    #[test]
    fn what_has_gone_since_it_was_opened_is_absent() {
        let is = |path: &str, errno: Errno| is_missing(path, &errno.into());
        assert!(
            is("/proc/7/stat", Errno::SRCH) && is("/sys/fs/cgroup/a/cgroup.procs", Errno::NODEV)
        );
        assert!(is("/proc/7/mountinfo", Errno::INVAL) && !is("/proc/7/mountinfo", Errno::ACCESS));
        for other in ["/proc/7/stat", "/proc/self/mountinfo", "/sys/class/net/a/speed", "/a"] {
            assert!(!is(other, Errno::INVAL), "{other}");
        }
    }

    #[test]
    fn only_a_regular_file_is_read_where_that_was_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("file"), b"abc").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(
            matches!(read(&path("file"), 0, 10, true), Ok((content, true)) if content == b"abc")
        );
        for name in ["link", "pipe"] {
            assert!(matches!(read(&path(name), 0, 10, true), Err(Fault::Other(_))), "{name}");
        }
        assert!(matches!(read(&path("absent"), 0, 10, true), Err(Fault::Absent)));
        assert_eq!(list(&path("link")).ok().unwrap()[0]["kind"], "link");
    }

    #[test]
    fn many_small_files_come_at_once_and_the_others_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("a"), b"abc").unwrap();
        fs::write(path("empty"), b"").unwrap();
        fs::write(path("long"), vec![0; SMALL + 1]).unwrap();
        std::os::unix::fs::symlink(path("a"), path("link")).unwrap();
        let paths = ["a", "absent", "empty", "long", "link", "a"].map(path);
        let (lengths, contents) = read_all(&paths, true);
        assert_eq!(lengths, [3, -1, 0, -2, -2, 3]);
        assert_eq!(contents.concat(), b"abcabc");
        assert_eq!(read_all(&paths, false).0, [3, -1, 0, -2, 3, 3]);
    }

    #[test]
    fn a_long_file_comes_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f").display().to_string();
        fs::write(&path, b"abcdef").unwrap();
        assert!(matches!(read(&path, 0, 4, false), Ok((content, false)) if content == b"abcd"));
        assert!(matches!(read(&path, 4, 4, false), Ok((content, true)) if content == b"ef"));
    }

    #[test]
    fn a_directory_is_listed_parents_first_with_its_links() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("d")).unwrap();
        fs::write(folder.path().join("d/f"), b"x").unwrap();
        std::os::unix::fs::symlink("/nowhere", folder.path().join("l")).unwrap();
        let found = list(&folder.path().display().to_string()).ok().unwrap();
        let listed: Vec<_> = found
            .iter()
            .map(|each| (each["path"].as_str().unwrap(), each["kind"].as_str().unwrap()))
            .collect();
        assert_eq!(listed, [("", "directory"), ("d", "directory"), ("d/f", "file"), ("l", "link")]);
        assert_eq!(found[3]["link"], "/nowhere");
    }
}
