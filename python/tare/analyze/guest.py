"""Counters of a virtual machine's own kernel during a run, converted to the trace's clock."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from tare.errors import StoreError
from tare.monitors.samples import columns
from tare.record.made_by import GuestClock

TOOL = "tare-guest"
MACHINE, SUT = "machine", "sut"
UNITS: Mapping[str, str] = {
    "cpu_percent": "%", "steal_percent": "%", "memory_bytes": "B",
    "block_read_bytes": "B", "block_written_bytes": "B",
}  # fmt: skip
"""Quantity → unit; names as in tare-probe's view, and `steal_percent`. Percent of one CPU, bytes since boot."""
FILE = "sut.guest.jsonl"
_TASK = "/sys/fs/cgroup/task"
_USER_HZ, _SECTOR_BYTES, _NS = 100, 512, 1e9
"""Units of /proc/stat on x86 and of /proc/diskstats (Documentation/admin-guide/iostats.rst)."""
_UPTIME_STEP_NS = 1e7
_IDLE = (3, 4)
_STEAL = 7
"""Columns of the line `cpu` of /proc/stat (proc_stat(5)); the first two include guest time."""


@dataclass(frozen=True)
class _Counts:
    """Counters of one line; `None` or absent if its files lack them."""

    uptime_s: float
    busy_s: float | None
    steal_s: float | None
    used_s: float | None
    memory: Mapping[str, float]
    moved: Mapping[tuple[str, str], float]


def counted(raw: bytes, clock: GuestClock | None) -> pl.DataFrame:
    """Parse samples from `sut.guest.jsonl`, with the columns of `monitors.samples`.

    `clock`: `parity.sut.guest.clock` of the record; without it the time of a line is unknown, so there are no
    samples. An incomplete last line comes from a killed machine; any other malformed line raises `StoreError`.
    """
    if clock is None:
        return pl.DataFrame(schema=columns())
    uptime_s, from_ns, to_ns = clock.uptime_s, clock.from_ns, clock.to_ns
    booted_ns, within_ns = (from_ns + to_ns) / 2 - uptime_s * _NS, (to_ns - from_ns) / 2 + _UPTIME_STEP_NS
    cells = [
        (
            TOOL,
            quantity,
            subject,
            round(booted_ns + began * _NS),
            round(booted_ns + ended * _NS),
            value,
            round(within_ns),
        )
        for quantity, subject, began, ended, value in _rows(_lines(raw))
    ]
    return pl.DataFrame(cells, schema=columns(), orient="row")


def _lines(raw: bytes) -> list[_Counts]:
    parsed = []
    lines = raw.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        if number == len(lines) and not line.endswith(b"\n"):
            break
        try:
            parsed.append(_counts(json.loads(line)))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise StoreError(f"line {number} of {FILE} is none of tare-guest's: {error!r}") from error
    return parsed


def _rows(lines: Sequence[_Counts]) -> Iterator[tuple[str, str, float, float, float]]:
    for each in lines:
        for subject, value in each.memory.items():
            yield "memory_bytes", subject, each.uptime_s, each.uptime_s, value
        for (quantity, subject), value in each.moved.items():
            yield quantity, subject, each.uptime_s, each.uptime_s, value
    for one, other in pairwise(lines):
        for quantity, subject, before, after in (
            ("cpu_percent", MACHINE, one.busy_s, other.busy_s),
            ("steal_percent", MACHINE, one.steal_s, other.steal_s),
            ("cpu_percent", SUT, one.used_s, other.used_s),
        ):
            seconds = other.uptime_s - one.uptime_s
            if before is not None and after is not None and seconds > 0:
                yield quantity, subject, one.uptime_s, other.uptime_s, (after - before) / seconds * 100


def _counts(files: Mapping[str, str]) -> _Counts:
    ticks = next(
        (line.split()[1:9] for line in files.get("/proc/stat", "").splitlines() if line.startswith("cpu ")), None
    )
    spent = None if ticks is None else [int(each) / _USER_HZ for each in ticks]
    used = _named(files.get(f"{_TASK}/cpu.stat", "")).get("usage_usec")
    return _Counts(
        uptime_s=float(files["/proc/uptime"].split()[0]),
        busy_s=None if spent is None else sum(each for n, each in enumerate(spent) if n not in (*_IDLE, _STEAL)),
        steal_s=None if spent is None else spent[_STEAL],
        used_s=None if used is None else used / 1e6,
        memory=dict(_memory(files)),
        moved=dict(_moved(files)),
    )


def _memory(files: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """Yield memory in use: of the machine, all but MemAvailable (proc_meminfo(5)), and of the SUT."""
    meminfo = _named(files.get("/proc/meminfo", "").replace(":", ""))
    if "MemTotal" in meminfo and "MemAvailable" in meminfo:
        yield MACHINE, (meminfo["MemTotal"] - meminfo["MemAvailable"]) * 1024
    if charged := files.get(f"{_TASK}/memory.current"):
        yield SUT, float(charged)


def _moved(files: Mapping[str, str]) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield bytes moved by each disk, and by the SUT over all disks; a control group without I/O has no line."""
    for words in (line.split() for line in files.get("/proc/diskstats", "").splitlines()):
        yield ("block_read_bytes", words[2]), int(words[5]) * _SECTOR_BYTES
        yield ("block_written_bytes", words[2]), int(words[9]) * _SECTOR_BYTES
    moved = [
        dict(word.split("=") for word in line.split()[1:])
        for line in files.get(f"{_TASK}/io.stat", "").splitlines()
    ]
    for name, key in (("block_read_bytes", "rbytes"), ("block_written_bytes", "wbytes")):
        if counters := [int(each[key]) for each in moved if key in each]:
            yield (name, SUT), sum(counters)


def _named(text: str) -> dict[str, float]:
    """Parse lines of `name value …`."""
    return {words[0]: float(words[1]) for words in (line.split() for line in text.splitlines()) if len(words) > 1}
