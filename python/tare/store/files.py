"""The files of a store: their paths, durable writes, and the lock of the one writer."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tare.errors import StoreError, is_thread_refused
from tare.plain_files import NOT_PLAIN, open_plain


@dataclass(frozen=True)
class StoreLayout:
    """Paths of one store; docs/reference/store.md documents every key of them."""

    root: Path

    @property
    def database(self) -> Path:
        """Records, facts and the study."""
        return self.root / "store.sqlite"

    @property
    def raw(self) -> Path:
        """raw/RUN-ATTEMPT/: the tools' own output of each recorded attempt."""
        return self.root / "raw"

    @property
    def staging(self) -> Path:
        """staging/RUN-ATTEMPT/: output of the current attempt; worthless once its process is gone."""
        return self.root / "staging"

    @property
    def copies(self) -> Path:
        """copies/STORE/RUN-ATTEMPT/: raw files of a store at a URL that this machine has made or read."""
        return self.root / "copies"

    @property
    def lock(self) -> Path:
        """Lock file, held (flock(2)) by the one process that writes."""
        return self.root / "lock"

    @property
    def now(self) -> Path:
        """What the writing process is doing, for watchers.

        Replaced by renames, and worthless once that process is gone.
        """
        return self.root / "now.json"


def attempt_name(run_id: object, attempt: object) -> str:
    """Name of an attempt's directory under `raw` and `staging`, from a run's ID and a whole number.

    Raises `StoreError` for anything else, such as a name that leads out: SQLite keeps any value in any column.
    """
    if not isinstance(run_id, str) or not run_id or "/" in run_id or "\0" in run_id:
        raise _no_name("a run", run_id)
    if type(attempt) is not int or attempt < 0:
        raise _no_name("an attempt", attempt)
    return f"{run_id}-{attempt}"


def raw_name(name: object) -> str:
    """Name of a raw file below its attempt's directory, whose own is empty. Raises `StoreError` likewise."""
    if not isinstance(name, str) or name.startswith("/") or "\0" in name or ".." in name.split("/"):
        raise _no_name("a raw file", name)
    return name


def store_name(store_id: object) -> str:
    """Name of a store's directory under `copies`, which is its ID. Raises `StoreError` likewise."""
    if not isinstance(store_id, str) or not store_id.replace("-", "").replace("_", "").isalnum():
        raise _no_name("an ID", store_id)
    return store_id


def _no_name(what: str, name: object) -> StoreError:
    return StoreError(
        f"the store has {what} named {name!r}, a name that tare does not use",
        hint="such a name may make tare read or write files outside the store: do not use this store",
    )


def must_be_plain_store(layout: StoreLayout) -> None:
    """Raise `StoreError` unless tare's names in a store's directory are plain files and directories, or missing.

    Through a link, a command on somebody else's store would read, write or remove other files.
    """
    ends = ("", "-wal", "-shm", "-journal")
    files = (layout.lock, *(layout.root / f"{layout.database.name}{end}" for end in ends))
    for path, right in (
        *((file, stat.S_ISREG) for file in files),
        *((directory, stat.S_ISDIR) for directory in (layout.raw, layout.staging, layout.copies)),
    ):
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue  # missing, or whoever uses it says why it cannot be reached
        if stat.S_ISLNK(mode):
            raise StoreError(f"{path} is a link, and stores have no links", hint=NOT_PLAIN)
        if not right(mode):
            kind = "directory" if right is stat.S_ISDIR else "regular file"
            raise StoreError(f"{path} is not a {kind}", hint="tare does not make such stores: use another store")


_MOST_SYNCED_ALONE = 256
_SYNCED_AT_ONCE = 8


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make a file's content durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move_all_durably(source: Path, target: Path, names: Sequence[str]) -> None:
    """Rename directories of plain files, after writing them all to disk.

    A few files are synced one by one, several at a time, so that they share commits of the journal. For many files,
    one sync(2) is far faster, though it waits for all pending writes of the machine. After a power loss, some
    directories may have been renamed; they have no record yet and are dropped as leftovers.
    """
    paths = [path for name in names for path in ((source / name), *(source / name).rglob("*"))]
    if len(paths) > _MOST_SYNCED_ALONE:
        os.sync()  # on Linux, it returns when everything is on disk
    else:
        _sync_several(paths)
    for name in names:
        (source / name).rename(target / name)
    sync_directory(target)
    sync_directory(source)


def _sync_several(paths: Sequence[Path]) -> None:
    """Sync in parallel, or one after the other if the process limit allows no more threads."""

    def sync(path: Path) -> None:
        sync_directory(path) if path.is_dir() else sync_file(path)

    try:
        with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
            list(pool.map(sync, paths))
    except RuntimeError as error:
        if not is_thread_refused(error):
            raise
        for path in paths:
            sync(path)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock (flock(2), released even by `kill -9`).

    Raises `StoreError` if another process holds it, or if the file cannot be written or locked.
    """
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        raise _not_written(path, error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StoreError(
                f"{path} is not a regular file", hint="tare does not make such stores: use another store"
            )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:  # flock(2) on NFS is fcntl(2), which may raise either
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise StoreError(
                f"the store {path.parent} is being written by another tare (process {holder})",
                hint="wait for it to end, or use another store with --store",
            ) from error
        except OSError as error:
            raise StoreError(
                f"the store {path.parent} cannot be locked: {error.strerror}",
                hint="without locks, as on some network file systems, two runs may write at once: use another",
            ) from error
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise _not_written(path, error) from error
        yield
    finally:
        os.close(descriptor)


def _not_written(lock: Path, error: OSError) -> StoreError:
    return StoreError(
        f"the store {lock.parent} cannot be written: {error.strerror}", hint="`tare report` can still read it"
    )


def holder(path: Path, locks: Path = Path("/proc/locks")) -> int | None:
    """The process that holds the lock, `None` if none does; read from the kernel's list, without touching the lock.

    A line of the list: `1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF` (proc(5)). Trying to take the lock could
    make a `tare run` fail that starts at the same moment.
    """
    try:
        with open_plain(path.parent, path.name) as lock:
            inode, pid = str(os.fstat(lock.fileno()).st_ino), lock.read(32).decode(errors="replace").strip()
        lines = [line.split() for line in locks.read_text().splitlines()]
    except OSError:
        return None
    held_by = [words[4] for words in lines if words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode]
    return int(pid) if pid.isdecimal() and pid in held_by else None
