"""`cadvisor`: the SUT's control group as cAdvisor reports it to a Prometheus that scrapes it and computes rate().

Neither program is tare's: cAdvisor is the user's own, Prometheus Debian's (docs/reference/monitors.md).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from tare.errors import RunFailed
from tare.monitors import SUT, MonitorContext, Options, Program, Reading, TargetUpdate, WatchedProcess
from tare.monitors.samples import SECOND_NS, Moment, Row, table
from tare.requirements import HostPlan, Lack, Requirement
from tare.sites.reading import runs

SERVER = Path(__file__).with_name("cadvisor_server.py")
READER = Path(__file__).with_name("prometheus_reader.py")
PROMETHEUS = "prometheus"
RANGE_S = 5.0
"""Range of rate(), the same as in the view."""
_ANSWERS = "prometheus.json"
_PIDS = "pids"
_CALL_S = 10.0
_FASTEST_S = 0.1
_STAMP_NS = 6_000_000
"""cAdvisor takes the time after it has read all files of a group, and Prometheus keeps whole milliseconds."""
_REACH = 1.1
"""Mean gaps that rate() extrapolates over: prometheus/prometheus promql/functions.go extrapolatedRate."""


def _lacks(there: HostPlan) -> Iterator[Lack]:
    binary = _binary(there.options)
    if not runs(there.host, [binary, "--version"]):
        yield Lack(
            f"cAdvisor is missing: {binary} cannot be run; build it (in a clone of google/cadvisor: cd cmd && "
            "go build -o PATH .) and set CADVISOR=PATH, or let the study run without it: `optional: true`"
        )
    elif not runs(there.host, [PROMETHEUS, "--version"]):
        yield Lack("prometheus is not installed", "apt-get install prometheus")


CADVISOR = Requirement(
    "cAdvisor",
    needed_by="the monitor `cadvisor`",
    tried_how="the versions of $CADVISOR and prometheus",
    hint="build cAdvisor, set CADVISOR=PATH, and apt-get install prometheus",
    ask=_lacks,
)


class Cadvisor:
    """Watches the SUT's control group, also that of a bare SUT. Without a control group, nothing is started."""

    daemons: ClassVar[frozenset[str]] = frozenset({"dockerd", "containerd", "podman"})
    reports_cost: ClassVar[bool] = False
    needs: ClassVar[tuple[Requirement, ...]] = (CADVISOR,)

    def settings_fault(self, interval_s: float, options: Options) -> str | None:
        """Check the interval and the options."""
        if interval_s < _FASTEST_S or round(interval_s * 1000) != interval_s * 1000:
            return f"cadvisor reads every {_FASTEST_S:g} s at most, in whole milliseconds; change interval_s"
        if unknown := sorted(set(options) - {"binary"}):
            return f"cadvisor knows no option {unknown[0]!r}; it has `binary`"
        return None

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        """One program that runs both, so that each gets a free port."""
        if context.sut is not None and not context.sut.own_cgroup:
            return ()
        path = f"{context.directory}/{SERVER.name}"
        limits = (f"{context.interval_s:g}", f"{context.most_s:g}")
        return (
            Program(
                name="cadvisor",
                argv=(
                    "python3",
                    "-I",
                    "-S",
                    path,
                    context.directory,
                    _binary(context.options),
                    PROMETHEUS,
                    *limits,
                ),
                files={file.name: file.read_text() for file in (SERVER, READER)} | {_PIDS: _pids(context.watched)},
                started=f"{context.directory}/ready",
                counts_itself=False,
            ),
        )

    def update_targets(self, context: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:
        """A program that is measured by itself starts after its monitors."""
        pids = _pids(later)
        return TargetUpdate(_PIDS, _pids(context.watched) + pids, "HUP") if pids else None

    def final_commands(self, context: MonitorContext) -> Mapping[str, tuple[str, ...]]:
        """Fetch all data of Prometheus before it ends."""
        reader = ("python3", "-I", "-S", f"{context.directory}/{READER.name}", context.directory)
        return {_ANSWERS: (*reader, f"{context.interval_s:g}", f"{RANGE_S:g}", SUT)}

    def read(self, context: MonitorContext, directory: Path) -> Reading:  # noqa: ARG002 - the contract's
        """Read the answers of Prometheus. Raises `RunFailed` if there is nothing about the control group."""
        try:
            answers = json.loads((directory / _ANSWERS).read_text())
        except (OSError, ValueError) as error:
            raise RunFailed(f"Prometheus has incomplete data of cAdvisor: {error}") from error
        if answers["group"] is None:
            raise RunFailed("cAdvisor was given no control group of the SUT")
        scraped = Scraped.of(answers)
        if len(scraped.stamps) < 2:
            raise RunFailed(f"cAdvisor showed no CPU time of the control group {answers['group']}")
        rates = _rate_rows(scraped, answers["rate"], float(answers["range_s"]))
        rows = [*_between_rows(scraped), *rates, *_gauge_rows(scraped)]
        return Reading(len(scraped.stamps), table("cadvisor", rows), {})


@dataclass(frozen=True)
class Scraped:
    """Data scraped of one group: metric → for each series (a CPU or a device) a mapping from time to value.

    Times are nanoseconds of CLOCK_MONOTONIC, which is `to_monotonic_ns` behind CLOCK_REALTIME.
    """

    series: Mapping[str, Sequence[Mapping[int, float]]]
    to_monotonic_ns: int
    within_ns: int

    @classmethod
    def of(cls, scrape: Mapping[str, Any]) -> Scraped:
        """Parse the document of prometheus_reader.py."""
        shifts = [clock["realtime_ns"] - clock["monotonic_ns"] for clock in scrape["clocks"]]
        series = {
            metric: [{_ns(at) - shifts[-1]: float(value) for at, value in one["values"]} for one in rows]
            for metric, rows in scrape["raw"].items()
        }
        return cls(series, shifts[-1], _STAMP_NS + abs(shifts[-1] - shifts[0]) + _scatter(_stamps(series[_CPU])))

    @property
    def stamps(self) -> list[int]:
        """Times at which cAdvisor read the group's CPU time."""
        return _stamps(self.series[_CPU])

    def sums(self, metric: str) -> dict[int, float]:
        """Time → sum over all series that have a value at this time."""
        totals: dict[int, float] = {}
        for one in self.series[metric]:
            for at, value in one.items():
                totals[at] = totals.get(at, 0.0) + value
        return totals


_CPU = "container_cpu_usage_seconds_total"
_GAUGES = {
    "container_memory_working_set_bytes": "working_set_bytes",
    "container_fs_reads_bytes_total": "fs_reads_bytes",
    "container_fs_writes_bytes_total": "fs_writes_bytes",
}


def _between_rows(scraped: Scraped) -> Iterator[Row]:
    """Results of irate() for consecutive scrapes; a new CPU counts from its first scrape."""
    stamps = scraped.stamps
    for begin, end in pairwise(stamps):
        grown = sum(_grown(one[begin], one[end]) for one in scraped.series[_CPU] if begin in one and end in one)
        moment = Moment(begin, end, scraped.within_ns)
        yield Row("cpu_cores_irate", SUT, moment, grown / ((end - begin) / SECOND_NS))


def _grown(before: float, after: float) -> float:
    """Growth of a counter; one that fell has restarted at 0."""
    return after - before if after >= before else after


def _rate_rows(scraped: Scraped, answers: Sequence[Sequence[Any]], range_s: float) -> Iterator[Row]:
    """Answers of rate() with a filled range; of equal answers, only the first."""
    before = None
    for at, value in answers:
        moment = _filled(scraped, _ns(at) - scraped.to_monotonic_ns, round(range_s * SECOND_NS))
        if moment is not None and moment != before:
            yield Row("cpu_cores", SUT, moment, float(value))
        before = moment


def _filled(scraped: Scraped, end: int, range_ns: int) -> Moment | None:
    """From the first to the last scrape in a range; `None` if rate() extrapolates beyond a filled range."""
    begin = end - range_ns
    inside = [stamp for stamp in scraped.stamps if begin <= stamp <= end]
    if len(inside) < 2 or not all(_fills(one, inside, begin, end) for one in scraped.series[_CPU]):
        return None
    return Moment(inside[0], inside[-1], scraped.within_ns)


def _fills(one: Mapping[int, float], inside: Sequence[int], begin: int, end: int) -> bool:
    """Whether rate() extends a series to both ends of the range, not only by half a gap or to where it was 0."""
    if not all(stamp in one for stamp in inside):
        return False
    first, last = inside[0], inside[-1]
    reach = _REACH * (last - first) / (len(inside) - 1)
    grown = one[last] - one[first]
    from_zero = (last - first) * one[first] / grown if grown > 0 else reach
    return first - begin < min(reach, from_zero) and end - last < reach


def _gauge_rows(scraped: Scraped) -> Iterator[Row]:
    """Values of gauges. A metric without series has no row: missing is not 0."""
    for metric, quantity in _GAUGES.items():
        for at, value in sorted(scraped.sums(metric).items()):
            yield Row(quantity, SUT, Moment(at, at, scraped.within_ns), value, is_gauge=True)


def _stamps(series: Sequence[Mapping[int, float]]) -> list[int]:
    return sorted({at for one in series for at in one})


def _scatter(stamps: Sequence[int]) -> int:
    """Largest deviation of gaps between stamps from the usual gap, or its multiple after missed scrapes."""
    gaps = [after - before for before, after in pairwise(stamps)]
    usual = round(median(gaps)) if gaps else 1
    return max((abs(gap - max(1, round(gap / usual)) * usual) for gap in gaps), default=0)


def _ns(seconds: float) -> int:
    """Nanoseconds of a Prometheus time, which is in whole milliseconds."""
    return round(seconds * 1000) * 1_000_000


def _pids(watched: tuple[WatchedProcess, ...]) -> str:
    """`PID NAME` of the SUT, if it has a control group of its own."""
    return "".join(f"{each.pid} {each.name}\n" for each in watched if each.name == SUT and each.own_cgroup)


def _binary(options: Options) -> str:
    """Program from the study, else from the environment, else `cadvisor`."""
    return str(options.get("binary") or os.environ.get("CADVISOR") or "cadvisor")
