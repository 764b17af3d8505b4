from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from tests.unit.analyze import synthetic

from tare.analyze.metrics import METRICS, PRIMARY
from tare.analyze.timelines import Timeline, Timelines, series, timelines
from tare.analyze.timelines.marks import Mark
from tare.analyze.timelines.runs import Span, representative
from tare.analyze.timelines.series import CLIENT, CPU, HOST, MEMORY, MOST_STEPS, NETWORK, READ, SUT, WRITTEN
from tare.plan.expand import expand
from tare.record.measurement import Measurement
from tare.record.run_record import RunRecord
from tare.report.charts import timelines as chart
from tare.report.charts.theme import FRAMES, WIDE, draw
from tare.store import open_store, resume_store
from tare.store.trace import Trace, read_trace

REAL = Path(__file__).resolve().parents[3] / "data" / "trace"
S, MIB = 1_000_000_000, 1 << 20


def trace(seconds: int = 10, **tables: list[dict[str, Any]]) -> Trace:
    """Read once a second from second 100 on; `tables`: what each row has beside its time."""
    ticks = [{"tick": n, "woke_ns": (100 + n) * S} for n in range(seconds + 1)]
    frames = {name: pl.DataFrame(rows, infer_schema_length=None) for name, rows in tables.items()}
    header = {"ticks": {"user_hz": 100}, "cpus": 2, "started_monotonic_ns": 100 * S}
    return Trace(header, {}, True, {"tick": pl.DataFrame(ticks), **frames})


def group(name: str, begin: int, end: int, target: int = 1, cores: float = 0.5) -> list[dict[str, Any]]:
    return [
        {
            "target": target, "name": name, "usage_t0_ns": at * S, "usage_ns": round(cores * (at - begin) * S),
            "memory_t0_ns": at * S, "memory_bytes": 64 * MIB, "block_at_ns": at * S, "block_read_bytes": 0,
            "block_written_bytes": 2 * MIB * (at - begin),
        }
        for at in range(begin, end + 1)
    ]  # fmt: skip


def values(points: tuple[Any, ...], panel: str, who: str) -> list[tuple[float, float]]:
    return [(point.second, point.value) for point in points if (point.panel, point.who) == (panel, who)]


def test_a_counter_is_a_rate_over_even_steps_since_measuring_began() -> None:
    points = series(trace(cgroup=group("sut", 100, 110)), zero_s=102.0)
    assert values(points, CPU, SUT) == [(n - 1.5, 0.5) for n in range(10)]
    assert values(points, WRITTEN, SUT) == [(n - 1.5, 2.0) for n in range(10)]
    assert values(points, READ, SUT) == [(n - 1.5, 0.0) for n in range(10)]
    assert values(points, MEMORY, SUT)[0] == (-2.0, 64.0)


def test_runs_whose_traces_are_damaged_are_named_and_put_in_order_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, asked = synthetic.study(("bare", "bridge")), Counter[str]()
    with resume_store(tmp_path / "store", expand(study)) as writer:
        for record in synthetic.records(("bare", "bridge"), blocks=4):
            writer.commit(record.model_copy(update={"raw": ()}))
    store = open_store(tmp_path / "store")
    for record in store.records():
        head = store.raw(record, "monitors/probe/trace/trace.json")
        head.parent.mkdir(parents=True)
        head.write_text("{}")

    def throughput(run: RunRecord) -> float | None:
        asked[run.run_id] += 1
        return METRICS[PRIMARY].of(run)

    monkeypatch.setattr("tare.analyze.timelines.runs.METRICS", {PRIMARY: SimpleNamespace(of=throughput)})
    found = timelines(study, store, store.records())
    assert found.runs == ()
    assert {text.split()[3] for text in found.unread} == {record.run_id for record in store.records()}
    assert set(asked.values()) == {2}, "once to find the arms with a trace, and once to put their runs in order"


def test_a_client_has_a_line_only_while_there_is_one() -> None:
    """The warm-up's and the measure phase's are two, with a pause between them."""
    rows = group("warm-up", 100, 102, target=1) + group("client", 106, 110, target=2, cores=1.0)
    results = values(series(trace(cgroup=rows), zero_s=100.0), CPU, CLIENT)
    assert results == [(0.5, 0.5), (1.5, 0.5), (6.5, 1.0), (7.5, 1.0), (8.5, 1.0), (9.5, 1.0)]


def test_without_a_control_group_the_processes_tell() -> None:
    rows = [
        {"target": pid, "name": "sut", "cpu_t0_ns": at * S, "cpu_ns": (at - 100) * S // 4, "io_t0_ns": at * S,
         "read_bytes": 0, "written_bytes": 0}
        for at in range(100, 111) for pid in (1, 2)
    ]  # fmt: skip
    assert set(dict(values(series(trace(process=rows), zero_s=100.0), CPU, SUT)).values()) == {0.5}


def test_a_bridge_and_a_veth_are_not_counted_beside_what_they_carry() -> None:
    names = ("host/eth0", "host/lo", "host/veth12", "host/br-0a", "host/docker0", "sut/eth0", "sut/lo")
    rows = [
        {"target": n, "name": name, "t0_ns": at * S, "rx_bytes": (at - 100) * MIB, "tx_bytes": 0}
        for n, name in enumerate(names)
        for at in range(100, 111)
    ]  # fmt: skip
    points = series(trace(interface=rows), zero_s=100.0)
    assert set(dict(values(points, NETWORK, HOST)).values()) == {2.0}
    assert set(dict(values(points, NETWORK, SUT)).values()) == {1.0}


def test_a_long_run_has_no_more_points_than_can_be_told_apart() -> None:
    points = series(trace(seconds=500, cgroup=group("sut", 100, 600)), zero_s=100.0)
    assert len(values(points, CPU, SUT)) == MOST_STEPS
    assert {value for _, value in values(points, CPU, SUT)} == {0.5}


def test_a_real_trace_gives_lines_of_the_host() -> None:
    points = series(read_trace(REAL), zero_s=0.0)
    cores = [value for _, value in values(points, CPU, HOST)]
    assert cores
    assert all(0 <= value <= 2.2 for value in cores)


@pytest.mark.parametrize(("tps", "median"), [([3.0], 3.0), ([5.0, 1.0, 3.0], 3.0), ([4.0, 1.0, 3.0, 2.0], 2.0)])
def test_the_run_that_stands_for_an_arm_has_its_median_throughput(tps: list[float], median: float) -> None:
    one = synthetic.records()[0]
    runs = [one.model_copy(update={"measurement": Measurement(throughput_per_s=value)}) for value in tps]
    chosen = representative(runs)
    assert chosen is not None
    assert chosen.measurement == Measurement(throughput_per_s=median)
    assert representative([]) is None


def shown(arms: int) -> Timelines:
    rows = group("sut", 100, 400) + group("client", 150, 400, target=2)
    points = series(trace(seconds=300, cgroup=rows), zero_s=150.0)
    phases = (Span("warm-up", -50.0, 0.0), Span("measure", 0.0, 240.0))
    return Timelines(tuple(Timeline(f"arm-{n}", f"b01-{n}", points, phases) for n in range(arms)), ())


def test_eight_arms_stay_far_below_three_megabytes() -> None:
    drawn = [draw(chart.timelines(shown(8), frame), f"t-{frame.name}", "label") for frame in FRAMES]
    assert sum(map(len, drawn)) < 1_500_000
    assert all("arm-7" in svg and "CPU, cores" in svg for svg in drawn)


def test_the_chart_is_told_in_words_by_means_over_the_measure_phase() -> None:
    words = chart.in_words(shown(1))
    assert "arm-0: SUT 0.500 (CPU, cores), client 0.500 (CPU, cores)" in words


def compacting(began: float, ended: float, *more: Mark) -> Timelines:
    one = shown(1).runs[0]
    work = Mark("compaction", began, "compaction of ycsb.usertable: 9 MiB written", until=ended, work=True)
    return Timelines((replace(one, marks=(work, *more)),), ())


def test_compactions_are_bands_behind_the_disk_and_told_in_words() -> None:
    spec = json.dumps(chart.timelines(compacting(-500.0, 12.5), WIDE))
    assert spec.count('"type": "rect"') == len(chart.PANELS) + 1  # the measure phase in all of them, one band
    assert '"end": 12.5' in spec
    assert '"second": -500' not in spec  # what began before the trace is cut to it
    assert "-500 to 12.5 s, compaction of ycsb.usertable: 9 MiB written" in chart.in_words(compacting(-500, 12.5))


def test_what_happened_at_a_moment_hangs_in_every_panel() -> None:
    slept = Mark("recording", 30.0, "the machine slept")
    spec = json.dumps(chart.timelines(compacting(1.0, 2.0, slept), WIDE))
    assert spec.count("triangle-down") == len(chart.PANELS)
    assert "30 s, the machine slept" in chart.in_words(compacting(1.0, 2.0, slept))


def test_a_run_of_three_seconds_has_no_second_twice_on_its_axis() -> None:
    points = series(trace(seconds=3, cgroup=group("sut", 100, 103)), zero_s=100.0)
    runs = Timelines((Timeline("arm", "b01-0", points, (Span("measure", 0.0, 3.0),)),), ())
    for frame in FRAMES:
        labels = re.findall(r"<text[^>]*>([0-9.]+)</text>", draw(chart.timelines(runs, frame), "t", "label"))
        assert labels
        assert "m" not in "".join(labels)
