"""What a Prometheus had of a real cAdvisor (tests/data/monitors/README.md), and documents made by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tare.errors import RunFailed
from tare.monitors import MonitorContext, WatchedProcess, why_unavailable
from tare.monitors.registry import MONITORS
from tare.monitors.samples import columns
from tare.sites.fake import FakeHost

DATA = Path(__file__).resolve().parents[2] / "data" / "monitors" / "cadvisor"
CADVISOR = MONITORS["cadvisor"]
SUT = WatchedProcess("sut", 7, own_cgroup=True)
CPU = "container_cpu_usage_seconds_total"


def scene(*watched: WatchedProcess, **options: str) -> MonitorContext:
    return MonitorContext(FakeHost(), "/run/m", interval_s=1.0, most_s=100.0, watched=watched, options=options)


def read(directory: Path) -> pl.DataFrame:
    table = CADVISOR.read(scene(SUT), directory).table
    assert table is not None
    return table


def of(table: pl.DataFrame, quantity: str) -> pl.DataFrame:
    return table.filter(quantity=quantity)


def answers(path: Path, cpus: Sequence[Sequence[tuple[float, float]]], rate: Sequence[tuple[float, float]]) -> Path:
    """A document as prometheus_reader.py writes it: the realtime clock 1000 s ahead of the monotonic one."""
    clocks = [{"monotonic_ns": at * 10**9, "realtime_ns": (1000 + at) * 10**9} for at in (0, 9)]
    series = [{"metric": {}, "values": [[1000 + at, str(value)] for at, value in each]} for each in cpus]
    raw = {CPU: series, **{metric: [] for metric in ("container_memory_working_set_bytes",
           "container_fs_reads_bytes_total", "container_fs_writes_bytes_total")}}  # fmt: skip
    fields = {"clocks": clocks, "group": "/x", "range_s": 5.0, "raw": raw,
            "rate": [[1000 + at, str(value)] for at, value in rate]}  # fmt: skip
    (path / "prometheus.json").write_text(json.dumps(fields))
    return path


def test_the_answers_of_a_real_prometheus_are_read_with_cadvisor_s_own_stamps() -> None:
    document = json.loads((DATA / "prometheus.json").read_text())
    table = read(DATA)
    assert dict(table.schema) == columns()
    assert set(table["subject"]) == {"sut"}
    first, second = (sum(float(each["values"][n][1]) for each in document["raw"][CPU]) for n in (0, 1))
    begin, end = (document["raw"][CPU][0]["values"][n][0] for n in (0, 1))
    row = of(table, "cpu_cores_irate").row(0, named=True)
    assert row["value"] == pytest.approx((second - first) / (end - begin))
    assert row["to_ns"] - row["from_ns"] == pytest.approx((end - begin) * 1e9, abs=1e6)
    ahead = document["clocks"][-1]["realtime_ns"] - document["clocks"][-1]["monotonic_ns"]
    assert row["from_ns"] == pytest.approx(begin * 1e9 - ahead, abs=1e6)
    memory = of(table, "working_set_bytes")
    assert memory["value"][0] == float(document["raw"]["container_memory_working_set_bytes"][0]["values"][0][1])
    assert (memory["from_ns"] == memory["to_ns"]).all()


def test_cpus_are_summed_and_one_that_is_new_counts_from_then_on(tmp_path: Path) -> None:
    one = [(1.0, 10.0), (2.0, 10.5), (3.0, 11.0)]
    other = [(2.0, 7.0), (3.0, 7.25)]
    assert of(read(answers(tmp_path, [one, other], [])), "cpu_cores_irate")["value"].to_list() == [0.5, 0.75]


def test_rate_covers_what_was_scraped_within_its_range(tmp_path: Path) -> None:
    steady = [(float(n), 100.0 + 0.6 * n) for n in range(9)]
    row = of(read(answers(tmp_path, [steady], [(6.5, 0.6)])), "cpu_cores").row(0, named=True)
    assert (row["from_ns"], row["to_ns"], row["value"]) == (2 * 10**9, 6 * 10**9, 0.6)


@pytest.mark.parametrize(
    ("stamps", "began"),
    [
        ((3.0, 4.0, 5.0, 6.0), 100.0),  # 1.5 s after the range began: more than 1.1 gaps
        ((2.0, 3.0, 4.0, 5.0), 100.0),  # 1.5 s before it ended
        ((2.0, 3.0, 4.0, 5.0, 6.0), 0.1),  # from 0 in less than half a second before the first
        ((6.0,), 100.0),
    ],
)
def test_an_answer_that_prometheus_extrapolated_in_part_is_left_out(
    tmp_path: Path, stamps: Sequence[float], began: float
) -> None:
    counter = [(at, began + 0.6 * (at - stamps[0])) for at in stamps] + [(8.0, began + 5.0)]
    assert of(read(answers(tmp_path, [counter], [(6.5, 0.5)])), "cpu_cores").is_empty()


def test_answers_of_the_same_scrapes_are_one(tmp_path: Path) -> None:
    steady = [(float(n), 100.0 + 0.6 * n) for n in range(9)]
    assert len(of(read(answers(tmp_path, [steady], [(6.3, 0.6), (6.7, 0.6)])), "cpu_cores")) == 1


def test_a_missed_scrape_is_no_scatter_of_the_stamps(tmp_path: Path) -> None:
    counter = [(at, at) for at in (1.0, 2.0, 3.0, 5.0, 6.0)]
    assert set(read(answers(tmp_path, [counter], []))["within_ns"]) == {6_000_000}


def test_a_group_of_which_cadvisor_has_nothing_fails_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="no CPU time of the control group /x"):
        read(answers(tmp_path, [], []))
    (tmp_path / "prometheus.json").write_text('{"raw": ')
    with pytest.raises(RunFailed, match="incomplete data of cAdvisor"):
        read(tmp_path)


def test_a_metric_without_a_series_is_nothing_and_not_zero(tmp_path: Path) -> None:
    table = read(answers(tmp_path, [[(1.0, 1.0), (2.0, 2.0)]], []))
    assert of(table, "fs_writes_bytes").is_empty()


def test_it_watches_a_control_group_of_its_own_only() -> None:
    assert CADVISOR.programs(scene(WatchedProcess("sut", 7))) == ()
    (program,) = CADVISOR.programs(scene(SUT, binary="/opt/cadvisor"))
    assert program.files["pids"] == "7 sut\n"
    assert program.argv[-5:] == ("/run/m", "/opt/cadvisor", "prometheus", "1", "100")
    assert not program.counts_itself


def test_a_program_that_comes_later_is_handed_over() -> None:
    handed = CADVISOR.update_targets(scene(), (SUT, WatchedProcess("client", 9, own_cgroup=True)))
    assert handed is not None
    assert (handed.file, handed.content, handed.signal) == ("pids", "7 sut\n", "HUP")


@pytest.mark.parametrize(
    ("missing", "words"), [("/opt/cadvisor", "CADVISOR=PATH"), ("prometheus", "apt-get install prometheus")]
)
def test_what_is_not_there_is_told_with_a_way_forward(missing: str, words: str) -> None:
    host = FakeHost(answers={(missing, "--version"): RunFailed(f"{missing} cannot be run")})
    reason = why_unavailable(CADVISOR, host, 1.0, {"binary": "/opt/cadvisor"})
    assert reason is not None
    assert words in reason


def test_the_program_is_the_study_s_else_the_environment_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CADVISOR", "/elsewhere")
    host = FakeHost()
    assert why_unavailable(CADVISOR, host, 1.0, {}) is None
    assert why_unavailable(CADVISOR, host, 1.0, {"binary": "/opt/cadvisor"}) is None
    assert host.ran() == [
        (each, "--version") for each in ("/elsewhere", "prometheus", "/opt/cadvisor", "prometheus")
    ]


@pytest.mark.parametrize(("interval_s", "options"), [(0.05, {}), (0.1005, {}), (1.0, {"port": 1})])
def test_what_it_cannot_be_asked_is_told(interval_s: float, options: dict[str, Any]) -> None:
    assert why_unavailable(CADVISOR, FakeHost(), interval_s, options) is not None
