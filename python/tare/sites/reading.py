"""Values from a host's pseudo-files. A value that is missing, unreadable or invalid is `None`.

An unreachable host raises `HostSilent` or `TimedOut`: an unknown value is not an absent one.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Mapping, Sequence

from tare.errors import HostSilent, RunFailed, TimedOut
from tare.sites import Completed, Host

_QUICK_S = 10.0
"""Time limit of the small programs that read facts."""
_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ESRCH, errno.ENODEV})
"""ESRCH: the process has ended. ENODEV: the control group or device was removed after its file was opened."""
_BACKTRACE_HINT = "note: run with `RUST_BACKTRACE=1`"
_MOUNTS = re.compile(r"/proc/\d+/mount(?:info|s|stats)")


def is_missing(path: str, number: int | None) -> bool:
    """Whether errno(3) `number` of a read means that the file, or what it tells about, does not exist any more.

    The mounts of a process that is exiting have gone before its directory in /proc (EINVAL, fs/proc_namespace.c).
    """
    return number in _MISSING or (number == errno.EINVAL and _MOUNTS.fullmatch(path) is not None)


def text(host: Host, path: str) -> str | None:
    """Content of a file without surrounding blanks; `None` for an empty file too."""
    try:
        raw = host.read(path)
    except (HostSilent, TimedOut):
        raise
    except RunFailed:
        return None
    return (raw or b"").decode(errors="replace").strip("\0 \t\n") or None


def number(host: Host, path: str) -> int | None:
    """Value of a file that holds one whole number."""
    return as_int(text(host, path))


def as_int(value: str | None) -> int | None:
    """Parse a decimal whole number."""
    try:
        return None if value is None else int(value)
    except ValueError:
        return None


def as_float(value: str | None) -> float | None:
    """Parse a decimal number."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def switch(host: Host, path: str) -> bool | None:
    """Value of a file that holds 0 or 1, N or Y."""
    return {"0": False, "1": True, "N": False, "Y": True}.get(text(host, path) or "")


def chosen(host: Host, path: str) -> str | None:
    """The alternative in brackets of files such as `always [madvise] never`.

    The whole text if there are no brackets.
    """
    content = text(host, path)
    if content is None or "[" not in content:
        return content
    return content.partition("[")[2].partition("]")[0]


def table(content: str | None, separator: str) -> dict[str, str]:
    """Parse `key SEPARATOR value` lines.

    The first of equal keys counts (/proc/cpuinfo repeats keys for each CPU).
    """
    fields: dict[str, str] = {}
    for line in (content or "").splitlines():
        key, mid, value = line.partition(separator)
        if mid:
            fields.setdefault(key.strip(), value.strip())
    return fields


def cpu_list(content: str | None) -> tuple[int, ...] | None:
    """Parse a list of CPUs such as `0-2,7` (cpuset(7), "List format")."""
    if content is None:
        return None
    try:
        ends = [[int(end) for end in part.split("-")] for part in content.split(",") if part.strip()]
    except ValueError:
        return None
    return tuple(cpu for part in ends for cpu in range(part[0], part[-1] + 1))


def last_line(done: Completed) -> str:
    """The reason that a failed program gave: the last line that it printed."""
    return last_line_of(done.stderr) or last_line_of(done.stdout) or "it printed nothing"


def last_line_of(output: bytes) -> str:
    """Last line of a program's output that is no hint of Rust's how to get more lines; empty without one."""
    lines = (line.strip() for line in output.decode(errors="replace").splitlines())
    told = [line for line in lines if line and not line.startswith(_BACKTRACE_HINT)]
    return told[-1] if told else ""


def names(host: Host, directory: str) -> tuple[str, ...]:
    """Names in a directory, sorted; empty if it does not exist."""
    return tuple(sorted(answer(host, ["ls", "-1", "--", directory]).splitlines()))


def sysctls(host: Host, wanted: Iterable[str], within: Sequence[str] = ()) -> Mapping[str, str] | None:
    """Settings of the kernel by name, those that it has; `within`: a command that enters a namespace first."""
    paths = {name: f"/proc/sys/{name.replace('.', '/')}" for name in wanted}
    # `-s` and `true`: a kernel that lacks one of them still tells the others.
    argv = [*within, "sh", "-c", 'grep -sH "" "$@"; true', "sh", *paths.values()]
    lines = table(answer(host, argv), ":")
    return {name: " ".join(lines[path].split()) for name, path in paths.items() if path in lines} or None


def answer(host: Host, argv: Iterable[str], *, partial: bool = False) -> str:
    """Output of a small program; empty if it is missing or fails.

    `partial`: also of one that fails, as `find` and `grep` do if one of many files of /proc has just gone away.
    """
    try:
        done = host.run(list(argv), timeout_s=_QUICK_S, env={"PATH": _PATH, "LC_ALL": "C"}, check=False)
    except (HostSilent, TimedOut):
        raise
    except RunFailed:
        return ""
    return done.text if partial or done.code == 0 else ""


def runs(host: Host, argv: Iterable[str]) -> bool:
    """Whether a program exists and succeeds."""
    try:
        return host.run(list(argv), timeout_s=_QUICK_S, check=False).code == 0
    except (HostSilent, TimedOut):
        raise
    except RunFailed:
        return False


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


LAST_BYTES = 1 << 20
_TAIL_S = 60.0


def ending(host: Host, path: str, most_bytes: int = LAST_BYTES) -> bytes:
    """The end of a program's output, which may be larger than memory; empty if there is no such file."""
    told = host.run(["stat", "-c", "%s", "--", path], timeout_s=_TAIL_S, check=False).text.strip()
    if told.isdecimal() and int(told) > most_bytes:
        return host.run(["tail", "-c", str(most_bytes), "--", path], timeout_s=_TAIL_S).stdout
    return host.read(path) or b""
