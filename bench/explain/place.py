"""Where the cases run: two network namespaces joined by a bridge, a control group, a scratch directory."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOST, DATABASE = "tare-explain-host", "tare-explain-db"
ADDRESS, GATEWAY = "10.231.7.2", "10.231.7.1"
UNUSED = "10.231.9.9"
"""An address that only DNAT leads anywhere."""
PORT, PROXY_PORT = 7700, 7701
GROUP = "tare-bench-explain"
_CALL_S = 30.0
_NAMESPACES = Path("/run/netns")
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Place:
    """`groups`: directories of the control group, one a hierarchy; `operations`: requests of a run."""

    scratch: Path
    operations: int
    groups: tuple[Path, ...]

    @classmethod
    @contextmanager
    def made(cls, scratch: Path, operations: int) -> Iterator[Place]:
        """Made, and taken away again whatever happens."""
        for name in (HOST, DATABASE):
            if (_NAMESPACES / name).exists():
                raise RuntimeError(f"{name} is there: is another bench.explain at work? Else: ip netns del {name}")
        groups = tuple(root / GROUP for root in _roots())
        try:
            for command in _COMMANDS:
                run(command.split())
            for group in groups:
                group.mkdir(exist_ok=True)
            yield cls(scratch, operations, groups)
        finally:
            for name in (HOST, DATABASE):
                subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=_CALL_S)
            for group in groups:
                if group.is_dir():
                    group.rmdir()

    def enter_group(self, pid: int) -> None:
        """Put a process into the control group."""
        for group in self.groups:
            (group / "cgroup.procs").write_text(f"{pid}\n")

    def set_quota(self, share: float | None) -> None:
        """CPUs' worth of time that the group may use; `None`: as much as there is."""
        period_us = 100_000
        for group in self.groups:
            old, new = group / "cpu.cfs_quota_us", group / "cpu.max"
            if old.is_file():
                (group / "cpu.cfs_period_us").write_text(f"{period_us}\n")
                old.write_text(f"{-1 if share is None else round(share * period_us)}\n")
            elif new.is_file():
                new.write_text(f"{'max' if share is None else round(share * period_us)} {period_us}\n")


_COMMANDS = (
    f"ip netns add {HOST}", f"ip netns add {DATABASE}",
    f"ip -n {HOST} link set lo up", f"ip -n {DATABASE} link set lo up",
    f"ip -n {HOST} link add br0 type bridge", f"ip -n {HOST} link set br0 up",
    f"ip -n {HOST} link add v0 type veth peer name v1 netns {DATABASE}",
    f"ip -n {HOST} link set v0 master br0", f"ip -n {HOST} link set v0 up", f"ip -n {DATABASE} link set v1 up",
    f"ip -n {HOST} addr add {GATEWAY}/24 dev br0", f"ip -n {DATABASE} addr add {ADDRESS}/24 dev v1",
    f"ip -n {HOST} route add {UNUSED}/32 via {ADDRESS}", f"ip -n {DATABASE} route add default via {GATEWAY}",
)  # fmt: skip


def run(argv: Sequence[str], stdin: str | None = None) -> None:
    """Raises where it fails."""
    subprocess.run(argv, check=True, input=stdin, text=True, capture_output=True, timeout=_CALL_S)


def inside(namespace: str, *argv: str) -> list[str]:
    """The command, run in a network namespace."""
    return ["ip", "netns", "exec", namespace, *argv]


def _roots() -> list[Path]:
    """v1's cpu and cpuacct, and v2 beside them where it is; or v2 alone."""
    if (_CGROUPS / "cgroup.controllers").is_file():
        return [_CGROUPS]
    named = [_CGROUPS / name for name in ("cpu", "cpuacct", "unified")]
    return list(dict.fromkeys(path.resolve() for path in named if path.is_dir()))
