"""The kinds of studies in a calibration: which arms each compares, and how it reads the injected effect."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tare.analyze.derived import cpu_per_operation_us
from tare.analyze.numbers import number_at
from tare.calibrate import studies
from tare.calibrate.injections import LOG_NAME
from tare.monitors import SUT
from tare.plan.expand import CONTROL
from tare.run.monitoring.watch import DIRECTORY
from tare.run.record import Phase, RunRecord
from tare.run.usage.disk import SOURCES
from tare.study.model import Study

TRACE = f"{DIRECTORY}/probe/trace"
"""The run's trace among its raw files."""
Raw = Callable[[RunRecord, str], Path]
"""Where a raw file of a record lies."""
Reading = Callable[[RunRecord, Raw], float | None]


def transactions_per_cpu_second(record: RunRecord, raw: Raw) -> float | None:
    """Of the server's control group: what a saturated server's throughput is proportional to."""
    del raw
    used_us = cpu_per_operation_us(record)
    return None if not used_us else 1e6 / used_us


def cpu_seconds_per_second(record: RunRecord, raw: Raw) -> float | None:
    """CPU time that the kernel gave the server's control group, in each second that the generator drove it."""
    del raw
    used_s = number_at(record.usage, ("sut_cpu_s",))
    lasted_s = number_at(record.measurement, ("duration_s",))
    return None if used_s is None or not lasted_s else used_s / lasted_s


def time_not_held_back(record: RunRecord, raw: Raw) -> float | None:
    """Share of the threads' time in which the proxy held nothing back, by the proxy's own log.

    Of a closed loop: a thread whose messages are held back for a share f of the time does the rest of its work in
    1 - f of it.
    """
    lasted_s = number_at(record.measurement, ("duration_s",))
    threads = record.settings.get("workload", {}).get("threads")
    began = next((time.began_at for time in record.phases if time.phase is Phase.MEASURE), None)
    path = raw(record, LOG_NAME)
    if not lasted_s or not threads or began is None or not path.is_file():
        return None
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    held_ns = [line["held_ns"] for line in lines if line["accepted_at"] >= began]
    return 1 - sum(held_ns) / 1e9 / (lasted_s * threads) if held_ns else None


def bytes_read_per_second(record: RunRecord, raw: Raw) -> float | None:
    """By the kernel's account of the program's control group, as the run's trace has it: the slope of the counter.

    From the first sample in which it had grown to the last before the one in which it grew no more, so that neither
    the program's start nor its end, which fall between samples, is in it.
    """
    source = next((each for each in SOURCES if each.name == (record.usage or {}).get("sut_io_source")), None)
    if source is None:
        return None
    path = raw(record, TRACE) / f"{source.table}.parquet"
    if not path.is_file():
        return None
    rows = pl.read_parquet(path, columns=["name", source.at, source.read])
    seen = rows.filter((pl.col("name") == SUT) & (pl.col(source.read) > 0)).drop_nulls().sort(source.at)
    stood = seen[source.read].to_list()
    still = len(stood) - stood.index(stood[-1]) if stood else 0
    running = seen if still < 2 else seen.head(len(stood) - still)
    if len(running) < 2:
        return None
    first, last = running.row(0, named=True), running.row(-1, named=True)
    took_ns = last[source.at] - first[source.at]
    return 1e9 * float(last[source.read] - first[source.read]) / took_ns if took_ns > 0 else None


@dataclass(frozen=True)
class Injection:
    """An effect that is put in. `title` names it, by what is asked for; `reading` returns its true size."""

    title: str
    reading: Reading


@dataclass(frozen=True)
class Contrast:
    """Two arms of a study that are compared. `injection`: `None` for two instances of the same."""

    arm: str
    baseline: str
    injection: Injection | None = None


@dataclass(frozen=True)
class Kind:
    """A series of studies. `make`: the study of a number, from 1.

    `usual`: the server is saturated as in an ordinary study, so that its scatter shows what such a one resolves.
    """

    title: str
    make: Callable[[int], Study]
    contrasts: tuple[Contrast, ...]
    usual: bool = True

    @property
    def has_client(self) -> bool:
        """Whether there is a way between a client and a server in it."""
        return self.make(1).arms[0].settings.client is not None


def _against(baseline: str, injected: Mapping[str, Injection]) -> tuple[Contrast, ...]:
    """The baseline's second instance, and each arm that an effect is put into."""
    return (Contrast(CONTROL, baseline), *(Contrast(arm, baseline, effect) for arm, effect in injected.items()))


KINDS: Mapping[str, Kind] = {
    "work": Kind(
        "more work in each transaction",
        studies.work,
        _against(
            "k100",
            {
                f"k{count}": Injection(f"work +{count - 100} %", transactions_per_cpu_second)
                for count in studies.MORE_WORK
            },
        ),
    ),
    "quota": Kind(
        "a CPU quota on the server",
        studies.quota,
        _against(
            "q100",
            {f"q{share}": Injection(f"CPU quota {share} %", cpu_seconds_per_second) for share in studies.QUOTAS},
        ),
    ),
    "delay": Kind(
        "a proxy that holds messages back",
        studies.delay,
        _against("passed", {"held": Injection(f"proxy delay {studies.DELAY_US} µs", time_not_held_back)}),
        usual=False,
    ),
    "io": Kind(
        "a limit on reads from the disk",
        studies.disk,
        _against(
            "r1000",
            {
                f"r{rate}": Injection(f"{rate} reads a second", bytes_read_per_second)
                for rate in studies.READS_PER_S[1:]
            },
        ),
        usual=False,
    ),
    "aa": Kind(
        "nothing: two bare servers, two in containers",
        studies.same,
        (Contrast(CONTROL, "bare"), Contrast("container-again", "container")),
    ),
}
"""In the order in which a calibration takes turns."""
