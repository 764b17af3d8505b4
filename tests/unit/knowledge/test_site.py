"""The static site: whole, valid, self-contained, and safe whatever a claim says."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from tests.unit.knowledge.test_claims import RIGHT
from tests.unit.knowledge.test_prediction import cost, costs
from tests.unit.report.test_html_page import LOADING, Page
from tests.unit.stores import known, store_of
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StoreError, StudyError
from tare.knowledge.claim import ClaimFile, load_claim, load_claims
from tare.knowledge.event_costs import event_cost
from tare.knowledge.kept_costs import every_cost, keep
from tare.knowledge.site.cost_chart import MOST_MACHINES
from tare.knowledge.site.forest import Mark, axis_of, head, mark_of, row
from tare.knowledge.site.pages import FACETS, pages_of, write_site
from tare.knowledge.site.stores import store_view
from tare.sites.layout import Layout
from tare.store import open_store


@pytest.fixture(scope="module")
def claims() -> tuple[ClaimFile, ...]:
    return load_claims()


@pytest.fixture(scope="module")
def pages(claims: tuple[ClaimFile, ...]) -> dict[str, str]:
    return dict(pages_of(claims, [costs(cost("machine-cpu", 3.0)), costs(cost("machine-cpu", 4.0))]))


def test_there_is_a_page_for_every_claim_and_each_is_linked(
    pages: dict[str, str], claims: tuple[ClaimFile, ...]
) -> None:
    index = Page(pages["claims.html"])
    linked = {each["href"] for each in index.all("a")}
    assert {f"claims/{each.id}.html" for each in claims} <= linked
    assert all(f"claims/{each.id}.html" in pages for each in claims)
    assert len(json.loads(pages["claims.json"])) == len(claims)


def test_every_page_is_well_formed_with_ids_once_and_loads_nothing_from_elsewhere(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        if not name.endswith(".html"):
            continue
        page = Page(text)
        assert page.open == [], name
        assert text.startswith("<!doctype html>\n<html lang=")
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        for tag, attributes in page.elements:
            loaded = [attributes[key] for key in attributes if key in LOADING]
            loaded += [attributes["href"]] if tag == "link" else []
            assert all(
                value in ("data:,", "site.css", "../site.css", "site.js", "explore.js") for value in loaded
            ), (name, tag)
            assert "style" not in attributes
            assert not [key for key in attributes if key.startswith("on")]
    assert not re.findall(r"@import|url\(|https?:", pages["site.css"])
    assert "http" not in pages["site.js"]
    assert re.findall(r"https?:\S+", pages["explore.js"]) == ['http://www.w3.org/2000/svg";'], "a name, not loaded"


def test_every_row_has_the_facets_that_can_be_chosen(pages: dict[str, str]) -> None:
    index = Page(pages["claims.html"])
    rows = [each for each in index.all("tr") if "data-study" in each]
    assert len(rows) == len(json.loads(pages["claims.json"]))
    assert all(f"data-{name}" in each for each in rows for name in FACETS)
    (databases,) = [re.findall(r'<select name="database">(.*?)</select>', pages["claims.html"])]
    chosen = set(re.findall(r"<option>(.*?)</option>", databases[0]))
    assert {each["data-database"] for each in rows} == chosen


def test_a_claim_s_page_tells_its_source_and_why_it_is_weak(pages: dict[str, str]) -> None:
    weak = pages["claims/serverdevworker-kvm.html"]
    assert "https://serverdevworker.com/1000a3742" in weak
    assert "a page without author, date, raw output or repetitions" in weak
    assert 'class="weak"' in pages["claims.html"]


def test_disputed_claims_point_at_each_other(pages: dict[str, str]) -> None:
    assert "postgres-benchmarks-pg18.html" in pages["claims/postgres-benchmarks-pg16.html"]
    assert "postgres-benchmarks-pg16.html" in pages["claims/postgres-benchmarks-pg18.html"]


def test_machines_stand_side_by_side(pages: dict[str, str]) -> None:
    shown = Page(pages["costs.html"])
    assert shown.words.count("machine 2") == 3, "in the table, and in the chart's two widths"
    assert "3.00" in pages["costs.html"]
    assert "4.00" in pages["costs.html"]
    assert "No machine has unit costs yet" in dict(pages_of((), ()))["costs.html"]


def test_unit_costs_are_drawn_above_their_table_and_told_in_words(pages: dict[str, str]) -> None:
    shown = Page(pages["costs.html"])
    labels = [each["aria-label"] or "" for each in shown.all("svg")]
    assert len(labels) == 2, "one for each width"
    assert labels[0] == (
        "Chart: CPU of a request, in microseconds with 95 % intervals. "
        "container / bare / bridge, machine 1 3.00; container / bare / bridge, machine 2 4.00."
    )
    assert "var(--c2)" in pages["costs.html"]
    assert pages["costs.html"].index("<figure>") < pages["costs.html"].index("<table")


def test_charts_draw_as_many_machines_as_there_are_colours_and_intervals_of_events() -> None:
    whole = cost("machine-cpu", 3.0).model_copy(update={"low": -1.0, "high": 7.0})
    event = event_cost("syscall", {"first": [100.0, 150.0, 110.0], "second": [100.0, 110.0, 120.0]}, where="bare")
    none = event_cost("fault", {"first": [-9.0, 2.0, 1.0], "second": [1.0, 1.0, 1.0]}, where="bare")
    machine = costs(whole).model_copy(update={"events": (event, none)})
    one = dict(pages_of((), [machine]))["costs.html"]
    labels = [each["aria-label"] or "" for each in Page(one).all("svg")]
    assert "container / bare / bridge 3.00 [\N{MINUS SIGN}1.00, 7.00]." in labels[0]
    assert "system call, bare 0.120 [0.0543, 0.186]." in labels[2]
    assert "page fault" not in labels[2], "a logarithmic axis has no place for nothing"
    assert "The charts show the first" not in one
    many = dict(pages_of((), [machine] * (MOST_MACHINES + 1)))["costs.html"]
    assert f"The charts show the first {MOST_MACHINES} machines." in many
    assert f"machine {MOST_MACHINES + 1} 3.00" not in many


def test_what_a_claim_says_is_text_and_never_markup(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script> \\e[31m"
    text = RIGHT.replace("In a container, it did a tenth less.", bad.replace("\\", "\\\\"))
    text = text.replace("title: A", 'title: "<img src=x onerror=alert(1)>"').replace("name: redis", "name: redis")
    (tmp_path / "mine.yaml").write_text(text)
    made = dict(pages_of([load_claim(tmp_path / "mine.yaml")], ()))
    for name in ("index.html", "claims.html", "claims/mine.html"):
        page = Page(made[name])
        assert not page.all("img")
        assert all(each.get("src", "explore.js") in ("site.js", "explore.js") for each in page.all("script"))


@pytest.mark.parametrize("name", ["grambow-2018-m3-large-t30-update-iv", "casalicchio-2017-disk-read"])
def test_intervals_and_sizes_are_drawn(name: str, claims: tuple[ClaimFile, ...]) -> None:
    (known,) = [each for each in claims if each.id == name]
    mark = mark_of(known.claim)
    assert mark is not None
    assert mark.low is not None
    assert mark.high is not None
    assert mark.low < mark.high


def test_the_axis_holds_everything_and_its_labels_keep_clear_of_each_other() -> None:
    marks = [Mark(-1.2, None, None, weak=False), Mark(0.1, 0.05, 0.2, weak=False), Mark(None, None, 0.4, weak=True)]
    axis = axis_of(marks)
    assert axis.low < -1.2
    assert axis.high > 0.4
    places = [axis.x(at) for at in axis.marks]
    assert all(b - a >= 40 for a, b in itertools.pairwise(places))
    assert ">0 %<" in head(axis)
    assert 'class="point alone"' in row(marks[0], axis, "x")
    assert 'class="interval"' in row(marks[1], axis, "x")
    assert 'class="open"' in row(marks[2], axis, "x")


@pytest.mark.parametrize("points", [(-1.2, 0.0), (-0.05, 0.0), (-0.3, 0.1), (0.02, 0.4), (1.5, 3.0), (-4.0, 0.2)])
def test_the_axis_has_a_mark_on_either_side_of_no_change(points: tuple[float, ...]) -> None:
    axis = axis_of([Mark(point, None, None, weak=False) for point in points])
    assert axis.marks[0] < 0 < axis.marks[-1]
    assert axis.low < min(points)
    assert axis.high > max(points)


def test_the_command_writes_into_an_empty_directory_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    keep(Layout(tmp_path / "home"), costs(cost("machine-cpu", 3.0)))
    done = CliRunner().invoke(app, ["site", str(tmp_path / "site")])
    assert done.exit_code == 0, done.exception
    assert (tmp_path / "site" / "index.html").stat().st_size > 50_000
    assert "3.00" in (tmp_path / "site" / "costs.html").read_text()
    again = CliRunner().invoke(app, ["site", str(tmp_path / "site")])
    assert "not an empty directory" in str(again.exception)
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(StudyError, match="not an empty directory"):
        write_site(tmp_path / "link", (), Layout(tmp_path / "home"))


def test_costs_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    keep(layout, costs(cost("machine-cpu", 3.0)))
    (layout.unit_costs / "x" / "y").mkdir(parents=True)
    (layout.unit_costs / "x" / "y" / "costs.json").write_text("{")
    with pytest.raises(StoreError, match=r"x/y/costs.json cannot be read"):
        every_cost(layout)


def test_the_answers_of_stores_come_first_and_without_scripts(tmp_path: Path) -> None:
    rates = {"bare": [1000.0, 1010.0, 990.0], "<b>host": [500.0, 506.0, 494.0]}
    store = store_of(tmp_path / "store", known({**rates, "baseline-again": [1001.0, 1008.0, 991.0]}))
    index = dict(pages_of((), (), [store_view(open_store(store), 1, "mine")]))["index.html"]
    page = Page(index)
    assert page.open == []
    assert "<b>host" not in index
    words = " ".join(" ".join(page.words).split())
    assert "costs 4" in words
    data = json.loads(index.partition('id="data">')[2].partition("</script>")[0])
    (drawn,) = data["stores"]
    (throughput,) = [each for each in drawn["metrics"] if each["name"] == "throughput"]
    assert throughput["values"]["bare"] == {"1": 1000.0, "2": 1010.0, "3": 990.0}
    assert throughput["own"]["<b>host"][0] == pytest.approx(-0.5, abs=0.01)
    assert data["t"][1] == pytest.approx(4.3027)


def test_claims_against_another_container_are_not_among_those_against_bare(pages: dict[str, str]) -> None:
    sections = pages["claims.html"].split("<section>")[1:]
    titles = [re.findall(r"<h2>(.*?)</h2>", each)[0] for each in sections]
    assert titles[0] == "throughput, against bare"
    for title, section in zip(titles, sections, strict=True):
        baselines = set(re.findall(r'data-baseline="(.*?)"', section))
        if title.endswith("against bare"):
            assert baselines == {"bare"}
        elif title.endswith("against another container"):
            assert baselines == {"container"}


def test_every_axis_of_losses_has_a_mark_of_a_gain() -> None:
    axis = axis_of([Mark(-1.2, -1.3, -1.1, weak=False)])
    assert max(axis.marks) > 0
