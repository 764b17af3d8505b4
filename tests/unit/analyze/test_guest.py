"""What a virtual machine counted of itself, on lines that a real one wrote."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tare.analyze.guest import UNITS, counted
from tare.errors import StoreError
from tare.record.made_by import GuestClock

RAW = (Path(__file__).resolve().parents[2] / "data" / "vm" / "guest.jsonl").read_bytes()
CLOCK = GuestClock(uptime_s=17.47, from_ns=49065624264177, to_ns=49065629095691)
MIDDLE_NS = (CLOCK.from_ns + CLOCK.to_ns) // 2


def values(table: pl.DataFrame, quantity: str, subject: str) -> list[float]:
    return table.filter(quantity=quantity, subject=subject).sort("to_ns")["value"].to_list()


def test_counters_become_samples_between_two_lines_and_levels_one_a_line() -> None:
    table = counted(RAW, CLOCK)
    assert set(table["quantity"]) == set(UNITS)
    # Seconds 12.15 to 13.17: user 16 to 31, system 324 to 362, softirq 10 to 17 hundredths; the task 0.344274 s.
    assert values(table, "cpu_percent", "machine")[0] == pytest.approx((15 + 38 + 7) / 1.02)
    assert values(table, "cpu_percent", "sut")[:2] == pytest.approx([34.4274 / 1.02, 29.7925 / 0.98])
    assert values(table, "steal_percent", "machine") == [0.0] * 6
    assert values(table, "memory_bytes", "sut")[:3] == [0, 1966080, 2072576]
    assert values(table, "memory_bytes", "machine")[0] == (318468 - 287036) * 1024
    assert values(table, "block_read_bytes", "vdb")[:2] == [42 * 512, 50 * 512]
    assert values(table, "block_written_bytes", "vdb")[:2] == [8 * 512, 8 * 512]


def test_what_the_kernel_had_not_told_yet_is_missing_and_not_zero() -> None:
    table = counted(RAW, CLOCK)
    assert values(table, "block_read_bytes", "sut")[:2] == [1687552, 8192 + 1818624]
    assert len(values(table, "block_read_bytes", "sut")) == 6  # of seven lines: the first was before any request
    bare = b'{"/proc/uptime": "1.00 0.50"}\n{"/proc/uptime": "2.00 0.50"}\n'
    assert counted(bare, CLOCK).is_empty()


def test_samples_lie_on_the_hosts_clock() -> None:
    table = counted(RAW, CLOCK)
    at = table.filter(quantity="memory_bytes", subject="machine").sort("to_ns")["to_ns"].to_list()
    assert at[0] == pytest.approx(MIDDLE_NS - (17.47 - 12.15) * 1e9, abs=2)
    assert at[-1] == pytest.approx(MIDDLE_NS + (18.15 - 17.47) * 1e9, abs=2)
    assert set(table["within_ns"]) == {round((CLOCK.to_ns - CLOCK.from_ns) / 2 + 1e7)}


def test_without_a_clock_there_are_none() -> None:
    assert counted(RAW, None).is_empty()


def test_a_machine_that_was_killed_may_leave_half_a_line_and_no_other() -> None:
    whole, torn = counted(RAW, CLOCK), counted(RAW[:-40], CLOCK)
    assert len(values(torn, "memory_bytes", "machine")) == len(values(whole, "memory_bytes", "machine")) - 1
    lines = RAW.splitlines(keepends=True)
    for broken in (
        b"{}\n",
        b"[1]\n",
        b'{"/proc/uptime": ""}\n',
        json.dumps({"/proc/uptime": "x"}).encode() + b"\n",
    ):
        with pytest.raises(StoreError, match=r"line 2 of sut\.guest\.jsonl"):
            counted(b"".join((lines[0], broken, *lines[1:])), CLOCK)
