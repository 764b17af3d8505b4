"""Block I/O per operation: what the trace told of the SUT, and never a guess."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import as_tree, measured, with_parts

from tare.analyze import analyze
from tare.analyze.metrics import METRICS
from tare.record.run_record import RunRecord

ARMS = ("bare", "bridge")
METRIC = METRICS["io_per_operation"]


def counted(run: RunRecord, read: float | None, written: float | None, source: str | None = "BFQ") -> RunRecord:
    fields = {"sut_read_bytes": read, "sut_write_bytes": written, "sut_io_source": source}
    return with_parts(run, usage={**as_tree(run.usage), **fields})


@pytest.mark.parametrize(
    ("read", "written", "expected"),
    [(1024.0, 3072.0, 4.0 / 4000), (0.0, 0.0, 0.0), (None, 4096.0, None), (4096.0, None, None), (None, None, None)],
)
def test_bytes_both_ways_over_operations(read: float | None, written: float | None, expected: float | None) -> None:
    run = counted(synthetic.record(0, "bare", 1000.0), read, written)
    assert METRIC.of(run) == (None if expected is None else pytest.approx(expected))


def test_a_record_without_usage_tells_nothing() -> None:
    assert METRIC.of(synthetic.record(0, "bare", 1000.0).model_copy(update={"usage": None})) is None
    assert METRIC.of(synthetic.record(0, "bare", 1000.0)) is None


def test_the_overhead_is_paired_by_block() -> None:
    def bytes_of(run: RunRecord) -> float:
        return measured(run).done * (2048.0 if run.arm == "bridge" else 1024.0) * (
            1 + 0.01 * (run.block % 3)
        )  # fmt: skip

    made = [counted(run, 0.0, bytes_of(run)) for run in synthetic.records(ARMS)]
    estimate = analyze(synthetic.study(ARMS), made).finding("bridge", "io_per_operation").estimate
    assert estimate.point == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sut_write_bytes": 0.0, "sut_read_bytes": 0.0}, "bridge has a block I/O per operation of 0"),
        ({"sut_write_bytes": None}, "bridge has no block I/O per operation"),
        ({"sut_io_source": "/proc/PID/io"}, "bare was counted by BFQ and bridge was counted by /proc/PID/io"),
    ],
)
def test_what_cannot_be_compared_drops_out_with_the_reason(change: dict[str, Any], why: str) -> None:
    made = [counted(run, 0.0, 1e6 + 1e4 * run.block) for run in synthetic.records(ARMS)]
    made = [
        with_parts(run, usage={**as_tree(run.usage), **change}) if (run.block, run.arm) == (2, "bridge") else run
        for run in made
    ]
    finding = analyze(synthetic.study(ARMS), made).finding("bridge", "io_per_operation")
    assert [(each.block, each.why) for each in finding.dropped] == [(2, why)]
    assert finding.estimate.n == 4
