"""What fio prints for people: `show_thread_status_normal` of stat.c, in fio 2 and 3."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tare.imports.parsers.figures import Times
from tare.record.measurement import Histogram

DIRECTIONS = ("read", "write", "trim")
BANNER = re.compile(r"^fio-\d+\.\d", re.MULTILINE)
_JOB = re.compile(r"(.+): \(groupid=(\d+), jobs=(\d+)\): err= *(\d+)")
_DEFINED = re.compile(
    r"(.+): \(g=\d+\): rw=(\w+), bs=(?:\(R\) )?(\w+?)B?-.*?(?:ioengine=(\w+))?(?:, iodepth=(\d+))?$"
)
_DIRECTION = re.compile(r" +(read|write|trim) *: (.*)")
_IOPS = re.compile(r"(?:IOPS|iops)= *(\d+(?:\.\d+)?)([kKM]?)")
_RUNTIME = re.compile(r"(?:runt= *|/)(\d+)msec")
_TIMES = re.compile(r" +(clat|lat) \((nsec|usec|msec)\): min= *(\S+), max= *(\S+), avg= *(\S+), stdev=")
_PERCENTILES = re.compile(r" +(clat|lat) percentiles \((nsec|usec|msec)\):")
_PERCENTILE = re.compile(r"(\d+\.\d+)th=\[ *(\d+)\]")
_ISSUED = re.compile(r" +issued(?: rwts)? *: total=(?:r=)?(\d+)(?:,|/w=)(\d+)(?:,|/d=)(\d+)")
_STATUS = re.compile(r"Run status group (\d+) ")
_TO_MS: Mapping[str, float] = {"nsec": 1e-6, "usec": 1e-3, "msec": 1.0}
_SUFFIX: Mapping[str, float] = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "m": 1e6}


@dataclass(frozen=True)
class Direction:
    """Requests of one direction of a job. `iops` may be rounded where `count` is known."""

    iops: float
    runtime_ms: float
    count: int | None
    times: Times
    histogram: Histogram = ()


@dataclass(frozen=True)
class FioJob:
    """Results of one job, or of several that fio reports together. `count`: how many, if it says so.

    `elapsed_s`: how long the whole call took.
    """

    name: str
    group: int
    error: int
    kinds: Mapping[str, Direction]
    says: Mapping[str, str]
    count: int | None = None
    elapsed_s: float | None = None


@dataclass(frozen=True)
class Call:
    """The jobs of one call of fio, and where it begins. `ended`: groups whose status it printed, after all jobs."""

    jobs: tuple[FioJob, ...]
    first: int
    text: str
    ended: frozenset[int]


@dataclass
class _Found:
    """Lines of one direction, as they come."""

    iops: float | None
    runtime_ms: float | None
    times: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    percentiles: dict[str, dict[float, float]] = field(default_factory=dict)
    basis: tuple[str, float] | None = None


@dataclass
class _Open:
    """A job that is being read."""

    name: str
    group: int
    count: int
    error: int
    kinds: dict[str, _Found] = field(default_factory=dict)
    issued: tuple[int, ...] = ()
    kind: _Found | None = None


def jobs_in_text(text: str) -> Iterator[Call]:
    """Yield the jobs of each call of fio; each prints its version once, below its definitions."""
    lines = text.split("\n")
    begins = [n for n, line in enumerate(lines) if BANNER.match(line)] or [0]
    begins[0] = 0
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        part = lines[begin:end]
        above = lines[: begin + 1] if begin == 0 else lines[max(0, begin - 50) : begin]
        ended = frozenset(int(match.group(1)) for line in part if (match := _STATUS.match(line)))
        yield Call(tuple(_jobs(part, [*above, *part])), begin + 1, "\n".join(part), ended)


def _jobs(lines: list[str], defined: list[str]) -> Iterator[FioJob]:
    says = {match.group(1): _said(match) for line in defined if (match := _DEFINED.match(line))}
    version = next((line.strip().removeprefix("fio-") for line in lines if BANNER.match(line)), "")
    job: _Open | None = None
    for line in lines:
        if match := _JOB.match(line):
            if job is not None:
                yield _closed(job, {**says.get(job.name, {}), "version": version})
            name, group, count, error = match.groups()
            job = _Open(name.strip(), int(group), int(count), int(error))
        elif job is not None and (match := _ISSUED.match(line)):
            job.issued = tuple(int(each) for each in match.groups())
        elif job is not None and (match := _DIRECTION.match(line)):
            job.kind = job.kinds[match.group(1)] = _direction(match.group(2))
        elif job is not None and job.kind is not None:
            _note(job.kind, line)
    if job is not None:
        yield _closed(job, {**says.get(job.name, {}), "version": version})


def _note(kind: _Found, line: str) -> None:
    """Note what a line below a direction tells of its latency."""
    if match := _TIMES.match(line):
        name, unit, *numbers = match.groups()
        least, most, mean = (_number(each) * _TO_MS[unit] for each in numbers)
        kind.times[name] = (mean, least, most)
    elif match := _PERCENTILES.match(line):
        kind.basis = (match.group(1), _TO_MS[match.group(2)])
    elif kind.basis is not None and "th=[" in line:
        found = kind.percentiles.setdefault(kind.basis[0], {})
        found.update({float(name): int(value) * kind.basis[1] for name, value in _PERCENTILE.findall(line)})


def _said(match: re.Match[str]) -> dict[str, str]:
    _, mode, size, engine, depth = match.groups()
    known = {"mode": mode, "block-size": size, "engine": engine, "depth": depth}
    return {name: text for name, text in known.items() if text}


def _direction(line: str) -> _Found:
    iops, runtime = _IOPS.search(line), _RUNTIME.search(line)
    return _Found(
        iops=float(iops.group(1)) * _SUFFIX[iops.group(2)] if iops else None,
        runtime_ms=float(runtime.group(1)) if runtime else None,
    )


def _number(text: str) -> float:
    """Number as fio shortens it: `1419.5k`, before 3.0 `1419.5K`."""
    bare = text.rstrip(",")
    return float(bare[:-1]) * _SUFFIX[bare[-1]] if bare[-1:] in _SUFFIX else float(bare)


def _closed(job: _Open, says: Mapping[str, str]) -> FioJob:
    kinds = {}
    for name, found in job.kinds.items():
        count = job.issued[DIRECTIONS.index(name)] if job.issued else None
        rate = count / found.runtime_ms * 1e3 if count and found.runtime_ms else found.iops
        if rate and found.runtime_ms:
            kinds[name] = Direction(rate, found.runtime_ms, count, _times(found))
    return FioJob(job.name, job.group, job.error, kinds, says, job.count)


def _times(found: _Found) -> Times:
    """Latencies: of the total where its percentiles are printed, else of completion."""
    basis = next((name for name in ("lat", "clat") if name in found.percentiles), "lat")
    percentiles = found.percentiles.get(basis, {})
    mean, least, most = found.times.get(basis, (None, None, None))
    return Times(mean, least, most, percentiles.get(50.0), percentiles.get(95.0), percentiles.get(99.0), blind=True)
