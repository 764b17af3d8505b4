"""Which processes there are, below which others, and which part of a run or of an engine each is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

PARTS = (
    "server",
    "client",
    "tare-probe",
    "dockerd",
    "containerd",
    "a shim",
    "docker-proxy",
    "a pod's sandbox",
    "QEMU",
)
ENGINE = frozenset({"dockerd", "containerd", "a shim", "docker-proxy"})
_BY_NAME: Mapping[str, str] = {
    "redis-server": "server", "mariadbd": "server", "tare-load": "client", "sysbench": "client",
    "tare-probe": "tare-probe", "dockerd": "dockerd", "containerd": "containerd", "containerd-shim": "a shim",
    "docker-proxy": "docker-proxy", "pause": "a pod's sandbox", "qemu-system-x86": "QEMU",
}  # fmt: skip
_BY_WORD: Mapping[str, str] = {
    "org.apache.cassandra.service.CassandraDaemon": "server",
    "org.apache.cassandra.stress": "client",
    "site.ycsb": "client",
}
"""Programs of a JVM, which all have one name."""


def part_of(pid: int) -> str | None:
    """One of `PARTS`; `None` of anything else."""
    name = text(f"/proc/{pid}/comm").strip()
    if name == "java":
        line = text(f"/proc/{pid}/cmdline")
        return next((part for word, part in _BY_WORD.items() if word in line), None)
    return _BY_NAME.get(name)


def ended(pid: int) -> bool:
    """Whether it is gone, or has ended and nobody has waited for it yet: a signal to it strikes nothing."""
    return text(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] in ([], ["Z"], ["X"])


def parents() -> dict[int, int]:
    """The parent of each process."""
    return dict(_parents())


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, IndexError, ValueError):
                yield int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])


def below(pid: int) -> list[int]:
    """Its children, theirs, and so on."""
    of, found, todo = parents(), list[int](), [pid]
    while todo:
        parent = todo.pop()
        children = [child for child, its in of.items() if its == parent]
        found += children
        todo += children
    return found


def only_child(pid: int, within_s: float = 10.0) -> int:
    """The process that it forks, as nsenter(1) does; its own pid where it ends without."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if children := [child for child, parent in parents().items() if parent == pid]:
            return children[0]
        if ended(pid):
            break
        time.sleep(0.01)
    return pid


def with_word(word: bytes, but: Iterable[int] = ()) -> list[int]:
    """Those whose arguments hold it."""
    passed = set(but)
    return [pid for pid in parents() if pid not in passed and word in _file(pid, "cmdline")]


def with_variable(start: bytes) -> list[int]:
    """Those that were started with a variable in their environment that begins so."""
    return [pid for pid in parents() if any(each.startswith(start) for each in _file(pid, "environ").split(b"\0"))]


def _file(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def text(path: str) -> str:
    """Empty where there is nothing to read."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
