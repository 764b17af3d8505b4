"""Everything tare can say went wrong.

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
    """Root of the tree; `exit_code` is what `tare` ends with when nothing catches it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return self.what if self.hint is None else f"{self.what} ({self.hint})"


NO_THREAD = "no further thread can be started: Resource temporarily unavailable (see `ulimit -u` and pids.max)"


def is_panic(error: BaseException) -> bool:
    """Whether a library in Rust gave up, which is no `Exception`: as polars does on some damaged Parquet files."""
    return type(error).__name__ == "PanicException"


def is_thread_refused(error: BaseException) -> bool:
    """Whether the kernel had no further thread: by the limit of processes of a user, a control group, the machine.

    Python raises a `RuntimeError` in these words (_threadmodule.c), a library in Rust panics, with a type that no
    module names.
    """
    if is_panic(error):
        return "Resource temporarily unavailable" in str(error)
    return isinstance(error, RuntimeError) and str(error) == "can't start new thread"


class StudyError(TareError):
    """A study file or an argument that is not plausible; nothing was started."""

    exit_code = 2


class EnvironmentLacks(TareError):
    """The machine, the user's rights or the engine cannot do what the plan needs."""

    exit_code = 3


class RunFailed(TareError):
    """A run without a usable result. The study goes on; the reason is stored with the run."""


class TimedOut(RunFailed):
    """A call that took longer than its limit and was ended."""


class EngineSilent(RunFailed):
    """An engine that was away, or broke a connection, as one that is restarted does; so too a cluster's API."""


class PodLost(RunFailed):
    """A pod that its cluster ended or lost: evicted, deleted by someone else, its node silent."""


class HostSilent(RunFailed):
    """A host that could not be asked: what it would have answered is unknown, which is not the same as absent."""


NO_FILE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""How open(2) fails for what the host has run out of, whatever the file."""
NO_PROCESS = NO_FILE | {errno.EAGAIN}
"""The same of fork(2) and execve(2)."""


def host_failed(what: str, number: int | None, why: str | None, *, spent: Set[int] = NO_PROCESS) -> RunFailed:
    """`what` could not be done, with `number` of errno(3): `HostSilent` where it is one of `spent`."""
    kind = HostSilent if number in spent else RunFailed
    return kind(f"{what}: {why}")


class EndedAtOnce(RunFailed):
    """A program that had ended with an error before its start was over. `how`: its end; `words`: its last ones."""

    def __init__(self, name: str, how: str, words: str) -> None:
        super().__init__(f"{name} ended at once with {how}: {words}")
        self.how = how
        self.words = words


class NotComparable(TareError):
    """Two runs differ in what the study does not name as its factor; the study ends, no retry mends it."""

    exit_code = 5


class StoreError(TareError):
    """A store that is missing, in use, newer than this tare, or damaged."""

    exit_code = 2
