"""The section of the page that shows one run by several monitors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.unit.analyze import synthetic
from tests.unit.analyze.views.test_compare import row
from tests.unit.analyze.views.test_of_run import of_arm, store_with
from tests.unit.analyze.views.traces import HEADER, QUANTA, trace
from tests.unit.report.test_html_page import Page
from typer.testing import CliRunner

from tare.analyze.views.summary import RunViews, views_of, views_of_run
from tare.cli import app
from tare.report import html_page
from tare.report.charts import views as chart
from tare.report.charts.theme import NARROW, WIDE, Frame
from tare.report.content import build_report
from tare.report.in_full import in_full
from tare.store.trace import Trace

TITLE = "Monitors\N{RIGHT SINGLE QUOTATION MARK} views"


@pytest.fixture(scope="module")
def seen() -> RunViews:
    observed = row("docker-stats", "cpu_percent", [60.0] * 8, subject="sut")
    return RunViews("r-1", "bridge", views_of(trace(seconds=10, name="sut"), 1.0, observed))


def page(views: RunViews | None) -> Page:
    content = build_report(synthetic.study(), synthetic.records())
    return Page(html_page.render(replace(content, views=views)))


def test_the_page_shows_what_each_monitor_would_have_said_and_why(seen: RunViews) -> None:
    made = page(seen)
    assert made.open == []
    assert TITLE in made.text
    assert "CPU of a control group: sut" in made.text
    assert "container_fs_writes_bytes_total nothing" in made.text
    assert "empty is not zero" in made.text
    assert "what it did show" in made.text


def test_of_a_cluster_each_node_has_its_figures_and_panels() -> None:
    nodes = [trace(seconds=10, name=name) for name in ("sut-1", "sut-2")]
    groups = pl.concat(
        [node.tables["cgroup"].with_columns(target=pl.lit(11 + at)) for at, node in enumerate(nodes)]
    )
    cluster = Trace(nodes[0].header, QUANTA, True, {**nodes[0].tables, "cgroup": groups})
    seen = RunViews("r-1", "three", views_of(cluster, 1.0))
    made = page(seen)
    for node in ("sut-1", "sut-2"):
        assert f"CPU of a control group: {node}" in made.text
        assert f"memory of a control group: {node}" in made.text
        assert f"podman stats, {node} 60.0 %" in chart.in_words(seen)
    assert "CPU of each node of the server in percent" in made.text
    assert "what it did show" not in made.text
    spec = chart.views(seen, WIDE)
    assert (len(spec["concat"]), spec["columns"]) == (8, 2)
    titles = [chart.drawable(seen)[at].subject for at in range(4)]
    assert titles == ["sut-1", "sut-2", "sut-1", "sut-2"]


def test_a_page_without_a_trace_has_no_such_section() -> None:
    assert TITLE not in page(None).text


def test_a_trace_without_a_group_of_the_server_s_own_gives_no_chart() -> None:
    alone = RunViews("r-1", "root", views_of(trace(name="other"), 1.0))
    assert chart.drawable(alone) == []
    assert TITLE in page(alone).text
    nothing = RunViews("r-1", "root", views_of(Trace(HEADER, QUANTA, True, {}), 1.0))
    assert TITLE in page(nothing).text


@pytest.mark.parametrize("frame", [WIDE, NARROW], ids=lambda frame: frame.name)
def test_the_chart_has_a_panel_a_tool_with_its_own_and_the_real_figures(seen: RunViews, frame: Frame) -> None:
    spec = chart.views(seen, frame)
    tools = [line.view.tool for line in chart.drawable(seen)]
    assert tools == ["docker-stats", "podman-stats", "cadvisor", "metrics-server"]
    assert len(spec["concat"]) == len(tools)
    assert "diamond" in str(spec["concat"][0])
    assert "diamond" not in str(spec["concat"][1])


def test_the_chart_is_told_in_words(seen: RunViews) -> None:
    words = chart.in_words(seen)
    assert "docker stats 60.0 %, the real tool 60.0 %" in words
    assert "cAdvisor under rate() 60.0 %" in words


def test_the_report_of_a_store_with_traces_has_the_section(tmp_path: Path) -> None:
    store_with(tmp_path / "store")
    done = CliRunner().invoke(app, ["report", str(tmp_path / "store"), "--format", "html"])
    assert TITLE in Page(done.stdout).text


@pytest.mark.parametrize("style", ["html", "md"])
def test_a_report_of_a_store_with_a_damaged_trace_leaves_it_out_and_names_it(tmp_path: Path, style: str) -> None:
    store = store_with(tmp_path / "store")
    run = of_arm(store, "bridge")
    damaged = store.raw(run, "monitors/probe/trace") / "cgroup.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    report = in_full(build_report(store.plan.study, store.records()), store, store.records())
    (notice,) = report.notices
    assert notice.startswith(f"not all of {run.run_id} is shown: the trace {damaged} cannot be read: the file")
    assert report.views is not None
    assert report.views.arm == "bare"
    assert report.timelines is not None
    assert [each.arm for each in report.timelines.runs] == ["bare"]
    done = CliRunner().invoke(app, ["report", str(store.path), "--format", style])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert f"not all of {run.run_id} is shown" in " ".join(done.stdout.replace("\\", "").split())


def test_a_run_of_a_store_is_shown_by_its_name(tmp_path: Path) -> None:
    store = store_with(tmp_path / "store")
    run = of_arm(store, "bridge").run_id
    done = CliRunner().invoke(app, ["views", run, "--store", str(store.path)])
    assert done.exit_code == 0
    assert "6.0 s of counters" in done.stdout
    assert "real tool" in done.stdout
    unknown = CliRunner().invoke(app, ["views", "nosuch", "--store", str(store.path)])
    assert "has no run nosuch" in str(unknown.exception)
    # Its raw files are in a directory of its name and attempt.
    of_directory = CliRunner().invoke(app, ["views", f"{run}-1", "--store", str(store.path)])
    assert f'did you mean "{run}"?' in str(getattr(of_directory.exception, "hint", ""))
    assert views_of_run(store, of_arm(store, "bare")).views.compared == ()
