"""The static knowledge site in a real browser, opened as files."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect
from tests.unit.stores import known, store_of

from tare.knowledge.claim import load_claims
from tare.knowledge.site.pages import write_site
from tare.knowledge.site.stores import store_view
from tare.sites.layout import Layout
from tare.store import open_store


def test_facets_choose_claims_and_the_address_keeps_the_choice(browser: Browser, tmp_path: Path) -> None:
    claims = load_claims()
    write_site(tmp_path / "site", claims, Layout(tmp_path / "home"))
    page = browser.new_page(viewport={"width": 390, "height": 800})
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: faults.append(request.url) if request.url.startswith("http") else None)
    page.goto((tmp_path / "site" / "claims.html").as_uri())
    expect(page.locator("#shown")).to_have_text(f"{len(claims)} of {len(claims)} claims")
    page.select_option("select[name=database]", "redis")
    contexts = [each.claim.context for each in claims]
    of_redis = sum(context is not None and context.database.name == "redis" for context in contexts)
    expect(page.locator("tbody tr:visible")).to_have_count(of_redis)
    page.reload()
    expect(page.locator("#shown")).to_have_text(f"{of_redis} of {len(claims)} claims")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("tbody tr:visible a").first.click()
    expect(page.locator("dd", has_text="redis").first).to_be_visible()
    assert faults == []


def test_the_explorer_compares_any_arm_with_any_other_and_the_address_keeps_the_view(
    browser: Browser, tmp_path: Path
) -> None:
    claims = load_claims()
    rates = {"bare": [1000.0, 1010.0, 990.0], "host": [500.0, 506.0, 494.0], "bridge": [250.0, 252.0, 248.0]}
    again = {"baseline-again": [1001.0, 1008.0, 991.0]}
    stores = [
        open_store(store_of(tmp_path / name, known({**rates, **again, "bridge": bridge})))
        for name, bridge in (("one", rates["bridge"]), ("two", [100.0, 101.0, 99.5]))
    ]
    views = [store_view(store, number, f"number {number}") for number, store in enumerate(stores, start=1)]
    write_site(tmp_path / "site", claims, Layout(tmp_path / "home"), views)
    page = browser.new_page(viewport={"width": 390, "height": 800})
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: faults.append(request.url) if request.url.startswith("http") else None)
    page.goto((tmp_path / "site" / "index.html").as_uri())
    expect(page.locator("#store-1 dd").first).to_contain_text("costs")
    bridge = page.locator(".row", has=page.locator("b", has_text="bridge"))
    expect(bridge).to_contain_text("\N{MINUS SIGN}75.0")
    page.select_option("select[name=baseline]", "host")
    expect(bridge).to_contain_text("\N{MINUS SIGN}50.")
    page.select_option("select[name=beside]", "store-2")
    expect(bridge.locator("div.b")).to_contain_text("\N{MINUS SIGN}80.")
    page.select_option("select[name=claims]", "same")
    expect(page.locator(".row", has_text="percona-2016-bridge")).to_be_visible()
    page.reload()
    expect(bridge.locator("div.b")).to_contain_text("\N{MINUS SIGN}80.")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.fill("#search", "shm 64")
    page.locator("#found a", has_text="A small /dev/shm").click()
    expect(page.locator("#shm-64m h2")).to_be_visible()
    assert faults == []
