"""What samples of monitors say of a run: its usage, as a native run has it, and a table of the samples."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tare.imports.monitors import ALL, MODES, Sample
from tare.record.usage import DiskUse, Usage

_SERVERS = re.compile(r"mysqld|mariadbd?|postgres|postmaster|mongod|redis-server|valkey-server|memcached|cassandra")
_CLIENTS = re.compile(r"sysbench|pgbench|ycsb|redis-benchmar|memtier|fio|hammerdb|cassandra-stre")
_NAMED = frozenset(MODES.values())
_PID = re.compile(r"(.*) pid \d+")
_DISK = {
    "reads": ("reads_per_s", 1.0), "writes": ("writes_per_s", 1.0), "read_kib": ("read_bytes_per_s", 1024.0),
    "written_kib": ("written_bytes_per_s", 1024.0), "read_await": ("read_ms", 1.0),
    "write_await": ("write_ms", 1.0), "queue": ("depth", 1.0), "util": ("busy", 0.01),
}  # fmt: skip
_SLACK_S = 0.5
"""How far a sample may lie outside of a run: stamps are whole seconds."""


@dataclass(frozen=True)
class Kept:
    """Samples of a tool in a run. `ends_s`: end of each since the run's start; `step_s`: how long each lasts."""

    tool: str
    samples: tuple[Sample, ...]
    ends_s: tuple[float, ...]
    step_s: float
    cpus: int | None


@dataclass(frozen=True)
class Sides:
    """Names of the server's and the client's process or container; `None`: those of known programs."""

    server: str | None = None
    client: str | None = None


def within(tool: str, samples: Sequence[Sample], ends_s: Sequence[float], step_s: float, run_s: float) -> Kept:
    """Samples that lie in a run, whose intervals do so but for the rounding of stamps."""
    chosen = [
        (sample, end)
        for sample, end in zip(samples, ends_s, strict=True)
        if end - step_s >= -_SLACK_S and end <= run_s + _SLACK_S
    ]
    return Kept(tool, tuple(sample for sample, _ in chosen), tuple(end for _, end in chosen), step_s, None)


def usage_of(kept: Sequence[Kept], sides: Sides, run_s: float, cpus: int | None) -> Usage:
    """Usage over a run, each figure from the first tool that gives it."""
    machine = next((modes for each in kept if (modes := _modes(each))), {})
    number = cpus or next((each.cpus for each in kept if each.cpus), None)
    seconds = {mode: share / 100 * number * run_s for mode, share in machine.items()} if number else None
    return Usage(
        wall_s=run_s,
        monotonic_s=run_s,
        began_monotonic_s=0.0,
        ended_monotonic_s=run_s,
        machine=seconds or None,
        disk=next((disk for each in kept if (disk := _disk(each)) is not None), None),
        sut_cpu_s=_cpu_s(kept, sides.server, _SERVERS, run_s),
        client_cpu_s=_cpu_s(kept, sides.client, _CLIENTS, run_s),
    )


def _means(kept: Kept) -> dict[tuple[str, str], float]:
    """Mean of each quantity of each subject, over the samples that have it."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for sample in kept.samples:
        for value in sample.values:
            values[value.subject, value.quantity].append(value.value)
    return {key: fmean(each) for key, each in values.items()}


def _modes(kept: Kept) -> dict[str, float]:
    """Percent of the machine's CPU time in each mode."""
    return {name: share for (subject, name), share in _means(kept).items() if subject == ALL and name in _NAMED}


def _disk(kept: Kept) -> DiskUse | None:
    """The busiest disk, or all together where a tool does not tell them apart."""
    disks: dict[str, dict[str, float]] = defaultdict(dict)
    for (subject, name), value in _means(kept).items():
        if name in _DISK:
            field, factor = _DISK[name]
            disks[subject][field] = value * factor
    if not disks:
        return None

    def busiest(name: str) -> tuple[float, float]:
        figures = disks[name]
        moved = figures.get("read_bytes_per_s", 0.0) + figures.get("written_bytes_per_s", 0.0)
        return figures.get("busy", -1.0), moved

    name = max(disks, key=busiest)
    return DiskUse(name, **disks[name])


def _cpu_s(kept: Sequence[Kept], named: str | None, known: re.Pattern[str], run_s: float) -> float | None:
    """CPU time of the processes or containers of a side; a process that a sample lacks did nothing in it."""
    for each in kept:
        if each.tool not in ("pidstat", "docker-stats"):
            continue
        subjects = {value.subject for sample in each.samples for value in sample.values}
        mine = {subject for subject in subjects if _is_of(subject, named, known)}
        if mine:
            percent = sum(
                value.value for sample in each.samples for value in sample.values if value.subject in mine
            )
            return percent / 100 / len(each.samples) * run_s
    return None


def _is_of(subject: str, named: str | None, known: re.Pattern[str]) -> bool:
    match = _PID.fullmatch(subject)
    name = match.group(1) if match else subject
    return name == named if named is not None else known.match(name) is not None


def table_of(kept: Kept) -> bytes:
    """The samples as Parquet, with the columns of docs/reference/monitors.md and times since the run's start."""
    import polars as pl  # only imports with logs of monitors need it

    from tare.monitors.samples import columns

    rows = [(kept.tool, *row) for row in _rows(kept)]
    frame = pl.DataFrame(rows, schema={**columns(), "kept": pl.Boolean}, orient="row")
    into = io.BytesIO()
    frame.write_parquet(into)
    return into.getvalue()


def _rows(kept: Kept) -> Iterator[tuple[str, str, int, int, float, int, bool]]:
    step, within_ns = round(kept.step_s * 1e9), round(2 * _SLACK_S * 1e9)
    for sample, end_s in zip(kept.samples, kept.ends_s, strict=True):
        end = round(end_s * 1e9)
        for value in sample.values:
            name = _NATIVE.get((kept.tool, value.quantity), value.quantity)
            yield name, value.subject, end - step, end, value.value, within_ns, True


_NATIVE: Mapping[tuple[str, str], str] = {
    ("sar", "read_kib"): "disk_rkb",
    ("sar", "written_kib"): "disk_wkb",
}
"""Quantities that `tare views` names otherwise for a tool."""
