"""Real output of sysbench's `cpu` and `fileio`, read and judged, and the calls that make it.

tests/data/sysbench-builtin/README.md says how each file came about. Expected figures were read off them by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tare.errors import RunFailed
from tare.workloads import Files, Measurement
from tare.workloads.sysbench.cpu import SysbenchCpu, SysbenchCpuParameters
from tare.workloads.sysbench.fileio import SysbenchFileio, SysbenchFileioParameters

ROOT = Path(__file__).parents[4]
DATA = ROOT / "tests" / "data" / "sysbench-builtin"
PAGES = ROOT / "docs" / "reference" / "workloads"
FILES = {"file_test_mode": "rndrw", "file_num": 4, "file_total_size": "32M", "threads": 2}


def captured(name: str) -> str:
    return (DATA / f"{name}.stdout").read_text()


def cpu(tmp_path: Path, text: str, *, code: int = 0, measure_s: float = 4) -> Measurement:
    (tmp_path / "out").write_text(text)
    (tmp_path / "err").touch()
    parameters = SysbenchCpuParameters(measure_s=measure_s, cpu_max_prime=16_000, threads=2)
    return SysbenchCpu().parse(parameters, tmp_path / "out", tmp_path / "err", code)


def fileio(tmp_path: Path, text: str, *, code: int = 0, measure_s: float = 3, **asked: Any) -> Measurement:
    (tmp_path / "out").write_text(text)
    (tmp_path / "err").touch()
    parameters = SysbenchFileioParameters.model_validate({**FILES, "measure_s": measure_s, **asked})
    return SysbenchFileio().parse(parameters, tmp_path / "out", tmp_path / "err", code)


def test_a_cpu_run(tmp_path: Path) -> None:
    measurement = cpu(tmp_path, captured("cpu"))
    assert (measurement.operations, measurement.unit, measurement.duration_s) == (3309, "events", 4.0142)
    assert measurement.throughput_per_s == pytest.approx(3309 / 4.0142)
    assert (measurement.queries_per_s, measurement.errors) == (None, 0)
    assert measurement.latency.mean_ms == pytest.approx(7955.64 / 3309)
    assert (measurement.latency.min_ms, measurement.latency.max_ms, measurement.latency.p95_ms) == (
        0.38,
        57.05,
        19.645,
    )
    assert measurement.latency.blind_to_stalls
    assert sum(count for _, count in measurement.histogram) == 3309
    assert [window.end_s for window in measurement.windows] == [1, 2, 3]
    assert (measurement.windows[0].throughput_per_s, measurement.windows[0].latency_p95_ms) == (902.11, 16.41)
    assert measurement.details["thread_events_stddev"] == 109.5


def test_a_file_run_that_passes_the_page_cache_by(tmp_path: Path) -> None:
    measurement = fileio(tmp_path, captured("fileio"), file_extra_flags="direct")
    assert (measurement.operations, measurement.unit, measurement.duration_s) == (33846, "requests", 3.0024)
    assert measurement.details["reads_per_s"] == 6502.21
    assert measurement.details["writes_per_s"] == 4335.14
    assert measurement.details["fsyncs_per_s"] == 435.55
    assert (measurement.details["read_mib_per_s"], measurement.details["written_mib_per_s"]) == (101.60, 67.74)
    first = measurement.windows[0]
    assert first.throughput_per_s == pytest.approx((53.40 + 35.60) * 64 + 227.71)
    assert first.latency_p95_ms == 1.082
    assert len(measurement.windows) == 3


def test_an_fsync_after_each_write_is_part_of_the_write(tmp_path: Path) -> None:
    measurement = fileio(tmp_path, captured("fsync-all"), file_fsync_all=True, file_fsync_freq=0)
    assert measurement.operations == 35995
    assert measurement.details["fsyncs_per_s"] == 4786.23
    assert measurement.windows[0].throughput_per_s == pytest.approx((87.20 + 58.12) * 64)


def test_requests_that_do_not_add_up_fail_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="contradicts itself"):
        fileio(tmp_path, captured("fsync-all"), file_fsync_freq=0)


def test_a_run_without_fsync(tmp_path: Path) -> None:
    measurement = fileio(tmp_path, captured("nofsync"), measure_s=2, file_fsync_freq=0, file_fsync_end=False)
    assert measurement.details["fsyncs_per_s"] == 0
    assert measurement.operations == 222072


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("missing-files", 1, "Cannot open file 'test_file.0' errno = 2"),
        ("other-size", 1, "is 8MiB, but at least 16MiB is expected"),
        ("two-flags", 1, "Unknown extra flags value"),
        ("full-disk", 1, "No space left on device"),
    ],
)
def test_a_failed_file_run_says_why(tmp_path: Path, name: str, code: int, reason: str) -> None:
    with pytest.raises(RunFailed, match=reason):
        fileio(tmp_path, captured(name), code=code)


def test_a_killed_run_says_by_what_and_when(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="SIGKILL after its report at 2 s"):
        cpu(tmp_path, captured("cpu-killed"), code=137)


def test_a_report_cut_short_fails_the_run(tmp_path: Path) -> None:
    whole = captured("cpu")
    for end in range(0, len(whole) - 1, 97):
        with pytest.raises(RunFailed):
            cpu(tmp_path, whole[:end])


def test_less_time_than_asked_for_fails_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="cut short"):
        cpu(tmp_path, captured("cpu"), measure_s=6)


def test_every_option_is_passed_on_explicitly() -> None:
    result = SysbenchFileioParameters.model_validate(
        {**FILES, "measure_s": 3, "file_extra_flags": "direct", "file_fsync_mode": "fdatasync", "seed": 7}
    )
    command = SysbenchFileio().measure(result, Files("/data"), "/run/tare")
    assert command.argv[:2] == ("sysbench", "fileio")
    assert command.argv[-1] == "run"
    assert command.workdir == "/data"
    for option in (
        "--threads=2", "--time=3", "--file-num=4", "--file-total-size=33554432", "--file-block-size=16384",
        "--file-test-mode=rndrw", "--file-io-mode=sync", "--file-extra-flags=direct", "--file-fsync-freq=100",
        "--file-fsync-all=off", "--file-fsync-end=on", "--file-fsync-mode=fdatasync", "--file-rw-ratio=1.5",
        "--rand-seed=7", "--histogram=on", "--report-interval=1",
    ):  # fmt: skip
        assert option in command.argv


def test_the_files_depend_on_number_and_size_alone() -> None:
    workload = SysbenchFileio()

    def data(**asked: Any) -> object:
        return workload.dataset(SysbenchFileioParameters.model_validate({**FILES, "measure_s": 3, **asked}))

    assert (
        data() == data(threads=8, file_extra_flags="direct", file_test_mode="rndrd") == data(file_block_size="4K")
    )
    assert data() != data(file_num=8)
    assert data() != data(file_total_size="64M")


def test_the_warm_up_reads_other_offsets() -> None:
    result = SysbenchFileioParameters.model_validate({**FILES, "measure_s": 3, "warmup_s": 1, "seed": 2**31 - 1})
    command = SysbenchFileio().warm_up(result, Files("/data"), "/run/tare")
    assert command is not None
    assert "--rand-seed=1" in command.argv
    assert "--time=1" in command.argv


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"file_num": 3}, "not a multiple"),
        ({"file_extra_flags": "direct", "file_block_size": "256"}, "whole sectors"),
        ({"file_extra_flags": "direct", "file_io_mode": "mmap"}, "page cache"),
        ({"window_s": 5.0}, "longer than the measure phase"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        SysbenchFileioParameters.model_validate({**FILES, "measure_s": 3, **wrong})


@pytest.mark.parametrize(
    ("page", "model"),
    [("sysbench-cpu", SysbenchCpuParameters), ("sysbench-fileio", SysbenchFileioParameters)],
)
def test_every_parameter_is_documented(page: str, model: type[SysbenchCpuParameters]) -> None:
    text = (PAGES / f"{page}.md").read_text()
    assert not [name for name in model.model_fields if f"`{name}`" not in text]


def test_every_detail_is_documented(tmp_path: Path) -> None:
    runs = {"sysbench-cpu": cpu(tmp_path, captured("cpu")), "sysbench-fileio": fileio(tmp_path, captured("fileio"))}
    for page, value in runs.items():
        text = (PAGES / f"{page}.md").read_text()
        assert not [name for name in value.details if f"`{name}`" not in text]
