"""CPU time of monitors: of their programs, with all that these started."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.run.clock import Clock
from tare.sites import Host

CPU_CLOCK = Path(__file__).parents[1] / "monitors" / "cpu_clock.py"
_CALL_S = 30.0


@dataclass(frozen=True)
class Look:
    """CPU time so far, by monitor; `None` where one of its programs had gone. `at_s`: on CLOCK_MONOTONIC."""

    at_s: float
    used_ns: Mapping[str, int | None]


@dataclass(frozen=True)
class Cost:
    """CPU time of a monitor between two looks: from when all monitors were at work to before the first was stopped.

    Starting and ending it is not in it: a study that lasts pays that once.
    """

    began_monotonic_s: float
    ended_monotonic_s: float
    cpu_s: float | None


def look(host: Host, clock: Clock, programs: Mapping[str, tuple[str, ...]]) -> Look:
    """`programs`: monitor → what cpu_clock.py is asked for each of its programs, a pid or `below:PID`."""
    at_s, asked = clock.monotonic(), [word for words in programs.values() for word in words]
    if not asked:
        return Look(at_s, {})
    argv = ["python3", "-I", "-S", "-", *asked]
    told = json.loads(host.run(argv, timeout_s=_CALL_S, stdin=CPU_CLOCK.read_bytes()).stdout)
    return Look(at_s, {name: _sum(told, words) for name, words in programs.items()})


def cost_of(name: str, began: Look | None, ended: Look | None) -> Cost | None:
    """The difference, `None` for a monitor that was not looked at."""
    if began is None or ended is None or name not in began.used_ns or name not in ended.used_ns:
        return None
    before, after = began.used_ns[name], ended.used_ns[name]
    used_s = None if before is None or after is None else (after - before) / 1e9
    return Cost(began.at_s, ended.at_s, used_s)


def _sum(told: Mapping[str, int], words: tuple[str, ...]) -> int | None:
    pids = [word.rpartition(":")[2] for word in words]
    return sum(told[pid] for pid in pids) if all(pid in told for pid in pids) else None
