"""Bottleneck, and repetitions as their source tells them, in every format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.analyze.test_operations import with_operations
from tests.unit.report.printed import texts, titles

from tare.report import findings_file, html_page, terminal
from tare.report.content import Report, build_report
from tare.report.markdown import markdown
from tare.report.sections.bottleneck import bottleneck
from tare.report.sections.overheads import repetitions

ARMS = ("bare", "bridge")


def report(*, of_limit: float | None = None, **changes: Any) -> Report:
    """Three runs an arm: 90, 100 and 110 a second bare, a tenth less with a bridge; the disk at its end."""

    def alter(tree: dict[str, Any]) -> None:
        tree["usage"]["saturation"] = {"sut": {"busy": 0.4, "waiting_io": 0.93}, "client": {"busy": 0.3}}
        tree["usage"]["disk"] = {
            "name": "vda",
            "busy": 0.12,
            "depth": 0.4,
            "reads_per_s": 500.0,
            "writes_per_s": 88.0,
        }
        if of_limit is not None:
            tree["usage"]["disk_limit"] = {"per_s": 500, "used": of_limit}

    made = [
        synthetic.changed(synthetic.record(block, arm, tps * (0.9 if arm == "bridge" else 1.0)), alter)
        for arm in ARMS
        for block, tps in enumerate((90.0, 100.0, 110.0))
    ]
    return build_report(synthetic.study(ARMS, **changes), made)


MEANT: dict[str, Any] = {"published_by": "min-max-mean", "disk_bound": {"path": ARMS}}


def test_repetitions_stand_beside_what_tare_makes_of_them() -> None:
    of_throughput, of_latency = repetitions(report(**MEANT))
    assert "throughput, transactions/s" in of_throughput.title
    bare, bridge = (dict(zip(titles(of_throughput), row, strict=True)) for row in texts(of_throughput))
    assert (bare["smallest"], bare["largest"], bare["mean"], bare["std. dev."]) == ("90.0", "110", "100", "10.0")
    assert (bare["overhead"], bare["of means"]) == ("baseline", "")
    assert (bridge["mean"], bridge["of means"], bridge["n"]) == ("90.0", "-10.0 %", "3")
    assert bridge["overhead"].startswith("-10.0")
    assert of_latency.title.endswith("mean latency, ms")


def test_a_kind_of_operation_has_a_row_for_each_arm_that_has_it_alone() -> None:
    kinds = {"bare": ("read", "update"), "bridge": ("read",)}
    made = [with_operations(each, *kinds[each.arm]) for each in synthetic.records(ARMS)]
    whole = build_report(synthetic.study(ARMS, **MEANT), made)
    arms = {section.title: [row[0] for row in section.rows] for section in repetitions(whole)}
    fields = {title.rpartition(" of ")[2]: value for title, value in arms.items()}
    assert fields["update, ms"] == ["bare"]
    assert fields["read, ms"] == ["bare", "bridge"]
    shown = [line.split()[:2] for line in terminal.render(whole, width=120).splitlines()]
    assert ["bare", "update"] in shown
    assert ["bridge", "update"] not in shown


def test_a_source_that_tells_no_repetitions_has_none() -> None:
    assert list(repetitions(report())) == []
    assert list(repetitions(report(published_by="relative-change-of-averages"))) == []


def test_what_set_the_rate_is_a_row_an_arm() -> None:
    (section,) = bottleneck(report())
    assert texts(section) == [
        (arm, "40.0 %", "30.0 %", "93.0 %", "12.0 %", "0.400", "500", "88.0", "disk") for arm in ARMS
    ]
    blind = build_report(synthetic.study(ARMS), synthetic.records(ARMS, 3))
    assert list(bottleneck(blind)) == []


def test_a_limit_has_a_column_where_the_study_has_one() -> None:
    limited = report(of_limit=0.97)
    (section,) = bottleneck(limited)
    cells = dict(zip(titles(section), texts(section)[0], strict=True))
    assert (cells["held by limit"], cells["disk busy"], cells["bound by"]) == ("97.0 %", "12.0 %", "disk")
    (section,) = bottleneck(report())
    assert "held by limit" not in titles(section)
    assert max(map(len, terminal.render(limited, width=80).splitlines())) <= 80


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_shows_both_where_the_study_asks_for_them(width: int) -> None:
    shown = terminal.render(report(**MEANT), width=width)
    assert max(map(len, shown.splitlines())) <= width
    assert "Bottleneck" in shown
    assert "std. dev." in shown or width == 60
    plain = terminal.render(report(), width=width)
    assert "Bottleneck" not in plain
    assert "std. dev." not in plain


def test_pages_show_both() -> None:
    for text in (markdown.render(report(**MEANT)), html_page.render(report(**MEANT))):
        assert "Bottleneck" in text
        assert "std. dev." in text
        assert "bound by" in text
    assert "std. dev." not in html_page.render(report())


def test_json_has_both_of_every_arm() -> None:
    bare, bridge = json.loads(findings_file.render(report()))["arms"]
    assert (bare["values"]["throughput"]["mean"], bare["values"]["throughput"]["stddev"]) == (100.0, 10.0)
    assert bridge["limits"] == {
        "sut_busy": 0.4, "client_busy": 0.3, "sut_waiting_io": 0.93, "disk_busy": 0.12, "disk_depth": 0.4,
        "reads_per_s": 500.0, "writes_per_s": 88.0, "disk_limit_used": None, "reached": ["disk"],
    }  # fmt: skip
