"""The errors of tare: one tree of exceptions, with the exit code of each.

    TareError                  exit code
    ├── StudyError             2   the study file (or a command line) is wrong
    ├── EnvironmentLacks       3   this machine, user or engine cannot do what was asked
    ├── RunFailed              1   one run ended without a result that may be used
    │   ├── TimedOut           1   … because something took longer than its limit
    │   ├── EngineSilent       1   … because a container engine or a cluster did not answer
    │   ├── PodLost            1   … because a cluster took a pod away, or lost its node
    │   ├── HostSilent         1   … because a host had no process or file left, or was not reached
    │   └── EndedAtOnce        1   … because a program ended while it was being started
    ├── NotComparable          5   arms differ in more than the study names
    └── StoreError             2   a store cannot be opened, or holds something else

Each message says what, where and what to do next, in one sentence a user can act on.
"""

from __future__ import annotations

import errno
from collections.abc import Set
from typing import ClassVar


class TareError(Exception):
    """Root of the tree. If nothing catches the error, `tare` ends with `exit_code`."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return self.what if self.hint is None else f"{self.what} ({self.hint})"


NO_THREAD = "no further thread can be started: Resource temporarily unavailable (see `ulimit -u` and pids.max)"


def is_panic(error: BaseException) -> bool:
    """Whether a Rust library panicked, as polars does on some damaged Parquet files; a panic is no `Exception`."""
    return type(error).__name__ == "PanicException"


def is_thread_refused(error: BaseException) -> bool:
    """Whether the kernel refused a new thread: a limit of user, control group or machine is reached.

    Python raises a `RuntimeError` with this text (_threadmodule.c); a Rust library panics, with an exception type
    that no module exports.
    """
    if is_panic(error):
        return "Resource temporarily unavailable" in str(error)
    return isinstance(error, RuntimeError) and str(error) == "can't start new thread"


class StudyError(TareError):
    """The study file or an argument is invalid; nothing was started."""

    exit_code = 2


class EnvironmentLacks(TareError):
    """The machine, the user's rights or the engine cannot do what the plan needs."""

    exit_code = 3


class RunFailed(TareError):
    """A run ended without a usable result. The study continues; the reason is stored with the run."""


class TimedOut(RunFailed):
    """A call took longer than its limit and was ended."""


class EngineSilent(RunFailed):
    """A container engine or a cluster's API did not answer, or broke a connection, as during its restart."""


class PodLost(RunFailed):
    """A cluster ended or lost a pod: it was evicted or deleted by someone else, or its node stopped answering."""


class HostSilent(RunFailed):
    """A host could not be asked: its answer is unknown, which is not the same as absent."""


NO_FILE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of open(2) by which the host has run out of something, whatever the file."""
NO_PROCESS = NO_FILE | {errno.EAGAIN}
"""The same for fork(2) and execve(2)."""


def host_failed(what: str, number: int | None, why: str | None, *, spent: Set[int] = NO_PROCESS) -> RunFailed:
    """Build the error of an action that failed with errno(3) `number`: `HostSilent` if `number` is in `spent`."""
    kind = HostSilent if number in spent else RunFailed
    return kind(f"{what}: {why}")


class EndedAtOnce(RunFailed):
    """A program ended with an error while it was being started. `how`: how it ended; `words`: its last output."""

    def __init__(self, name: str, how: str, words: str) -> None:
        super().__init__(f"{name} ended at once with {how}: {words}")
        self.how = how
        self.words = words


class NotComparable(TareError):
    """Two runs differ in something that the study does not name as a factor. The study ends; no retry can help."""

    exit_code = 5


class StoreError(TareError):
    """A store is missing, in use, newer than this tare, or damaged."""

    exit_code = 2
