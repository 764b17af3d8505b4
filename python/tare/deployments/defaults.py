"""What an engine gives without being asked, written down once so that every deployment gives the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tare.deployments import Limits, Task

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHM_BYTES = 64 << 20
CPU_PERIOD_US = 100_000


@dataclass(frozen=True)
class Scratch:
    """A tmpfs inside; `mode` in octal."""

    target: str
    mode: str


SCRATCH = (Scratch("/tmp", "1777"), Scratch("/var/tmp", "1777"), Scratch("/run", "755"))  # noqa: S108 - where images expect them
"""The only places of a task's root that can be written to. The root itself is read-only in every deployment:
the bare one's is shared by all runs, and a write to a container's layer would cost what a bare write does not.
"""


def environment(task: Task) -> Mapping[str, str]:
    """The image's variables under the task's own; HOME and HOSTNAME depend on the place and come later."""
    return {"PATH": PATH, **dict(task.image.config.env), **task.env}


def user(task: Task) -> str:
    """`name`, `uid`, `name:group` or `uid:gid`; empty is root."""
    return task.user or task.image.config.user


def cpu_shares(weight: int) -> int:
    """cpu.shares of control groups v1 for a weight as v2 has it: there 1024 is what 100 is here."""
    return max(2, round(weight * 1024 / 100))


def cpu_quota_us(limits: Limits) -> int | None:
    """CPU time in each period, in microseconds."""
    return None if limits.cpu_quota is None else round(limits.cpu_quota * CPU_PERIOD_US)
