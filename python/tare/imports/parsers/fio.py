"""fio 2 and 3: JSON and JSON+, terse 3 to 5, and text. Jobs that ran together (a group) are one run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.figures import Figures, Kind, Times, number_in
from tare.imports.parsers.fio_text import BANNER, DIRECTIONS, Direction, FioJob, jobs_in_text
from tare.record.measurement import Histogram
from tare.workloads.fio.measurement import RESOLUTION
from tare.workloads.merged import merge_histograms, percentile

_TERSE = {"3": 41, "4": 41, "5": 47}
"""Version → fields of a direction: fio(1), terse output."""
_FIRST = 5
_TERSE_LINE = re.compile(r"[345];fio-\d[^;]*;|2;(?:[^;]*;){100}")
"""Version 2 does not print fio's own, but has as many cells."""
_STOPPED = re.compile(r"^fio: terminating on signal \d+", re.MULTILINE)
_SAYS: Mapping[str, str] = {
    "mode": "rw",
    "block-size": "bs",
    "engine": "ioengine",
    "depth": "iodepth",
    "size": "size",
}


class Fio:
    """Reports of fio."""

    title: ClassVar[str] = "fio 2 and 3 (JSON, JSON+, terse 3 to 5, text)"
    says: ClassVar[tuple[str, ...]] = ("job", "jobs", "version", *_SAYS)

    def recognises(self, text: str) -> bool:
        """Its version where it prints it, or the status of a job."""
        return '"fio version"' in text or _is_terse(text) or "(groupid=" in text or BANNER.search(text) is not None

    def reports(self, text: str, max_error_share: float) -> Iterator[Report]:  # noqa: ARG002 - a job fails as a whole
        """Each group of jobs of the file."""
        if stopped := _STOPPED.search(text):
            yield Report(None, f"fio was stopped: {stopped.group(0)}", text=text)
            return
        if '"fio version"' in text:
            yield from _of_json(text)
        elif _is_terse(text):
            yield from _of_terse(text)
        else:
            for call in jobs_in_text(text):
                yield from _groups(call.jobs, call.first, call.text, call.ended)


def _is_terse(text: str) -> bool:
    return any(_TERSE_LINE.match(line) for line in text.split("\n", 200)[:200])


def _of_json(text: str) -> Iterator[Report]:
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        line = text.count("\n", 0, at) + 1
        try:
            tree, end = decoder.raw_decode(text, at)
        except ValueError as error:
            yield Report(None, f"its JSON is cut short: {error}", line=line, text=text[at:])
            return
        if isinstance(tree, dict) and "jobs" in tree:
            yield from _groups(_overlapping(list(_json_jobs(tree))), line, text[at:end])
        at = text.find("{", end)


def _overlapping(jobs: list[FioJob]) -> list[FioJob]:
    """Jobs as one group if their groups took longer than the whole call: `new_group` makes groups that overlap."""
    elapsed = max((job.elapsed_s for job in jobs if job.elapsed_s is not None), default=None)
    longest: dict[int, float] = {}
    for job in jobs:
        for each in job.kinds.values():
            longest[job.group] = max(longest.get(job.group, 0.0), each.runtime_ms / 1e3)
    if elapsed is None or sum(longest.values()) <= elapsed + 1:
        return jobs
    return [replace(job, group=0) for job in jobs]


def _json_jobs(tree: Mapping[str, Any]) -> Iterator[FioJob]:
    shared = tree.get("global options")
    for job in tree["jobs"] if isinstance(tree["jobs"], list) else ():
        if not isinstance(job, Mapping):
            continue
        own = job.get("job options")
        options = {**(shared if isinstance(shared, Mapping) else {}), **(own if isinstance(own, Mapping) else {})}
        says = {name: str(options[key]) for name, key in _SAYS.items() if key in options}
        kinds = {name: _json_direction(job[name]) for name in DIRECTIONS if isinstance(job.get(name), Mapping)}
        yield FioJob(
            name=str(job.get("jobname", "")),
            group=int(number_in(job, "groupid") or 0),
            error=int(number_in(job, "error") or 0),
            kinds={name: each for name, each in kinds.items() if each is not None},
            says={**says, "version": str(tree.get("fio version", "")).removeprefix("fio-")},
            elapsed_s=number_in(job, "elapsed"),
            count=int(text) if (text := str(options.get("numjobs", ""))).isdecimal() else None,
        )


def _json_direction(tree: Mapping[str, Any]) -> Direction | None:
    count, runtime, iops = (number_in(tree, name) for name in ("total_ios", "runtime", "iops"))
    if not iops or runtime is None:
        return None
    factor = 1e-6 if "lat_ns" in tree or "clat_ns" in tree else 1e-3
    names = ("lat_ns", "clat_ns") if factor == 1e-6 else ("lat", "clat")
    blocks = [block for name in names if isinstance(block := tree.get(name), Mapping)]
    timed = next((block for block in blocks if "percentile" in block), blocks[0] if blocks else {})
    told = timed.get("percentile")
    percentiles = told if isinstance(told, Mapping) else {}

    histogram = _bins(timed, factor)

    def of(block: Mapping[str, Any], name: str) -> float | None:
        value = number_in(block, name)
        return None if value is None else value * factor or None

    return Direction(
        iops=iops,
        runtime_ms=runtime,
        count=None if count is None else int(count),
        times=Times(
            of(timed, "mean"),
            of(timed, "min"),
            of(timed, "max"),
            of(percentiles, "50.000000"),
            of(percentiles, "95.000000"),
            of(percentiles, "99.000000"),
            resolution=RESOLUTION if histogram else None,
            blind=True,
        ),
        histogram=histogram,
    )


def _bins(timed: Mapping[str, Any], factor: float) -> Histogram:
    """The buckets of JSON+, if they hold every request."""
    told = timed.get("bins")
    try:
        counts = {float(value): int(count) for value, count in told.items()} if isinstance(told, Mapping) else {}
    except (TypeError, ValueError):
        return ()
    if sum(counts.values()) != number_in(timed, "N") or any(count < 0 for count in counts.values()):
        return ()
    return tuple(sorted((value * factor, count) for value, count in counts.items() if count))


def _of_terse(text: str) -> Iterator[Report]:
    jobs: list[FioJob] = []
    kept: list[str] = []
    first = 1
    for number, line in enumerate(text.split("\n"), start=1):
        cells = line.split(";")
        if not _TERSE_LINE.match(line):
            continue
        try:
            job = _terse_job(cells)
        except (RunFailed, ValueError, IndexError) as error:
            yield Report(None, f"no terse line of fio that can be read: {error}", line=number, text=line)
            continue
        if any(each.group > job.group for each in jobs):  # a second call of fio
            yield from _groups(jobs, first, "\n".join(kept))
            jobs, kept, first = [], [], number
        jobs.append(job)
        kept.append(line)
    if jobs:
        yield from _groups(jobs, first, "\n".join(kept))


def _terse_job(cells: Sequence[str]) -> FioJob:
    width = _TERSE.get(cells[0])
    if width is None:
        raise RunFailed(f"version {cells[0]} of its terse format (3 to 5 are read)")
    if len(cells) < _FIRST + 2 * width:
        raise RunFailed("the line is cut short")
    kinds = {}
    for n, name in enumerate(DIRECTIONS[:2]):
        block = cells[_FIRST + n * width : _FIRST + (n + 1) * width]
        if (iops := float(block[2])) > 0:
            percentiles = dict(each.split("%=") for each in block[12:32])
            figures = [float(cell) / 1e3 or None for cell in block[8:11]]
            p50, p95, p99 = (float(percentiles[f"{each}.000000"]) / 1e3 or None for each in (50, 95, 99))
            least, most, mean = figures
            kinds[name] = Direction(
                iops, float(block[3]), None, Times(mean, least, most, p50, p95, p99, blind=True)
            )
    says = {"version": cells[1].removeprefix("fio-")}
    return FioJob(cells[2], int(cells[3]), int(cells[4]), kinds, says)


def _groups(jobs: Sequence[FioJob], line: int, text: str, ended: frozenset[int] | None = None) -> Iterator[Report]:
    for group in dict.fromkeys(job.group for job in jobs):
        members = [job for job in jobs if job.group == group]
        says = _said(members)
        failed = next((job for job in members if job.error), None)
        if failed is not None:
            yield Report(None, f"fio's job {failed.name!r} ended with error {failed.error}", says, line, text)
        elif ended is not None and group not in ended:
            yield Report(None, f"fio's report is cut short: it lacks the status of group {group}", says, line, text)
        elif not any(job.kinds for job in members):
            yield Report(None, f"fio's job {members[0].name!r} did no I/O", says, line, text)
        else:
            yield Report(_figures(members).measurement(), None, says, line, text)
    if not jobs:
        yield Report(None, "it has no report of a job of fio", line=line, text=text)


def _said(jobs: Sequence[FioJob]) -> dict[str, str]:
    """What all jobs of a group say alike; `jobs`: how many there are."""
    says = {
        name: text
        for name, text in jobs[0].says.items()
        if text and all(each.says.get(name) == text for each in jobs)
    }
    names = dict.fromkeys(job.name for job in jobs)
    counts = [job.count for job in jobs]
    number = counts[0] if len(jobs) == 1 else len(jobs)
    return {**says, "job": "+".join(names), **({} if number is None else {"jobs": str(number)})}


def _figures(jobs: Sequence[FioJob]) -> Figures:
    directions = [each for job in jobs for each in job.kinds.values()]
    kinds = {name: [job.kinds[name] for job in jobs if name in job.kinds] for name in DIRECTIONS}
    present = {name: each for name, each in kinds.items() if each}
    counts = [each.count for each in directions]
    total = None if None in counts else sum(each or 0 for each in counts)
    return Figures(
        throughput=sum(_rate(each) for each in present.values()),
        latency=_together(directions),
        unit="I/O requests",
        operations=total,
        duration_s=max(each.runtime_ms for each in directions) / 1e3,
        histogram=merge_histograms(each.histogram for each in directions),
        kinds={
            name: Kind(
                _together(each), operations=_count(each), histogram=merge_histograms(one.histogram for one in each)
            )
            for name, each in present.items()
        },
    )


def _rate(directions: Sequence[Direction]) -> float:
    """Requests per second of jobs that ran together: over the longest runtime, as in fio's status of a group."""
    count, longest = _count(directions), max(each.runtime_ms for each in directions)
    if len(directions) == 1 or count is None or longest <= 0:
        return sum(each.iops for each in directions)
    return count / longest * 1e3


def _count(directions: Sequence[Direction]) -> int | None:
    counts = [each.count for each in directions]
    return None if None in counts else sum(each or 0 for each in counts)


def _together(directions: Sequence[Direction]) -> Times:
    """Latencies of several jobs or kinds: percentiles of parts do not add up, but buckets do."""
    if len(directions) == 1:
        return directions[0].times
    histogram = merge_histograms(each.histogram for each in directions)
    means = [(each.times.mean, each.count) for each in directions]
    known = [(mean, count) for mean, count in means if mean is not None and count]
    total = sum(count for _, count in known)
    least = [each.times.least for each in directions if each.times.least is not None]
    most = [each.times.most for each in directions if each.times.most is not None]
    return Times(
        mean=sum(mean * count for mean, count in known) / total if len(known) == len(means) else None,
        least=min(least) if len(least) == len(directions) else None,
        most=max(most) if len(most) == len(directions) else None,
        p50=percentile(histogram, 50),
        p95=percentile(histogram, 95),
        p99=percentile(histogram, 99),
        resolution=RESOLUTION if histogram else None,
        blind=True,
    )
