"""When the generator drove load is told by its own word where that can be true, else by the end of the phase."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tare.record.load_time import (
    BEGIN_TOLERANCE_S,
    Bounds,
    LoadTime,
    ReportedStart,
    Span,
    locate_load,
    spans_of,
)
from tare.record.usage import Usage
from tare.workloads import Measurement
from tare.workloads.cassandra_stress.histograms import read_histograms
from tare.workloads.cassandra_stress.measurement import Expected as AskedOfStress
from tare.workloads.cassandra_stress.measurement import Logged
from tare.workloads.cassandra_stress.measurement import measurement as of_stress
from tare.workloads.cassandra_stress.output import read_output as read_stress
from tare.workloads.fio.measurement import measurement as of_fio
from tare.workloads.fio.parameters import FioParameters
from tare.workloads.sysbench.measurement import measurement as of_sysbench
from tare.workloads.sysbench.parameters import SysbenchParameters
from tare.workloads.ycsb.measurement import Expected, measurement
from tare.workloads.ycsb.output import read_output

DATA = Path(__file__).resolve().parents[2] / "data"
WALL_S, MONOTONIC_S = datetime(2026, 11, 22, 12, 0, tzinfo=UTC).timestamp(), 5000.0
PHASE = Span(MONOTONIC_S + 0.5, MONOTONIC_S + 30.5)


def announced(started_at: float | None) -> ReportedStart:
    return ReportedStart(started_at, WALL_S - MONOTONIC_S)


def at(seconds: float) -> float:
    return MONOTONIC_S + seconds


def test_the_generator_s_own_moment_is_laid_on_the_trace_s_clock() -> None:
    assert locate_load(PHASE, 20.0, announced(WALL_S + 8.0)) == LoadTime(at(8.0), at(28.0), "generator")


@pytest.mark.parametrize("zone_h", [-9.5, 0, 1, 5.75, 13])
def test_its_time_zone_does_not_matter(zone_h: float) -> None:
    drive = locate_load(PHASE, 20.0, announced(WALL_S + 8.0 + 3600 * zone_h))
    assert drive.by == "generator"
    assert drive.began_monotonic_s == pytest.approx(at(8.0))


@pytest.mark.parametrize("started_at", [None, WALL_S - 5.0, WALL_S + 60.0], ids=["none", "too early", "too late"])
def test_without_a_moment_that_can_be_true_its_seconds_lie_before_the_phase_s_end(started_at: float | None) -> None:
    assert locate_load(PHASE, 20.0, announced(started_at)) == LoadTime(at(10.5), at(30.5), "end")


def test_it_does_not_drive_after_the_phase() -> None:
    assert locate_load(PHASE, 20.0, announced(WALL_S + 15.0)).ended_monotonic_s == at(30.5)


def test_older_records_do_not_tell() -> None:
    assert Usage(driven=locate_load(PHASE, 20.0)).load == Span(at(10.5), at(30.5))
    assert Usage().load is None


def test_it_began_at_its_word_or_between_its_process_and_what_its_end_allows() -> None:
    by_word = Bounds.of(locate_load(PHASE, 20.0, announced(WALL_S + 8.0)), process_s=at(1.0))
    assert by_word == Bounds(at(8.0) - BEGIN_TOLERANCE_S, at(8.0) + BEGIN_TOLERANCE_S, 20.0)
    assert Bounds.of(locate_load(PHASE, 20.0), process_s=at(1.0)) == Bounds(at(1.0), at(10.5), 20.0)
    assert Bounds.of(locate_load(PHASE, 20.0), process_s=at(11.0)).earliest_s == at(10.5)


def sysbench() -> Measurement:
    own = SysbenchParameters(script="oltp_read_only", threads=4, measure_s=4, window_s=1)
    return of_sysbench(own, DATA / "sysbench" / "closed.stdout", Path("/dev/null"), 0)


def ycsb() -> Measurement:
    texts = [(DATA / "ycsb" / f"both.{stream}").read_text() for stream in ("stdout", "stderr")]
    return measurement(read_output(*texts), Expected(interval="both", window_s=1.0))


def cassandra_stress() -> Measurement:
    folder = DATA / "cassandra-stress"
    printed = read_stress((folder / "fed.stdout").read_text())
    log = read_histograms(folder / "fed.latency.hdr", "actual-send")
    return of_stress(printed, AskedOfStress(window_s=1.0), Logged(log))


def fio() -> Measurement:
    folder = DATA / "fio"
    own = FioParameters(rw="randrw", size="16M", numjobs=2, measure_s=3, direct=True)
    logs = [folder / f"mix.fio_iops.{job}.log" for job in (1, 2)]
    return of_fio(own, folder / "mix.stdout", Path("/dev/null"), logs, 0)


@pytest.mark.parametrize(
    ("generator", "by"),
    [(sysbench, "end"), (ycsb, "generator"), (cassandra_stress, "generator"), (fio, "generator")],
)
def test_windows_of_real_output_lie_where_they_were(generator: object, by: str) -> None:
    """A client whose process lived 3 s before it drove load, and 0.7 s after."""
    assert callable(generator)
    result: Measurement = generator()
    began_at = result.started_at or WALL_S
    ahead_s = began_at - at(3.0)
    assert result.duration_s is not None
    phase = Span(at(0.0), at(3.7) + result.duration_s)
    load = locate_load(phase, result.duration_s, ReportedStart(result.started_at, ahead_s))
    assert load.by == by
    ends = [window.end_s for window in result.windows]
    placed = spans_of(ends, load.began_monotonic_s)
    late_s = 0.0 if by == "generator" else 0.7
    assert [span.ended_s for span in placed] == pytest.approx([at(3.0) + late_s + end for end in ends])
    assert [span.began_s for span in placed] == pytest.approx([at(3.0) + late_s + end for end in (0.0, *ends[:-1])])
    bounds = Bounds.of(load, process_s=at(0.0))
    assert bounds.earliest_s <= at(3.0) <= bounds.latest_s
