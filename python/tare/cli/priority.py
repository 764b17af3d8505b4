"""tare's own priority: its programs must soon get a CPU, though servers and clients use all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_NAMES = {os.SCHED_BATCH: "SCHED_BATCH", os.SCHED_IDLE: "SCHED_IDLE"}
_LOW = "its programs may wait for seconds for a CPU while servers and clients use all of them, so that runs fail"


@contextmanager
def default_priority(*, quiet: bool = False) -> Iterator[None]:
    """Give this thread, and what it starts meanwhile, the default priority: SCHED_OTHER with niceness 0.

    Servers and clients have it (deployments/bare/launcher.py), in control groups with the default weight. Beside
    them a program of tare's that inherits SCHED_IDLE gets a few thousandths of a CPU (sched(7)). Raising may take
    rights that the user does not have; a line on standard error says so.
    """
    policy, niceness = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, os.getpriority(os.PRIO_PROCESS, 0)
    if policy not in _NAMES and niceness <= 0:
        yield
        return
    had = " and ".join([*filter(None, [_NAMES.get(policy)]), *([f"niceness {niceness}"] if niceness else [])])
    try:
        _set(os.SCHED_OTHER, 0)
    except PermissionError:
        sys.stderr.write(f"tare: warning: tare runs with {had}, which only root may change: {_LOW}\n")
    else:
        if not quiet:
            sys.stderr.write(f"tare: {had} is set to the default priority until the runs end\n")
    try:
        yield
    finally:
        _set(policy, niceness)


def _set(policy: int, niceness: int) -> None:
    """Set both of the calling thread. Lowering them is always allowed."""
    os.sched_setscheduler(0, policy, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, 0, niceness)
