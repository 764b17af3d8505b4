"""Parsers of monitors' logs on real output of the tools: known figures, and what every parser keeps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from tare.imports.contents import text_of
from tare.imports.monitors import Log
from tare.imports.monitors.clock import DayClock, day, seconds
from tare.imports.monitors.registry import MONITOR_LOGS, monitor_of
from tare.imports.parsers.registry import PARSERS

DATA = Path(__file__).parents[3] / "data"
LOGS = sorted(path for path in (DATA / "monitor-logs").iterdir() if path.suffix != ".md")
REPORTS = [path for path in sorted((DATA / "imports").glob("*/*")) if path.is_file()]
AT = datetime(2026, 11, 30, 3, 9, 36, tzinfo=UTC).timestamp()


def text(path: Path) -> str:
    read = text_of(path.read_bytes())
    assert read is not None
    return read


def log(name: str) -> Log:
    whole = text(DATA / "monitor-logs" / name)
    tool = monitor_of(whole)
    assert tool is not None
    return MONITOR_LOGS[tool].read(whole)


def first(name: str) -> Mapping[tuple[str, str], float]:
    return {(each.subject, each.quantity): each.value for each in log(name).samples[0].values}


@pytest.mark.parametrize(
    ("name", "facts", "figures"),
    [
        ("dstat.csv", (3, AT, True, None), {"all user": 75.622, "total written_kib": 4504.0}),
        ("dstat-epoch.csv", (2, AT + 0.562, True, None), {"all system": 24.378, "vda written_kib": 4428.0}),
        (
            "iostat.txt", (3, AT, False, 2),
            {"all nice": 40.0, "vda reads": 9.0, "vda written_kib": 3556.0, "vda util": 3.2},
        ),
        ("iostat.json", (3, AT, False, 2), {"all steal": 0.0, "vda reads": 10.0, "vda read_kib": 52.0}),
        ("iostat-basic.txt", (2, AT, False, 2), {"vda written_kib": 3556.0}),
        ("iostat-disk.txt", (2, None, False, 2), {"vda read_kib": 52.0}),
        ("vmstat-t.txt", (3, AT, True, None), {"all user": 69.0, "all idle": 0.0, "total written_kib": 3556.0}),
        ("vmstat.txt", (3, None, False, None), {"all iowait": 0.0}),
        ("sar.txt", (4, AT, False, 2), {"all user": 29.85, "vda util": 3.2, "vda queue": 0.15}),
        ("sar.json", (4, AT, True, 2), {"all user": 29.65, "vda read_kib": 36.0, "vda written_kib": 3560.0}),
        ("mpstat.txt", (3, AT, False, 2), {"all user": 29.15, "all softirq": 4.52, "all nice": 40.2}),
        ("pidstat.txt", (3, AT, False, 2), {"sysbench pid 5059 cpu_percent": 11.43}),
        ("pidstat-h.txt", (3, AT, False, 2), {"sysbench pid 5059 cpu_percent": 11.54}),
        ("pidstat-epoch.txt", (3, AT, True, 2), {"sysbench pid 5059 cpu_percent": 11.43}),
        ("docker-stats.txt", (2, None, False, None), {"mysqld cpu_percent": 98.5, "client cpu_percent": 40.0}),
        ("docker-stats.json", (2, None, False, None), {"mysqld cpu_percent": 98.5}),
    ],
)  # fmt: skip
def test_known_figures(
    name: str, facts: tuple[int, float | None, bool, int | None], figures: Mapping[str, float]
) -> None:
    """`facts`: number of samples, end of the first, whether the clock is known to be UTC, CPUs."""
    read = log(name)
    assert (len(read.samples), read.samples[0].at_s, read.is_utc, read.cpus) == facts
    known = {f"{subject} {quantity}": value for (subject, quantity), value in first(name).items()}
    assert {key: known.get(key) for key in figures} == figures
    subjects = [(each.subject, each.quantity) for each in read.samples[0].values]
    assert len(subjects) == len(set(subjects))


@pytest.mark.parametrize("path", LOGS, ids=lambda each: each.name)
def test_a_log_is_recognised_by_its_tool_alone_and_is_no_report(path: Path) -> None:
    recognising = [name for name, parser in MONITOR_LOGS.items() if parser.recognises(text(path))]
    assert len(recognising) == 1
    assert [name for name, parser in PARSERS.items() if parser.recognises(text(path))] == []


@pytest.mark.parametrize("path", REPORTS, ids=lambda each: each.name)
def test_a_report_is_no_log_of_a_monitor(path: Path) -> None:
    assert monitor_of(text(path)) is None


@pytest.mark.parametrize("path", LOGS, ids=lambda each: each.name)
def test_a_damaged_log_is_read_or_refused(path: Path) -> None:
    chance, whole = Random(path.name), text(path)
    parser = MONITOR_LOGS[monitor_of(whole) or ""]
    for _ in range(60):
        at, length = chance.randrange(len(whole) + 1), chance.randrange(40)
        damaged = whole[:at] + chance.choice(["", "\n", "9" * 20, "-", "nan", "{", ",,,"]) + whole[at + length :]
        try:
            read = parser.read(damaged)
        except (ValueError, LookupError, TypeError, AttributeError):
            continue
        assert all(abs(value.value) < 1e15 for sample in read.samples for value in sample.values)


def test_dates_are_read_in_each_form() -> None:
    days = {day(text) for text in ("2020-12-22", "12/22/20", "22/12/2020", "22.12.2020")}
    assert [str(each) for each in days] == ["2020-12-22"]
    assert day("13/13/13") is None
    (on,) = days
    assert on is not None
    assert (seconds(on, "12:00:01 AM"), seconds(on, "11:00:00 PM")) == (1608595201.0, 1608678000.0)


def test_times_go_on_over_midnight() -> None:
    clock = DayClock(day("2020-12-22"))
    assert [clock.at(each) for each in ("23:59:59", "00:00:00")] == [1608681599.0, 1608681600.0]


def test_a_log_of_several_days_without_dates_is_refused() -> None:
    whole = text(DATA / "monitor-logs" / "sar.txt")
    with pytest.raises(ValueError, match="time of the day twice"):
        MONITOR_LOGS["sar"].read(whole + whole)


@pytest.mark.parametrize("name", ["iostat.json", "sar.json"])
def test_a_share_that_is_no_finite_number_is_left_out(name: str) -> None:
    whole = re.sub(r'"iowait": ?[0-9.]+', '"iowait": 1e999', text(DATA / "monitor-logs" / name))
    tool = monitor_of(whole)
    assert tool is not None
    values = [value for sample in MONITOR_LOGS[tool].read(whole).samples for value in sample.values]
    assert values
    assert not [value for value in values if value.quantity == "iowait"]
