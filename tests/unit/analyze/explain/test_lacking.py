"""What an explanation says where a run's kernel showed less."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.unit.analyze import synthetic

from tare.analyze.explain.run_times import run_times


def lacks(tmp_path: Path, usage: dict[str, Any] | None = None, **monitors: dict[str, Any]) -> tuple[str, ...]:
    def change(tree: dict[str, Any]) -> None:
        tree["monitors"] = monitors
        tree["usage"] |= {"began_monotonic_s": 10.0, "ended_monotonic_s": 14.0, **(usage or {})}

    record = synthetic.changed(synthetic.record(1, "bare", 1000.0), change)
    times = run_times(record, lambda _, name: tmp_path / name)
    assert times is not None
    return times.lacks


def test_stacks_that_could_not_be_sampled_say_why_and_what_is_still_told(tmp_path: Path) -> None:
    (why,) = lacks(tmp_path, profile={"absent": "kernel.perf_event_paranoid is 4, so only root may"})
    assert why.startswith("no stacks were sampled: kernel.perf_event_paranoid is 4")
    assert why.endswith("CPU time by side, from the kernel's counters, and waiting are shown")


def test_block_requests_that_were_not_counted_say_why_and_what_tells_the_bytes(tmp_path: Path) -> None:
    refused = {"block_source": "none", "block_refused": "this kernel has no BTF at /sys/kernel/btf/vmlinux"}
    absent = {"absent": "it had nothing to watch"}
    _, why = lacks(tmp_path, {"sut_io_source": "/proc/PID/io"}, profile=absent, probe=refused)
    assert why == (
        "block requests were not counted (this kernel has no BTF at /sys/kernel/btf/vmlinux); "
        "/proc/PID/io tells the SUT's bytes on disks"
    )
    _, nothing = lacks(tmp_path, profile=absent, probe=refused)
    assert nothing.endswith("nothing tells the SUT's bytes on disks")


def test_counted_block_requests_are_not_mentioned(tmp_path: Path) -> None:
    assert len(lacks(tmp_path, profile={"absent": "x"}, probe={"block_refused": None})) == 1


DATA = Path(__file__).resolve().parents[3] / "data"
TABLES = ["cgroup", "interface", "process"]


def _traced(tmp_path: Path) -> Path:
    trace = tmp_path / "monitors" / "probe" / "trace"
    shutil.copytree(DATA / "trace", trace)
    return trace


@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_table_of_the_trace_is_named_and_ends_nothing(tmp_path: Path, table: str) -> None:
    path = _traced(tmp_path) / f"{table}.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    *_, why = lacks(tmp_path, profile={"absent": "x"})
    assert why.startswith("waiting or events are missing: the trace of ")
    assert "cannot be read: the file does not end as Parquet" in why


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_another_kind_in_the_trace_is_named_and_ends_nothing(tmp_path: Path, table: str) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(_traced(tmp_path) / f"{table}.parquet")
    *_, why = lacks(tmp_path, profile={"absent": "x"})
    assert why.startswith("waiting or events are missing: the trace of ")


def test_a_whole_trace_lacks_nothing(tmp_path: Path) -> None:
    _traced(tmp_path)
    assert len(lacks(tmp_path, profile={"absent": "x"})) == 1
