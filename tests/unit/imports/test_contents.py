"""What a log puts before each line of a report is no part of it."""

from __future__ import annotations

import json

import pytest

from tare.imports.contents import without_prefixes

REPORT = """\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

SQL statistics:
    queries performed:
        read:                            12600
    transactions:                        900    (90.00 per sec.)
"""


@pytest.mark.parametrize(
    "prefix",
    [
        "Nov 30 07:12:01 host-1 sysbench[123]: ",
        "Nov  3 07:12:01 host-1 sysbench[123]: ",
        "Nov 30 07:12:01 host-1 run-bench: ",
        "2026-11-30T07:12:01+0000 host-1 sysbench[123]: ",
        "2026-11-30T07:12:01.123456789Z ",
        "2026-11-30T07:12:01.123456789Z stdout F ",
        "[pod/bench-x7k2p/sysbench] 2026-11-30T07:12:01.123456789Z ",
        "[pod/bench-x7k2p/sysbench] ",
        "bench-1  | ",
    ],
    ids=[
        "journald",
        "a-day-of-one-digit",
        "no-pid",
        "iso",
        "docker",
        "cri",
        "both-of-kubectl",
        "kubectl",
        "compose",
    ],
)
def test_a_prefix_of_each_line_is_taken_off(prefix: str) -> None:
    logged = "".join(prefix + line for line in REPORT.splitlines(keepends=True))
    assert without_prefixes(logged) == REPORT


def test_the_json_file_driver_holds_lines_in_objects() -> None:
    lines = [json.dumps({"log": line, "stream": "stdout"}) for line in REPORT.splitlines(keepends=True)]
    assert without_prefixes("\n".join(lines)) == REPORT


def test_a_report_is_left_as_it_is() -> None:
    assert without_prefixes(REPORT) == REPORT
    one = "[pod/bench-x7k2p/sysbench] started\n" + REPORT
    assert without_prefixes(one) == one
