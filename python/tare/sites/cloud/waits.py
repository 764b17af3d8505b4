"""Waiting for a provider, with a clock that tests can set."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Waits:
    """Clock and time limits.

    `now`: returns seconds since the epoch. `pause`: waits a number of seconds, interruptible. `pause_protected`:
    waits without interruption. Limits in seconds: `start_s` for machines to run, `ready_s` for logging in to them,
    `remove_s` for everything to be gone. `settle_s`: how long after a request a provider may not yet report its
    result.
    """

    now: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep
    pause_protected: Callable[[float], None] = time.sleep
    poll_s: float = 2.0
    start_s: float = 600.0
    ready_s: float = 900.0
    remove_s: float = 600.0
    settle_s: float = 60.0
