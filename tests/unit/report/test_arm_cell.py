"""Names of arms in tables: broken between levels, and never cut."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from rich.table import Column, Table
from tests.unit.analyze.synthetic import records, study

from tare.report.arm_cell import ArmCell
from tare.report.charts.overheads import overheads
from tare.report.charts.theme import FRAMES, Frame
from tare.report.content import build_report
from tare.report.plain import lines_of


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        ("bare-mixed-two-thirds", 17, ["bare-mixed-two-", "thirds"]),
        ("bare-mixed-two-thirds", 21, ["bare-mixed-two-thirds"]),
        ("docker-bare-m3.medium-t10-STCS-auto", 24, ["docker-bare-m3.medium-", "t10-STCS-auto"]),
        ("bare", 10, ["bare"]),
        ("vm container/ext4", 6, ["vm", "container/", "ext4"]),
        ("--", 1, ["--"]),
        ("", 10, [""]),
    ],
)
def test_a_name_goes_on_after_a_hyphen(name: str, width: int, lines: list[str]) -> None:
    assert list(lines_of(name, width)) == lines


@pytest.mark.parametrize("width", [12, 16, 24, 40])
def test_in_a_table_no_letter_is_lost_and_no_line_too_long(width: int) -> None:
    out = io.StringIO()
    table = Table(Column("arm", max_width=24), Column("n", no_wrap=True), box=None, pad_edge=False)
    table.add_row(ArmCell("container-averyverylonglevel-two-thirds"), "3")
    Console(file=out, width=width).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert all(len(line) <= width for line in lines)
    names = [line.removesuffix("3").strip() for line in lines[1:]]
    assert "".join(names) == "container-averyverylonglevel-two-thirds"


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.name)
def test_a_chart_names_a_long_arm_whole_and_line_by_line(frame: Frame) -> None:
    long = "docker-bare-m3.medium-t10-STCS-auto"
    finding = replace(build_report(study(), records()).analysis.findings[0], arm=long)
    labels = {
        row["arm"] for rows in overheads([finding], frame)["datasets"].values() for row in rows if "arm" in row
    }
    (label,) = labels
    assert label.replace("\n", "") == long
    assert "\n" in label
    assert max(map(len, label.split("\n"))) * 0.6 * frame.text_px <= frame.label_px
