"""A report on paper: in light colours, whole, and not as long as its raw lists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from tests.unit.analyze import synthetic

from tare.record.run_record import to_tree
from tare.report import html_page
from tare.report.content import build_report
from tare.report.in_full import with_details

MOST_PAGES = 12
WHITE, BLACK = "rgb(255, 255, 255)", "rgb(0, 0, 0)"


def with_long_lists(tree: dict[str, Any]) -> None:
    """As many packages and variables as real images and servers have."""
    packages = [[f"package-{n}", f"1:{n}.2-3+deb12u1"] for n in range(170)]
    tree["images"] = {side: {**to_tree(synthetic.IMAGE), "packages": packages} for side in ("sut", "client")}
    tree["effective"] = {**tree["effective"], **{f"variable_{n}": str(n) for n in range(600)}}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = [synthetic.changed(record, with_long_lists) for record in synthetic.records(blocks=8)]
    path = tmp_path_factory.mktemp("printed") / "report.html"
    path.write_text(html_page.render(with_details(build_report(synthetic.study(blocks=8), made), made)))
    return path


@pytest.fixture
def page(browser: Browser, report: Path) -> Page:
    """Of a reader who likes it dark, on paper."""
    tab = browser.new_context(color_scheme="dark", viewport={"width": 700, "height": 900}).new_page()
    tab.goto(report.as_uri())
    tab.emulate_media(media="print")
    return tab


def pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type */Page\b", pdf))


def test_it_takes_few_pages(page: Page) -> None:
    assert 2 < pages(page.pdf(format="A4")) <= MOST_PAGES


def test_raw_lists_that_a_reader_has_opened_are_printed_too(page: Page) -> None:
    few = pages(page.pdf(format="A4"))
    page.eval_on_selector_all("details.raw", "all => all.forEach(each => each.open = true)")
    assert pages(page.pdf(format="A4")) > few


def test_it_is_printed_light_with_the_charts_of_a_wide_page(page: Page) -> None:
    body = "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    assert page.evaluate(body) == [WHITE, BLACK]
    assert page.locator("figure .wide").first.is_visible()
    assert not page.locator("figure .narrow").first.is_visible()
    charts = page.locator("#metrics details figure .wide")
    assert charts.count() > 0
    assert all(charts.nth(n).is_visible() for n in range(charts.count()))


def test_keys_to_charts_keep_their_colours(page: Page) -> None:
    keys = page.eval_on_selector_all(".key", "all => all.map((one) => getComputedStyle(one).printColorAdjust)")
    assert set(keys) == {"exact"}


def test_no_table_is_wider_than_the_paper(page: Page) -> None:
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
