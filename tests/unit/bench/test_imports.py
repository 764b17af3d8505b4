"""What `make bench-imports` times: logs that tare reads whole."""

from __future__ import annotations

from random import Random

from bench.imports import log
from tare.imports.parsers.registry import PARSERS


def test_each_made_up_log_is_a_good_report_with_all_its_windows() -> None:
    (report,) = PARSERS["sysbench"].reports(log(60, Random(3)), 0.0)
    assert report.failure is None
    assert report.whole is not None
    assert len(report.whole.windows) == 60
