"""The other account of what an injection did, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.unit.analyze import synthetic

from tare.calibrate.injections import LOG_NAME
from tare.calibrate.kinds import (
    TRACE,
    bytes_read_per_second,
    cpu_seconds_per_second,
    time_not_held_back,
    transactions_per_cpu_second,
)
from tare.record.run_record import Phase, RunRecord
from tare.record.usage import Usage

TICK_NS = 100_000_000
BLOCK = 16384


def record(**changes: Any) -> RunRecord:
    """A run of 4 s."""
    return synthetic.record(1, "bare", 100.0).model_copy(update=changes)


def traced(tmp_path: Path, reads: list[int]) -> float | None:
    """What is read off a counter that stood at so many blocks, ten times a second."""
    path = tmp_path / TRACE / "cgroup.parquet"
    path.parent.mkdir(parents=True)
    rows = {
        "name": ["sut"] * len(reads),
        "io_t0_ns": [5 + TICK_NS * n for n in range(len(reads))],
        "read_bytes": [BLOCK * each for each in reads],
    }
    pl.DataFrame(rows).write_parquet(path)
    run = record(usage=Usage(sut_io_source="control group"))
    return bytes_read_per_second(run, lambda _, name: tmp_path / name)


def test_neither_the_start_nor_the_end_of_a_program_is_in_its_rate(tmp_path: Path) -> None:
    """900 a second: it began before the third sample, and ended within the interval before the last growth."""
    assert traced(tmp_path, [0, 0, 40, 130, 220, 310, 400, 430, 430, 430]) == pytest.approx(900 * BLOCK)


def test_a_counter_that_goes_with_its_program_is_taken_to_its_last_sample(tmp_path: Path) -> None:
    assert traced(tmp_path, [0, 40, 130, 220, 310]) == pytest.approx(900 * BLOCK)


def test_a_stall_in_the_middle_is_part_of_the_rate(tmp_path: Path) -> None:
    """270 blocks over 6 intervals."""
    assert traced(tmp_path, [40, 130, 220, 220, 220, 220, 310]) == pytest.approx(450 * BLOCK)


@pytest.mark.parametrize("reads", [[0, 0, 0], [0, 40], [0, 40, 40], [0, 40, 130, 130]])
def test_a_counter_that_grew_too_seldom_has_no_rate(tmp_path: Path, reads: list[int]) -> None:
    assert traced(tmp_path, reads) is None


def test_without_a_trace_or_a_source_nothing_is_read(tmp_path: Path) -> None:
    for usage in (Usage(sut_io_source="control group"), Usage(), None):
        assert bytes_read_per_second(record(usage=usage), lambda _, name: tmp_path / name) is None


def test_transactions_and_seconds_are_counted_by_cpu_time() -> None:
    run = record(usage=Usage(sut_cpu_s=2.0))  # 400 operations in 4 s
    nowhere = Path("/nowhere")
    assert transactions_per_cpu_second(run, lambda *_: nowhere) == pytest.approx(200.0)
    assert cpu_seconds_per_second(run, lambda *_: nowhere) == pytest.approx(0.5)
    assert transactions_per_cpu_second(record(usage=None), lambda *_: nowhere) is None
    assert cpu_seconds_per_second(record(usage=None), lambda *_: nowhere) is None


def test_seconds_of_an_arm_that_took_turns_are_those_of_its_turns() -> None:
    run = record(usage=Usage(sut_cpu_s=2.0, turns_s=2.5))  # within 4 s, in which others had turns, too
    assert cpu_seconds_per_second(run, lambda *_: Path("/nowhere")) == pytest.approx(0.8)


def test_what_a_proxy_held_back_is_a_share_of_the_time_of_all_threads_in_the_measure_phase(
    tmp_path: Path,
) -> None:
    """Two threads of 4 s; a warm-up's connection was accepted before, and does not count."""
    run = record(settings={"workload": {"threads": 2}})
    began = next(time.began_at for time in run.phases if time.phase is Phase.MEASURE)
    lines = [(began - 1.0, 9.0), (began, 1.0), (began + 0.1, 0.6)]
    log = tmp_path / LOG_NAME
    log.write_text("".join(json.dumps({"accepted_at": at, "held_ns": held * 1e9}) + "\n" for at, held in lines))
    assert time_not_held_back(run, lambda _, name: tmp_path / name) == pytest.approx(1 - 1.6 / 8)
    log.write_text(json.dumps({"accepted_at": began - 1.0, "held_ns": 9}) + "\n")
    assert time_not_held_back(run, lambda _, name: tmp_path / name) is None
