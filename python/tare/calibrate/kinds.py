"""The kinds of studies in a calibration: the arms that each compares, and how it reads the injected effect."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from tare.analyze.derived import cpu_per_operation_us, sut_cpus_used
from tare.calibrate import studies
from tare.calibrate.injections import LOG_NAME
from tare.errors import StoreError
from tare.monitors import SUT
from tare.parquet import read_parquet
from tare.plan.expand import CONTROL
from tare.record.raw_files import DIRECTORY
from tare.record.run_record import Phase, RunRecord
from tare.record.trace import SOURCES
from tare.study.model import Study

TRACE = f"{DIRECTORY}/probe/trace"
"""The run's trace among its raw files."""
Raw = Callable[[RunRecord, str], Path]
"""Returns the path of a record's raw file."""
Reading = Callable[[RunRecord, Raw], float | None]


def transactions_per_cpu_second(record: RunRecord, raw: Raw) -> float | None:
    """Return the transactions per CPU second of the server, which determine a saturated server's throughput."""
    del raw
    used_us = cpu_per_operation_us(record)
    return None if not used_us else 1e6 / used_us


def cpu_seconds_per_second(record: RunRecord, raw: Raw) -> float | None:
    """Return the CPU seconds that the server's control group received per second of load."""
    del raw
    return sut_cpus_used(record)


def time_not_held_back(record: RunRecord, raw: Raw) -> float | None:
    """Return the share of the threads' time in which the proxy delayed nothing, from the proxy's log.

    For a closed loop: a thread whose messages are delayed for a share f of the time does its other work in 1 - f of
    it.
    """
    lasted_s = record.measurement and record.measurement.duration_s
    threads = record.settings.get("workload", {}).get("threads")
    began = next((time.began_at for time in record.phases if time.phase is Phase.MEASURE), None)
    path = raw(record, LOG_NAME)
    if not lasted_s or not threads or began is None or not path.is_file():
        return None
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    held_ns = [line["held_ns"] for line in lines if line["accepted_at"] >= began]
    return 1 - sum(held_ns) / 1e9 / (lasted_s * threads) if held_ns else None


def bytes_read_per_second(record: RunRecord, raw: Raw) -> float | None:
    """Return the bytes read per second by the program's control group, from the run's trace: the counter's slope.

    From the first sample with growth to the last sample before the counter stands still, which excludes the
    program's start and end between samples.
    """
    source = next((each for each in SOURCES if record.usage and each.name == record.usage.sut_io_source), None)
    if source is None:
        return None
    path = raw(record, TRACE) / f"{source.table}.parquet"
    if not path.is_file():
        return None
    try:
        rows = read_parquet(path, columns=["name", source.at, source.read])
    except (OSError, PolarsError) as error:
        raise StoreError(f"the trace {path} cannot be read: {error}") from error
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
    """An injected effect. `title`: its nominal size in words; `reading`: returns its true size."""

    title: str
    reading: Reading


@dataclass(frozen=True)
class Contrast:
    """Two arms of a study that are compared. `injection`: `None` for two instances of the same arm."""

    arm: str
    baseline: str
    injection: Injection | None = None


@dataclass(frozen=True)
class Kind:
    """A series of studies. `make`: returns the study of a number, from 1.

    `usual`: the server is saturated as in an ordinary study, so that its scatter shows what an ordinary study
    resolves.
    """

    title: str
    make: Callable[[int], Study]
    contrasts: tuple[Contrast, ...]
    usual: bool = True

    @property
    def has_client(self) -> bool:
        """Whether its studies have a client and a server."""
        return self.make(1).arms[0].settings.client is not None


def _against(baseline: str, injected: Mapping[str, Injection]) -> tuple[Contrast, ...]:
    """Contrast the baseline with its second instance and with each arm that has an injected effect."""
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
"""In the order in which a calibration cycles through them."""
