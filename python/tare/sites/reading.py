"""Values out of a host's pseudo-files. What is not there, cannot be read or makes no sense is `None`.

A host that could not be asked raises `HostSilent` or `TimedOut`: a value that is unknown is not an absent one.
"""

from __future__ import annotations

from collections.abc import Iterable

from tare.errors import HostSilent, RunFailed, TimedOut
from tare.sites import Host

_QUICK_S = 10.0
"""Limit of the small programs that read facts."""


def text(host: Host, path: str) -> str | None:
    """Content without surrounding blanks; an empty file is `None` too."""
    try:
        raw = host.read(path)
    except (HostSilent, TimedOut):
        raise
    except RunFailed:
        return None
    return (raw or b"").decode(errors="replace").strip("\0 \t\n") or None


def number(host: Host, path: str) -> int | None:
    """A file that holds one whole number."""
    return as_int(text(host, path))


def as_int(value: str | None) -> int | None:
    """A whole number, decimal."""
    try:
        return None if value is None else int(value)
    except ValueError:
        return None


def as_float(value: str | None) -> float | None:
    """A decimal number."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def switch(host: Host, path: str) -> bool | None:
    """A file that holds 0 or 1, N or Y."""
    return {"0": False, "1": True, "N": False, "Y": True}.get(text(host, path) or "")


def chosen(host: Host, path: str) -> str | None:
    """The alternative in brackets of files such as `always [madvise] never`; the whole where there is none."""
    content = text(host, path)
    if content is None or "[" not in content:
        return content
    return content.partition("[")[2].partition("]")[0]


def table(content: str | None, separator: str) -> dict[str, str]:
    """`key SEPARATOR value` lines; the first of equal keys counts (as /proc/cpuinfo repeats them by CPU)."""
    fields: dict[str, str] = {}
    for line in (content or "").splitlines():
        key, mid, value = line.partition(separator)
        if mid:
            fields.setdefault(key.strip(), value.strip())
    return fields


def cpu_list(content: str | None) -> tuple[int, ...] | None:
    """CPUs of a list such as `0-2,7` (cpuset(7), "List format")."""
    if content is None:
        return None
    try:
        ends = [[int(end) for end in part.split("-")] for part in content.split(",") if part.strip()]
    except ValueError:
        return None
    return tuple(cpu for part in ends for cpu in range(part[0], part[-1] + 1))


def names(host: Host, directory: str) -> tuple[str, ...]:
    """Names in a directory, sorted; none where it is not there."""
    return tuple(sorted(answer(host, ["ls", "-1", "--", directory]).splitlines()))


def answer(host: Host, argv: Iterable[str]) -> str:
    """What a small program prints; nothing where it is missing or fails."""
    try:
        done = host.run(list(argv), timeout_s=_QUICK_S, env={"PATH": _PATH, "LC_ALL": "C"}, check=False)
    except (HostSilent, TimedOut):
        raise
    except RunFailed:
        return ""
    return done.text if done.code == 0 else ""


def runs(host: Host, argv: Iterable[str]) -> bool:
    """Whether a program is there and ends well."""
    try:
        return host.run(list(argv), timeout_s=_QUICK_S, check=False).code == 0
    except (HostSilent, TimedOut):
        raise
    except RunFailed:
        return False


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
