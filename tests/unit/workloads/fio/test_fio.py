"""Real output of fio, read and judged, and the calls that make it.

tests/data/fio/README.md says how each file came about. Expected figures were read off them by hand.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tare.errors import RunFailed
from tare.workloads import Files, Measurement, output_path
from tare.workloads.fio.fio import Fio
from tare.workloads.fio.output import jobs_in
from tare.workloads.fio.parameters import FioParameters

ROOT = Path(__file__).parents[4]
DATA = ROOT / "tests" / "data" / "fio"
PAGE = (ROOT / "docs" / "reference" / "workloads" / "fio.md").read_text()
ASKED: dict[str, Any] = {"rw": "randrw", "size": "16M", "numjobs": 2, "measure_s": 3.0, "direct": True}
FSYNC: dict[str, Any] = {"rw": "randwrite", "fsync": 1}


def parameters(**asked: Any) -> FioParameters:
    return FioParameters.model_validate({**ASKED, **asked})


def put(tmp_path: Path, name: str, text: str | None = None) -> Path:
    """A captured run as the client leaves it, `text` in place of its standard output."""
    stdout = tmp_path / "measure.stdout"
    stdout.write_text((DATA / f"{name}.stdout").read_text() if text is None else text)
    captured = DATA / f"{name}.stderr"
    (tmp_path / "measure.stderr").write_text(captured.read_text() if captured.exists() else "")
    for log in DATA.glob(f"{name}.fio_iops.*.log"):
        shutil.copy(log, output_path(stdout, log.name.removeprefix(f"{name}.")))
    return stdout


def parsed(tmp_path: Path, name: str, *, code: int = 0, text: str | None = None, **asked: Any) -> Measurement:
    stdout = put(tmp_path, name, text)
    return Fio().parse(parameters(**asked), stdout, tmp_path / "measure.stderr", code)


def test_reads_and_writes_of_all_jobs_are_taken_together(tmp_path: Path) -> None:
    measurement = parsed(tmp_path, "mix")
    reads, writes = 9029 + 9137, 9077 + 9121
    assert (measurement.operations, measurement.unit, measurement.duration_s, measurement.errors) == (
        reads + writes,
        "requests",
        3.0,
        0,
    )
    assert measurement.throughput_per_s == pytest.approx((reads + writes) / 3)
    assert {kind: each.operations for kind, each in measurement.by_operation.items()} == {
        "read": reads,
        "write": writes,
    }
    read = measurement.by_operation["read"].latency
    assert read.min_ms == pytest.approx(0.052458)
    assert read.max_ms == pytest.approx(18.313151)
    assert read.mean_ms == pytest.approx((9029 * 0.168609 + 9137 * 0.167529) / reads, rel=1e-5)
    assert sum(count for _, count in measurement.histogram) == reads + writes
    assert measurement.latency.blind_to_stalls
    assert measurement.details["reads_per_s"] == pytest.approx(reads / 3)
    assert measurement.details["read_mib_per_s"] == pytest.approx((147931136 + 149700608) / 3 / (1 << 20))
    assert measurement.details["written_mib_per_s"] == pytest.approx((148717568 + 149438464) / 3 / (1 << 20))
    assert measurement.details["usr_cpu_percent"] == pytest.approx((1.066667 + 1.2) / 2)


def test_windows_are_the_sum_over_jobs_and_kinds(tmp_path: Path) -> None:
    windows = parsed(tmp_path, "mix").windows
    assert [(window.end_s, window.throughput_per_s) for window in windows] == [
        (1, 2826 + 2830 + 2859 + 2849),
        (2, 3281 + 3194 + 3243 + 3274),
    ]


def test_percentiles_are_those_that_fio_prints(tmp_path: Path) -> None:
    measurement = parsed(tmp_path, "seqread", rw="read", numjobs=1, direct=False)
    assert measurement.latency.p95_ms == pytest.approx(0.003152)
    assert measurement.latency.resolution == 1 / 64


def test_an_fsync_is_told_apart_and_is_no_request(tmp_path: Path) -> None:
    measurement = parsed(tmp_path, "fsync", **FSYNC)
    assert measurement.operations == 3378 + 3179
    fsync = measurement.by_operation["fsync"]
    assert fsync.operations == 3378 + 3178
    assert fsync.latency.max_ms == pytest.approx(67.049982)
    assert sum(count for _, count in fsync.histogram) == fsync.operations
    assert measurement.latency.max_ms == pytest.approx(11.160259)
    assert measurement.duration_s == 3.003
    assert [window.throughput_per_s for window in measurement.windows] == [626 + 706, 961 + 781, 1789 + 1691]


def test_several_requests_under_way(tmp_path: Path) -> None:
    measurement = parsed(tmp_path, "aio", rw="randread", ioengine="libaio", iodepth=8)
    assert measurement.operations == 16594 + 18041
    assert "write" not in measurement.by_operation
    assert "writes_per_s" not in measurement.details
    assert measurement.started_at == pytest.approx(1795328263.425 - (measurement.duration_s or 0))


def test_a_window_without_requests_is_none_of_missing(tmp_path: Path) -> None:
    stdout = put(tmp_path, "seqread")
    output_path(stdout, "fio_iops.1.log").write_text("1000, 50, 0, 0, 0\n3001, 70, 0, 0, 0\n")
    measurement = Fio().parse(
        parameters(rw="read", numjobs=1, direct=False), stdout, tmp_path / "measure.stderr", 0
    )
    assert [window.throughput_per_s for window in measurement.windows] == [50, 0, 70]


def test_a_late_entry_stands_for_all_the_time_since_the_one_before(tmp_path: Path) -> None:
    stdout = put(tmp_path, "seqread")
    output_path(stdout, "fio_iops.1.log").write_text("1000, 50, 0, 0, 0\n2600, 60, 0, 0, 0\n")
    measurement = Fio().parse(
        parameters(rw="read", numjobs=1, direct=False), stdout, tmp_path / "measure.stderr", 0
    )
    assert [window.throughput_per_s for window in measurement.windows] == [50, 60, 60]


@pytest.mark.parametrize(
    ("name", "code", "reason", "asked"),
    [
        ("missing-files", 1, "file creation disallowed by allow_file_create=0", {"numjobs": 1}),
        ("unknown-engine", 1, "engine nosuch not loadable", {"numjobs": 1}),
        ("full-disk", 1, "io_u error on file data.0: No space left on device", {"numjobs": 1}),
        ("terminated", 128, "ended by SIGTERM", {"rw": "randread", "numjobs": 1, "measure_s": 4}),
        ("mix", 137, "ended by SIGKILL", {}),
        ("mix", 0, "reports 2 jobs of 3", {"numjobs": 3}),
        ("mix", 0, "cut short: 3 s of 5 s", {"measure_s": 5.0}),
        ("mix", 0, "reported no fsync", {"fsync": 1}),
    ],
)  # fmt: skip
def test_a_failed_run_says_why(tmp_path: Path, name: str, code: int, reason: str, asked: dict[str, Any]) -> None:
    with pytest.raises(RunFailed, match=reason):
        parsed(tmp_path, name, code=code, **asked)


def test_a_report_cut_short_fails_the_run(tmp_path: Path) -> None:
    whole = (DATA / "aio.stdout").read_text()
    for end in range(0, len(whole) - 3, 997):
        with pytest.raises(RunFailed, match="missing or cut short"):
            parsed(tmp_path, "aio", text=whole[:end], rw="randread", ioengine="libaio", iodepth=8)


def test_a_histogram_that_lacks_requests_fails_the_run(tmp_path: Path) -> None:
    tree = json.loads((DATA / "mix.stdout").read_text())
    tree["jobs"][1]["read"]["lat_ns"]["bins"].popitem()
    with pytest.raises(RunFailed, match="contradicts itself"):
        parsed(tmp_path, "mix", text=json.dumps(tree, indent=1))


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (None, "left no measure.fio_iops.2.log"),
        ("", "last window ends at 0 s of 3 s"),
        ("1000, 2859, 0, 0, 0\n", "last window ends at 1 s of 3 s"),
        ("1000, 2859, 0, 0, 0\n2000, 32", "cut short or no log"),
    ],
)
def test_missing_windows_of_one_job_fail_the_run(tmp_path: Path, log: str | None, reason: str) -> None:
    stdout = put(tmp_path, "mix")
    second = output_path(stdout, "fio_iops.2.log")
    if log is None:
        second.unlink()
    else:
        second.write_text(log)
    with pytest.raises(RunFailed, match=reason):
        Fio().parse(parameters(), stdout, tmp_path / "measure.stderr", 0)


def test_requests_that_moved_less_than_asked_for_fail_the_run(tmp_path: Path) -> None:
    tree = json.loads((DATA / "mix.stdout").read_text())
    tree["jobs"][0]["write"]["short_ios"] = 3
    with pytest.raises(RunFailed, match="3 requests moved less than 16K"):
        parsed(tmp_path, "mix", text=json.dumps(tree, indent=1))


def test_notes_may_stand_before_the_report() -> None:
    assert jobs_in("note: both iodepth >= 1\n" + (DATA / "mix.stdout").read_text()) is not None


def test_every_option_is_passed_on_explicitly() -> None:
    command = Fio().measure(parameters(**FSYNC, seed=7), Files("/data"), "/run/tare")
    assert command.workdir == "/data"
    assert command.output_files == ("fio_iops.1.log", "fio_iops.2.log")
    for option in (
        "--thread", "--numjobs=2", "--size=16777216", "--rw=randwrite", "--bs=16384", "--ioengine=psync",
        "--iodepth=1", "--direct=1", "--fsync=1", "--fdatasync=0", "--runtime=3000ms", "--randseed=7",
        "--allow_file_create=0", "--invalidate=0", "--write_iops_log=/run/tare/fio", "--log_avg_msec=1000",
    ):  # fmt: skip
        assert option in command.argv


def test_the_files_depend_on_number_and_size_alone() -> None:
    first = Fio().dataset(parameters())
    assert first == Fio().dataset(parameters(rw="read", bs="4K", direct=False, seed=3))
    assert first != Fio().dataset(parameters(numjobs=4))
    assert first != Fio().dataset(parameters(size="32M"))


def test_the_load_writes_every_byte_and_makes_it_durable() -> None:
    argv = Fio().load(parameters(), Files("/data"), "/run/tare").argv
    assert {"--rw=write", "--end_fsync=1", "--numjobs=2", "--bs=1048576"} <= set(argv)


def test_the_warm_up_reads_other_offsets_and_keeps_no_windows() -> None:
    command = Fio().warm_up(parameters(warmup_s=1.0, seed=2**31 - 1), Files("/data"), "/run/tare")
    assert command is not None
    assert {"--randseed=1", "--runtime=1000ms"} <= set(command.argv)
    assert not any(option.startswith("--write_iops_log") for option in command.argv)
    assert Fio().warm_up(parameters(), Files("/data"), "/run/tare") is None


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"size": "100K"}, "not a multiple of bs"),
        ({"bs": "256", "size": "1M"}, "whole sectors"),
        ({"ioengine": "mmap"}, "page cache"),
        ({"iodepth": 2}, "one request in flight"),
        ({"ioengine": "libaio", "direct": False}, "waits in the submission"),
        ({"rw": "read", "fsync": 1}, "writes nothing"),
        ({"fsync": 1, "fdatasync": 1}, "name one of them"),
        ({"window_s": 5.0}, "longer than the measure phase"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        parameters(**wrong)


@pytest.mark.parametrize("name", FioParameters.model_fields)
def test_every_parameter_is_documented(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_every_detail_is_documented(tmp_path: Path) -> None:
    fields = {**parsed(tmp_path, "fsync", **FSYNC).details, **parsed(tmp_path, "mix").details}
    assert not [name for name in fields if f"`{name}`" not in PAGE]
