"""Engine defaults that every deployment applies, so that all deployments give a task the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tare.deployments import Limits, Task

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHM_BYTES = 64 << 20
"""Size of /dev/shm that Docker, Podman, containerd and kubelet give a container."""
CPU_PERIOD_US = 100_000


@dataclass(frozen=True)
class Scratch:
    """A tmpfs inside the task; `mode` in octal."""

    target: str
    mode: str


SCRATCH = (Scratch("/tmp", "1777"), Scratch("/var/tmp", "1777"), Scratch("/run", "755"))  # noqa: S108 - where images expect them
"""The only places in a task's root that can be written to. The root is read-only in every deployment: a bare task's
root is shared by all runs, and a write to a container's layer would cost what a bare write does not."""


def environment(task: Task) -> Mapping[str, str]:
    """The image's variables, overridden by the task's.

    HOME and HOSTNAME depend on the deployment and are added later.
    """
    return {"PATH": PATH, **dict(task.image.config.env), **task.env}


def user(task: Task) -> str:
    """User of a task as `name`, `uid`, `name:group` or `uid:gid`; empty is root."""
    return task.user or task.image.config.user


def shm_bytes(limits: Limits) -> int:
    """Size of a container's /dev/shm."""
    return SHM_BYTES if limits.shm_bytes is None else limits.shm_bytes


def cpu_shares(weight: int) -> int:
    """cpu.shares of control groups v1 for a weight of v2: 1024 of v1 corresponds to 100 of v2."""
    return max(2, round(weight * 1024 / 100))


def cpu_quota_us(limits: Limits) -> int | None:
    """CPU time in each period, in microseconds; `None`: not limited."""
    return None if limits.cpu_quota is None else round(limits.cpu_quota * CPU_PERIOD_US)
