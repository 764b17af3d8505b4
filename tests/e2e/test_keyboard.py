"""Report, live page and knowledge base without a mouse, in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.keyboard import check_stops, here, reachable, stops_back, unnamed_pictures
from tests.e2e.test_live_page import PHONE, WAIT_MS, Viewer, fake_run, port, served, wait_for_port
from tests.unit.analyze import synthetic

from tare.analyze.timelines.runs import LATENCY, THROUGHPUT, OverlaidRun, RunOverlay, Span
from tare.analyze.timelines.series import Point
from tare.report import html_page
from tare.report.content import build_report
from tare.report.in_full import with_details

__all__ = ["port"]
"""A fixture."""


def laid(number: int, arm: str) -> OverlaidRun:
    points = [
        Point(panel, "SUT", float(s), 100.0 + number + s) for panel in (THROUGHPUT, LATENCY) for s in range(9)
    ]
    return OverlaidRun(
        f"b01-{number}", arm, 1, 100.0, tuple(points), (Span("measure", 0.0, 9.0),), (), shown=number < 2
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With all kinds of controls."""
    made = synthetic.records(blocks=8)
    content = with_details(build_report(synthetic.study(blocks=8), made), made)
    over = RunOverlay(tuple(laid(n, arm) for n, arm in enumerate(synthetic.PATHS)), len(synthetic.PATHS))
    path = tmp_path_factory.mktemp("read") / "report.html"
    path.write_text(html_page.render(replace(content, laid_over=over)))
    return path


@pytest.fixture(params=["desk", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, report: Path) -> Iterator[Page]:
    """The report."""
    size = PHONE if request.param == "phone" else {"width": 1200, "height": 800}
    context = browser.new_context(viewport=size)  # type: ignore[arg-type]  # of the right shape
    tab = context.new_page()
    tab.goto(report.as_uri())
    yield tab
    context.close()


def test_tab_comes_to_every_control_of_a_report_in_order_and_shows_where_it_is(page: Page) -> None:
    stops = check_stops(page)
    kinds = {stop.what.split()[0] for stop in stops}
    assert {"A", "INPUT", "SUMMARY", "DIV", "PRE"} <= kinds
    assert stops_back(page) == [stop.at for stop in reversed(stops)]


def test_all_that_was_closed_can_be_opened_and_gone_through_by_keys(page: Page) -> None:
    before = len(reachable(page))
    for number in range(page.locator("summary").count()):
        summary = page.locator("summary").nth(number)
        if not summary.evaluate("one => one.parentElement.open"):
            summary.focus()
            page.keyboard.press("Enter" if number % 2 else "Space")
        assert summary.evaluate("one => one.parentElement.open")
    assert len(reachable(page)) > before
    check_stops(page)


def test_the_first_stop_leads_past_the_head_to_the_result(page: Page) -> None:
    page.keyboard.press("Tab")
    first = here(page)
    assert first is not None
    assert "Skip to the result" in first.what
    assert first.in_sight
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.getElementById('result').contains(document.activeElement)")


def test_space_ticks_a_run_and_arrows_scroll_a_wide_table(page: Page) -> None:
    box = page.locator(".picks input:not(:checked)").first
    line = page.locator(f".{box.evaluate('one => one.id').replace('pick', 'run')} >> visible=true")
    assert line.count() == 0
    box.focus()
    page.keyboard.press("Space")
    expect(line.first).to_be_visible()
    wide = page.locator(".scroll").first
    room = wide.evaluate("one => one.scrollWidth - one.clientWidth")
    wide.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("([one, room]) => room <= 0 || one.scrollLeft > 0", arg=[wide.element_handle(), room])


def test_every_chart_has_a_text_in_its_place(page: Page) -> None:
    assert page.locator("svg[role=img]").count() > 4
    assert unnamed_pictures(page) == []
    texts = page.eval_on_selector_all("svg[role=img]", "all => all.map((one) => one.getAttribute('aria-label'))")
    assert all(text.startswith("Chart: ") and len(text) > 40 for text in texts)


@pytest.mark.timeout(600)
def test_the_live_page_is_used_by_keys_alone_and_keeps_the_focus_while_runs_end(
    browser: Browser, tmp_path: Path, port: int
) -> None:
    store, work = tmp_path / "store", tmp_path / "work"
    with ExitStack() as stack:
        take = stack.enter_context(fake_run(store, work))
        viewer = Viewer(browser, viewport={"width": 1200, "height": 800})
        stack.callback(viewer.context.close)
        stack.enter_context(served(store, port))
        wait_for_port(port)
        page = viewer.page
        viewer.open(f"http://127.0.0.1:{port}/a-token-of-the-tests/")
        for step in ("start", "figures"):
            take(step)
        viewer.shows({"r": 1})
        expect(page.locator("#log summary")).to_have_count(2)
        expect(page.locator("#series .canvas svg").first).to_be_attached()
        check_stops(page)
        assert unnamed_pictures(page) == []

        page.locator("#log summary").first.focus()
        page.keyboard.press("Space")
        expect(page.locator("#log details[open]")).to_have_count(1)
        arm = page.locator("button.arm").nth(1)
        arm.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#arm tbody tr").first).to_be_visible()
        assert arm.get_attribute("aria-expanded") == "true"
        take("end")
        viewer.shows({"g": 1})
        assert page.evaluate("document.activeElement.matches('button.arm[data-arm=\"1\"]')")
        page.keyboard.press("Tab")
        assert page.evaluate("document.getElementById('arm').contains(document.activeElement)")
        take("start")
        viewer.shows({"g": 1, "r": 1})
        take("end")
        viewer.shows({"g": 2, "r": 0})
        expect(page.locator("#arm tbody")).to_contain_text("good", timeout=WAIT_MS)
        assert page.evaluate("document.getElementById('arm').contains(document.activeElement)")
        page.keyboard.press("Escape")
        expect(page.locator("#arm")).to_be_hidden()
        assert page.evaluate("document.activeElement.matches('button.arm[data-arm=\"1\"]')")
        check_stops(page)
        assert viewer.complaints == []


def test_the_knowledge_base_is_found_and_searched_by_keys(browser: Browser, tmp_path: Path, port: int) -> None:
    store = tmp_path / "store"
    with ExitStack() as stack:
        stack.enter_context(fake_run(store, tmp_path / "work"))
        viewer = Viewer(browser, viewport=PHONE)
        stack.callback(viewer.context.close)
        stack.enter_context(served(store, port))
        wait_for_port(port)
        viewer.open(f"http://127.0.0.1:{port}/a-token-of-the-tests/")
        viewer.page.get_by_role("link", name="knowledge base").focus()
        viewer.page.keyboard.press("Enter")
        viewer.page.wait_for_url("**/knowledge")
        check_stops(viewer.page)
        rows = viewer.page.locator("#claims tr >> visible=true")
        every = rows.count()
        viewer.page.locator("#filter").focus()
        viewer.page.keyboard.type("moby")
        expect(rows).to_have_count(3)
        viewer.page.keyboard.press("Escape")
        expect(rows).to_have_count(every)
        viewer.fits()
        assert viewer.complaints == []
