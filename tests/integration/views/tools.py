"""The real tools at work, and what they printed as samples with the moments at which it came."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl
from docker import DockerClient

from tare.analyze.views import docker_stats
from tare.analyze.views.compare import OBSERVED

S = 1_000_000_000
IOSTAT = {
    "r/s": "reads", "w/s": "writes", "f/s": "flushes", "rkB/s": "read_kib", "wkB/s": "written_kib",
    "rrqm/s": "reads_merged", "wrqm/s": "writes_merged", "r_await": "read_await", "w_await": "write_await",
    "f_await": "flush_await", "aqu-sz": "queue", "util": "util",
}  # fmt: skip
PIDSTAT = {
    "%usr": "usr_percent", "%system": "system_percent", "%CPU": "cpu_percent", "minflt/s": "minor_faults",
    "majflt/s": "major_faults", "RSS": "resident_kib", "kB_rd/s": "read_kib", "kB_wr/s": "written_kib",
    "kB_ccwr/s": "cancelled_kib",
}  # fmt: skip
MPSTAT = ("usr", "nice", "sys", "iowait", "irq", "soft", "steal", "guest", "gnice", "idle")
Row = tuple[str, str, str, int, int, float, int]
"""As `OBSERVED`."""


@dataclass
class Said:
    """Lines, or frames, with the wall clock (ns) at which each arrived."""

    came: list[tuple[int, Any]] = field(default_factory=list)


@contextmanager
def sysstat(argv: Sequence[str]) -> Iterator[Said]:
    """A tool of sysstat's, which writes each sample at once. Leaving waits for its end."""
    said = Said()
    env = {**os.environ, "S_TIME_FORMAT": "ISO", "LC_ALL": "C"}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) as tool:

        def read() -> None:
            assert tool.stdout is not None
            said.came.extend((time.time_ns(), line) for line in iter(tool.stdout.readline, ""))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield said
            tool.wait(timeout=60)
        finally:
            tool.kill()
            reader.join()


@contextmanager
def frames(engine: DockerClient, ident: str, count: int) -> Iterator[Said]:
    """What docker stats reads of the engine; the first frame has none before it. Leaving waits for the last."""
    said = Said()

    def read() -> None:
        for frame in engine.containers.get(ident).stats(stream=True, decode=True):
            said.came.append((time.time_ns(), frame))
            if len(said.came) > count:
                return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    yield said
    reader.join(timeout=60)
    assert not reader.is_alive(), "the engine sends no frames"


def observed(rows: Sequence[Row], wall_to_monotonic_ns: int) -> pl.DataFrame:
    """Samples by the trace's clock."""
    shifted = [(*row[:3], row[3] + wall_to_monotonic_ns, row[4] + wall_to_monotonic_ns, *row[5:]) for row in rows]
    return pl.DataFrame(shifted, schema=OBSERVED, orient="row")


def of_docker(said: Said, subject: str) -> Iterator[Row]:
    """By the client's formulas on the frames' own counters, apart from those under test."""
    for came, frame in said.came[1:]:
        end, begin = _ns(frame["read"]), _ns(frame["preread"])
        now, then = frame["cpu_stats"], frame["precpu_stats"]
        used = now["cpu_usage"]["total_usage"] - then["cpu_usage"]["total_usage"]
        system = now["system_cpu_usage"] - then["system_cpu_usage"]
        memory = frame["memory_stats"]
        inactive = memory["stats"].get("total_inactive_file", memory["stats"].get("inactive_file", 0))
        entries = frame["blkio_stats"]["io_service_bytes_recursive"] or []
        written = sum(entry["value"] for entry in entries if entry["op"].lower() == "write")
        # The daemon reads the group before `read`, and /proc/stat between `read` and sending the frame.
        for name, begun, value in (
            ("cpu_percent", begin, used / system * now["online_cpus"] * 100),
            ("memory_bytes", end, memory["usage"] - inactive),
            ("block_written_bytes", end, written),
        ):
            yield docker_stats.DOCKER_STATS.tool, name, subject, begun, end, float(value), came - end


def of_mpstat(said: Said) -> Iterator[Row]:
    """From its JSON."""
    for begin, end, within, sample in _samples(said):
        for cpu in sample["cpu-load"]:
            yield from (("mpstat", name, cpu["cpu"], begin, end, cpu[name], within) for name in MPSTAT)


def of_iostat(said: Said) -> Iterator[Row]:
    """From its JSON."""
    for begin, end, within, sample in _samples(said):
        for disk in sample["disk"]:
            named = IOSTAT.items()
            yield from (("iostat", ours, disk["disk_device"], begin, end, disk[its], within) for its, ours in named)


def of_pidstat(said: Said, name: str) -> Iterator[Row]:
    """From its table of one line a sample (-h)."""
    head = next(line for _, line in said.came if line.startswith("#")).split()[1:]
    lines = [(came, dict(zip(head, line.split(), strict=False))) for came, line in said.came if line[:1].isdigit()]
    for (begin, end, within), (_, cells) in zip(_moments([came for came, _ in lines]), lines, strict=True):
        for its, ours in PIDSTAT.items():
            since = end if its == "RSS" else begin
            yield "pidstat", ours, f"{name} pid {cells['PID']}", since, end, float(cells[its]), within


def _samples(said: Said) -> Iterator[tuple[int, int, int, Mapping[str, Any]]]:
    told = json.loads("".join(line for _, line in said.came))["sysstat"]["hosts"][0]["statistics"]
    moments = _moments([came for came, line in said.came if '"timestamp"' in line])
    yield from ((*moment, sample) for moment, sample in zip(moments, told, strict=True))


def _moments(came: Sequence[int]) -> list[tuple[int, int, int]]:
    """Begin, end and uncertainty of samples a second apart, from when they came.

    sysstat reads by an alarm that does not drift: what arrivals scatter about a grid of seconds is delay, of the
    tool or of its reader.
    """
    late = [at - n * S for n, at in enumerate(came)]
    within = max(late) - min(late) + 5_000_000
    return [(at - S if n == 0 else came[n - 1], at, within) for n, at in enumerate(came)]


def _ns(stamp: str) -> int:
    """RFC 3339 with nanoseconds, UTC."""
    whole, _, part = stamp.rstrip("Z").partition(".")
    return int(datetime.fromisoformat(f"{whole}+00:00").timestamp()) * S + int(part.ljust(9, "0"))
