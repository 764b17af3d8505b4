"""What the reason of a failed attempt must say, by the fault that came into it; written before any was played.

A reason is searched in its first words, as it must be named first. A kind that is not here may fail no attempt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tare.record.run_record import Phase, RunRecord
from tools.chaos.processes import PARTS
from tools.chaos.session import Played

FIRST = 240
"""Characters in which the reason must be named."""
_KILLED = r"SIGKILL|\b137\b|-9\b"
_LATE = r"did not|within|timed? ?out|late\b|cut short|never answered|no correct reply|windows|monitor|trace|differ"
_ENGINE = r"engine|[Dd]ocker|container|was ended by SIG(TERM|KILL)|ended with exit code 0"
_FULL = r"No space left|MiB left|disk.{0,12} full|is full|OS errno 28|Errcode: 28|errno: 28"
_EIO = r"Input/output error|disk I/O error|Read-only file system|errno:? 5\b|OS errno 5|cannot be kept"
_CUT = r"connect|network|route|unreachable|went away|reset|reply|answer|path|did not|no server|gone|device"
_NO_PROCESS = r"[Rr]esource temporarily unavailable|cannot start|can't start new thread|cannot fork"
_ENDED = r"the server (was ended by SIG|ended with)"

REASONS: Mapping[str, str] = {
    "kill -9 a process of tare's": rf"{_KILLED}|{_ENDED}|monitor|trace|virtual machine",
    "SIGSTOP of a process of tare's": _LATE,
    "SIGSTOP of tare": _LATE,
    "no room for the store": _FULL,
    "EIO below the store": _EIO,
    "EIO in tare's fsync": _EIO,
    "EIO in tare's database": _EIO,
    "no more open files": r"Too many open files|No file descriptors|cannot open|unable to open",
    "open fails in tare": r"Too many open files|unable to open",
    "short writes": r"File too large|cannot be kept|cut short|disk I/O error",
    "no more processes": _NO_PROCESS,
    "fork fails in tare": _NO_PROCESS,
    "out of memory: tare": rf"out of memory|Cannot allocate memory|{_KILLED}",
    "clock of tare's stepped by 1 h": r"clock|time|\bh\b|differ|monitor|trace",
    "kill -9 server": _KILLED,
    "kill -9 client": _KILLED,
    "kill -9 tare-probe": r"monitor|trace",
    "kill -9 dockerd": _ENGINE,
    "kill -9 containerd": rf"{_ENGINE}|{_KILLED}",
    "kill -9 a shim": rf"{_ENGINE}|{_KILLED}",
    "kill -9 docker-proxy": rf"{_CUT}|proxy",
    "kill -9 a pod's sandbox": rf"sandbox|pod|{_CUT}",
    "kill -9 QEMU": r"virtual machine",
    **{f"SIGSTOP of {part}": _LATE for part in PARTS},
    "engine restarted": _ENGINE,
    "engine restarted with other settings": rf"{_ENGINE}|proxy|path|differ|match",
    "no room for home and data": _FULL,
    "no room for the data": _FULL,
    "EIO in the server's writes": rf"{_EIO}|{_ENDED}|error",
    "open fails in the server": rf"Too many open files|errno: 24|Errcode: 24|{_ENDED}|{_CUT}",
    "fork fails in the server": rf"Resource temporarily|thread|errno: 11|{_ENDED}|{_CUT}",
    "out of memory: server": r"out of memory",
    "out of memory: client": r"out of memory",
    "bridge down": _CUT,
    "kill -9 an agent": r"agent|was restarted|cannot be reached|is unreachable",
    "wire removed": _CUT,
}
_OF_ANOTHER = re.compile(r"^.{1,80}?, (?:which ran at the same time|a stage on the same server), failed: ")
_OF_A_BUG = re.compile(r"^[A-Z]\w*(?:Error|Exception|Warning)\b: ")
_BEFORE_S, _AFTER_S = 1.0, 15.0
_CLOCK = "clock of tare's stepped by 1 h"


_FATAL = frozenset(f"kill -9 {part}" for part in ("server", "client", "tare-probe", "QEMU"))
_SPARE_S = 1.0
"""A program that is killed as it ends anyway may have done all that it was to do."""


def survived(record: RunRecord, played: Iterable[Played]) -> str | None:
    """The fault that killed a part of this run while it measured, of which nothing can come but a failed run."""
    all_played = list(played)
    if any(each.kind == _CLOCK for each in all_played):
        return None  # its phases' times are of a clock that stepped
    spans = [(time.began_at, time.began_at + time.seconds) for time in record.phases if time.phase == Phase.MEASURE]
    return next(
        (
            each.kind
            for each in all_played
            for began_at, ended_at in spans
            if each.kind in _FATAL and began_at <= each.at and each.until + _SPARE_S <= ended_at
        ),
        None,
    )


def unforeseen(reason: str | None) -> str | None:
    """What is wrong with a reason, whatever the fault was."""
    if not reason or "\n" in reason or "Traceback" in reason:
        return "it has no reason in one line"
    if _OF_A_BUG.match(_OF_ANOTHER.sub("", reason)):
        return "its reason is an exception that nobody has foreseen"
    return None


def wrong(reason: str | None, began_at: float, ended_at: float, played: Iterable[Played]) -> str | None:
    """What is wrong with an attempt that failed for `reason`; `None` where a fault that came into it explains it.

    A fault counts some seconds longer than it lasts. Of a session in which the clock stepped all do.
    """
    if (why := unforeseen(reason)) is not None:
        return why
    named = _OF_ANOTHER.sub("", reason or "")
    all_played = list(played)
    stepped = any(each.kind == _CLOCK for each in all_played)
    into = [
        each.kind
        for each in all_played
        if stepped or (each.at - _BEFORE_S <= ended_at and each.until + _AFTER_S >= began_at)
    ]
    if not into:
        return "no fault came into it"
    if any(re.search(REASONS.get(kind) or "(?!)", named[:FIRST]) for kind in into):
        return None
    return f"its reason does not name {' or '.join(dict.fromkeys(into))} first"
